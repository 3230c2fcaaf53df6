"""Give back what a conductor got after its lease had ended, for a server that is nowhere, or gone.

Its successor has ended the operation, or a delete has not waited for it any longer. What it claimed and bound
since then nobody else knows of, so it is written down, and released by whoever comes first.
"""

from __future__ import annotations

from collections.abc import Sequence

from moorage.conductor.engine.work import Work
from moorage.conductor.operations.kind import NoState, OperationKind
from moorage.conductor.ports import server_ports
from moorage.ledger import leasing
from moorage.ledger.declared import Step, refused


class GiveBack(OperationKind):
    name = leasing.GIVE_BACK
    steps = (Step("begin", cancel=refused("it gives back what nobody needs any more")),)

    def begin(self, batch: Sequence[Work[NoState]]) -> None:
        """Nothing is ever claimed for such a server again, so all that it holds may go."""
        self._tools.network.release([server_ports.holding(work) for work in batch])
        self._tools.placement.release([work.operation.server_uuid for work in batch])
        for work in batch:
            work.finish()

    def give_up(self, work: Work[NoState], error: str) -> None:
        work.fail(error)
