"""The machines of this host's servers, some of which are reserved for these: none of those becomes a server's
in any other way."""

from __future__ import annotations

from moorage.drivers.contract import ServerSpec
from moorage.drivers.ironic.api.client import IronicClient
from moorage.drivers.ironic.driver import IronicDriver
from moorage.drivers.ironic.nodes.known_nodes import Records
from moorage.drivers.ironic.nodes.partition import Partition
from moorage.drivers.ironic.reservations.reservation import Reservations
from moorage.drivers.ironic.settings import IronicSettings


class ReservedMachines(IronicDriver):
    def __init__(
        self,
        client: IronicClient,
        partition: Partition,
        settings: IronicSettings,
        reservations: Reservations,
        *,
        reserves: bool,
    ) -> None:
        """`reserves`: whether machines that are free are in a pool, and no nodes."""
        super().__init__(client, partition, settings)
        self._reservations = reservations
        self._reserves = reserves

    def _is_reserved(self, server_uuid: str) -> bool:
        return self._reservations.pool_of(server_uuid) is not None

    def _watched_machines(self) -> Records:
        """A machine that is being cleaned is in no pool: all hosts of the partition look after it then."""
        return self.fleet.listed() if self._reserves else super()._watched_machines()

    def _home(self, spec: ServerSpec) -> str:
        """The pool that the machine was reserved through."""
        return self._reservations.pool_of(spec.uuid) or spec.node_uuid
