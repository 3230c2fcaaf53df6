"""Give back: a conductor came too late with what it got for a server that is nowhere, or gone.

Its successor has ended the operation, or a delete has not waited for it any longer. What it claimed and bound
since then nobody else knows of, so it is written down, and let go of by whoever comes first.
"""

from __future__ import annotations

from collections.abc import Sequence

from moorage.conductor.engine.runner import Step
from moorage.conductor.engine.work import Work
from moorage.conductor.ports import server_ports
from moorage.network.contract import Network
from moorage.placement.client.contract import PlacementClient


class GiveBack:
    def __init__(self, network: Network, placement: PlacementClient) -> None:
        self._network = network
        self._placement = placement

    def steps(self) -> dict[str, Step]:
        return {"begin": self.begin}

    def begin(self, batch: Sequence[Work]) -> None:
        """Nothing is ever claimed for such a server again, so all that it holds may go."""
        self._network.release([server_ports.holding(work) for work in batch])
        self._placement.release([work.operation.server_uuid for work in batch])
        for work in batch:
            work.finish()

    def give_up(self, work: Work, error: str) -> None:
        work.fail(error)
