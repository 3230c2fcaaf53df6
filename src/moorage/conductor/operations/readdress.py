"""Readdress: a port of a server gets one more address, or loses one. Its host need not know."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from moorage.compute.ports import interfaces
from moorage.conductor.engine import turns
from moorage.conductor.engine.runner import Step
from moorage.conductor.engine.work import Work
from moorage.conductor.ports import server_ports
from moorage.db.database import Database
from moorage.network.contract import Network, NetworkError, PortRecord


class Readdress:
    def __init__(self, database: Database, network: Network) -> None:
        self._database = database
        self._network = network

    def steps(self) -> dict[str, Step]:
        return {"begin": self.begin}

    def begin(self, batch: Sequence[Work]) -> None:
        for work in turns.take(self._database, batch):
            try:
                ports = self._change(work)
            except NetworkError as error:
                self.give_up(work, str(error))
                continue
            server_ports.keep(work, ports)
            work.changes["addresses"] = server_ports.addresses(ports)
            self._end(work)
            work.finish()

    def _change(self, work: Work) -> list[PortRecord]:
        holding = server_ports.holding(work)
        if work.operation.kind == interfaces.ADD_ADDRESS:
            return self._network.add_address(holding, work.data["network"])
        return self._network.remove_address(holding, work.data["address"])

    def give_up(self, work: Work, error: str) -> None:
        """The server has what it had."""
        self._end(work)
        work.fail(error)

    def _end(self, work: Work) -> None:
        server_id, operation_id = work.server["id"], work.operation.id
        work.writes.append(partial(interfaces.rest, server_id=server_id, operation_id=operation_id))
