"""Readdress: a port of a server gets one more address, or loses one. Its host need not know."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import msgspec

from moorage.compute.ports import interfaces, shown_addresses
from moorage.conductor.engine import turns
from moorage.conductor.engine.work import Work
from moorage.conductor.operations.kind import OperationKind
from moorage.conductor.ports import server_ports
from moorage.ledger.declared import GIVE_UP, Awaited, Step, Wait
from moorage.network.contract import NetworkError, PortRecord


class Readdress(OperationKind):
    steps = (Step("begin", waits=Wait(Awaited.TURN), cancel=GIVE_UP),)

    def begin(self, batch: Sequence[Work[Any]]) -> None:
        for work in turns.take(self._tools.database, batch):
            try:
                ports = self._change(work)
            except NetworkError as error:
                self.give_up(work, str(error))
                continue
            server_ports.keep(work, ports)
            work.changes["addresses"] = shown_addresses.addresses(ports)
            self._end(work)
            work.finish()

    def _change(self, work: Work[Any]) -> list[PortRecord]:
        raise NotImplementedError

    def give_up(self, work: Work[Any], error: str) -> None:
        """The server has what it had."""
        self._end(work)
        work.fail(error)

    def _end(self, work: Work[Any]) -> None:
        server_id, operation_id = work.server.id, work.operation.id
        work.writes.append(partial(interfaces.rest, server_id=server_id, operation_id=operation_id))


class AddAddressState(msgspec.Struct):
    network: str


class AddAddress(Readdress):
    name = interfaces.ADD_ADDRESS
    state = AddAddressState

    def _change(self, work: Work[AddAddressState]) -> list[PortRecord]:
        return self._tools.network.add_address(server_ports.holding(work), work.state.network)


class RemoveAddressState(msgspec.Struct):
    address: str


class RemoveAddress(Readdress):
    name = interfaces.REMOVE_ADDRESS
    state = RemoveAddressState

    def _change(self, work: Work[RemoveAddressState]) -> list[PortRecord]:
        return self._tools.network.remove_address(server_ports.holding(work), work.state.address)
