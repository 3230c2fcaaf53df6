"""The machines that are reserved for this host's servers: none becomes a server's in any other way."""

from __future__ import annotations

from moorage.drivers.contract import ServerSpec
from moorage.drivers.ironic.api.client import IronicClient
from moorage.drivers.ironic.driver import IronicDriver
from moorage.drivers.ironic.nodes.partition import Partition
from moorage.drivers.ironic.reservations.reservation import Reservations
from moorage.drivers.ironic.settings import IronicSettings


class ReservedMachines(IronicDriver):
    _reserved = True

    def __init__(
        self,
        client: IronicClient,
        partition: Partition,
        settings: IronicSettings,
        reservations: Reservations,
    ) -> None:
        super().__init__(client, partition, settings)
        self._reservations = reservations

    def _home(self, spec: ServerSpec) -> str:
        """The pool that the machine was reserved through."""
        return self._reservations.pool_of(spec.uuid) or spec.node_uuid
