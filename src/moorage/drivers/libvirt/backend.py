"""What all parts of the driver work with: libvirt's domains, the servers' directories, images and ports."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from moorage.drivers.calls import Calls, DriverCall
from moorage.drivers.contract import DriverError
from moorage.drivers.image_store import ImageStore
from moorage.drivers.libvirt.domains import Domains
from moorage.drivers.libvirt.guest_places import GuestPlaces
from moorage.drivers.libvirt.server_locks import ServerLocks
from moorage.drivers.libvirt.settings import LibvirtSettings
from moorage.drivers.libvirt.storage.image_cache import ImageCache
from moorage.drivers.libvirt.storage.server_directory import ServerDirectory
from moorage.drivers.libvirt.vifs.contract import Vifs


@dataclass(frozen=True)
class Backend:
    host: str
    node_uuid: str
    settings: LibvirtSettings
    domains: Domains
    store: ImageStore
    images: ImageCache
    vifs: Vifs
    places: GuestPlaces
    calls: Calls = field(default_factory=Calls)
    locks: ServerLocks = field(default_factory=ServerLocks)

    def directory(self, server_uuid: str) -> ServerDirectory:
        return ServerDirectory(self.settings.instances_path, server_uuid, self.node_uuid)

    def require_node(self, node_uuid: str) -> None:
        if node_uuid != self.node_uuid:
            raise DriverError(f"host {self.host} has no node {node_uuid}", retry_elsewhere=True)

    @contextmanager
    def at_work(self, server_uuid: str, what: str) -> Iterator[DriverCall]:
        """A call for a server that is here; DriverError if it is not."""
        with self.calls.begin(server_uuid, what) as call:
            self.directory(server_uuid).require()
            yield call

    @contextmanager
    def step(self, server_uuid: str, call: DriverCall) -> Iterator[None]:
        """Something that a destroy waits for, and that does not begin after one. It must not take long."""
        with self.locks.hold(server_uuid):
            self.calls.check(call)
            yield
