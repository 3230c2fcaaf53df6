"""How a step is taken at a node again and again, until nothing is left to do; and whether it may be.

A node may be locked for a while, Ironic away, and the node another host's in the middle of it.
"""

from __future__ import annotations

import contextlib
import logging
import time
from collections.abc import Callable
from typing import Protocol, TypeVar, runtime_checkable

from moorage.drivers.calls import Calls, DriverCall
from moorage.drivers.contract import DriverError, MachineFailedError, NotOursError
from moorage.drivers.ironic.api.client import BusyError, IronicClient, IronicError
from moorage.drivers.ironic.api.record import NodeRecord
from moorage.drivers.ironic.api.writer import Writer
from moorage.drivers.ironic.nodes.known_nodes import KnownNodes
from moorage.drivers.ironic.settings import IronicSettings

LOG = logging.getLogger(__name__)
T = TypeVar("T")

Step = Callable[[NodeRecord], bool]
"""Does the next thing to a node; True once nothing is left to do."""


@runtime_checkable
class Compensating(Protocol):
    """A step that undoes what it did to a node after losing it: nothing of it can be swept."""

    def compensate(self, record: NodeRecord) -> None: ...


class Settling:
    def __init__(
        self, client: IronicClient, fleet: KnownNodes, calls: Calls, settings: IronicSettings
    ) -> None:
        self._client = client
        self._fleet = fleet
        self._calls = calls
        self._settings = settings

    def examine(self, node_uuid: str) -> NodeRecord | None:
        """What Ironic itself says of a node, and whether it is in quarantine; None if there is none such."""
        record = self._client.node(node_uuid)
        if record is None:
            self._fleet.drop(node_uuid)
            return None
        return self._fleet.put(record)

    def settle(self, call: DriverCall, node_uuid: str, step: Step, seconds: float) -> None:
        """Take the step until nothing is left to do, with patience for a node that is locked for a while."""
        deadline = time.monotonic() + seconds
        failures = 0
        while True:
            self._calls.check(call)
            if self._fleet.lease.has_lost(node_uuid):
                self._compensate(node_uuid, step)
                raise NotOursError(node_uuid)
            try:
                record = self.examine(node_uuid)
                if record is None:
                    raise DriverError(f"Ironic has no node {node_uuid}", retry_elsewhere=True)
                if step(record):
                    return
                failures = 0
            except BusyError as error:
                failures += 1
                if failures > self._settings.retries:
                    raise DriverError(str(error), retry_elsewhere=True) from error
            except IronicError as error:
                raise DriverError(str(error), retry_elsewhere=True) from error
            if time.monotonic() > deadline:
                raise MachineFailedError(f"node {node_uuid} was not done after {seconds:.0f} s")
            call.wait(self._settings.poll_interval)

    def _compensate(self, node_uuid: str, step: Step) -> None:
        """What was ordered last may have come when the node was another server's already."""
        if isinstance(step, Compensating):
            with contextlib.suppress(IronicError):
                record = self._client.node(node_uuid)
                if record is not None:
                    step.compensate(record)

    def owns(self, call: DriverCall, node_uuid: str) -> bool:
        owns = self._fleet.lease.has(node_uuid, self._settings.ownership_patience)
        self._calls.check(call)
        return owns

    def require(self, call: DriverCall, node_uuid: str) -> None:
        """Another host may have got the node since: then it is that one's to work on."""
        if not self.owns(call, node_uuid):
            raise NotOursError(node_uuid)

    def writer(self, call: DriverCall, node_uuid: str) -> Writer:
        return Writer(self._client, node_uuid, lambda: self.require(call, node_uuid))

    def look_at(self, call: DriverCall, node_uuid: str) -> NodeRecord | None:
        return self.patiently(call, lambda: self.examine(node_uuid))

    def patiently(self, call: DriverCall, ask: Callable[[], T]) -> T:
        for look in range(self._settings.retries):
            self._calls.check(call)
            try:
                return ask()
            except BusyError as error:
                if look == 0:
                    LOG.warning("Ironic can't be asked yet: %s", error)
                call.wait(self._settings.poll_interval)
            except IronicError as error:
                raise DriverError(str(error)) from error
        raise DriverError("Ironic does not answer", retry_elsewhere=True)
