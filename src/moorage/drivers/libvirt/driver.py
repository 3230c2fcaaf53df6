"""The driver `libvirt`: virtual machines of this host. Its parts do the work; here is who does what."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import libvirt
import msgspec

from moorage.core.periodic import Periodic
from moorage.drivers.calls import Interruption
from moorage.drivers.contract import RUNNING, DriverClosedError, DriverError, Node, Parcel, ServerSpec
from moorage.drivers.image_caching import CachedImage
from moorage.drivers.libvirt import guest_places
from moorage.drivers.libvirt.actions.consoles import Consoles
from moorage.drivers.libvirt.actions.diagnostics import diagnose
from moorage.drivers.libvirt.actions.interfaces import Interfaces
from moorage.drivers.libvirt.actions.power import PowerButton
from moorage.drivers.libvirt.actions.rescue import Rescuing
from moorage.drivers.libvirt.actions.snapshots import Snapshots
from moorage.drivers.libvirt.actions.spawning import Spawning
from moorage.drivers.libvirt.actions.starting import Starting
from moorage.drivers.libvirt.adoption.adopted_guests import AdoptedGuests
from moorage.drivers.libvirt.backend import Backend
from moorage.drivers.libvirt.domain import guest_options
from moorage.drivers.libvirt.lifecycle_events import LifecycleEvents
from moorage.drivers.libvirt.moves import evacuation
from moorage.drivers.libvirt.moves import parcel as parcels
from moorage.drivers.libvirt.moves.cold import ColdMoves
from moorage.drivers.libvirt.moves.expecting import Expecting
from moorage.drivers.libvirt.moves.in_place import ResizesInPlace
from moorage.drivers.libvirt.moves.live import LiveMoves
from moorage.drivers.libvirt.storage.disks import Disks
from moorage.drivers.parts import (
    ARRIVED,
    ConsoleAddress,
    ConsoleType,
    GuestAddressing,
    ServerTopology,
    StartPermit,
)

LOG = logging.getLogger(__name__)

_CHORES = 60.0


class LibvirtDriver:
    def __init__(self, backend: Backend, node: Callable[[], Node]) -> None:
        """`node` says what this host offers now."""
        self.backend = backend
        self._node = node
        disks, self.starting = Disks(backend.images), Starting(backend)
        adopted = AdoptedGuests(backend, self.starting)
        self._spawning = Spawning(backend, self.starting, disks, adopted)
        self._power = PowerButton(backend, self.starting)
        self._rescue = Rescuing(backend, self.starting, self._power, disks, adopted)
        self._cold = ColdMoves(backend, self.starting, self._power, self._spawning, adopted)
        self._in_place = ResizesInPlace(backend, self.starting, self._power, adopted)
        self._expecting = Expecting(backend, self.starting, self._spawning, disks)
        self._live = LiveMoves(backend, adopted)
        self._snapshots = Snapshots(backend)
        self._interfaces = Interfaces(backend)
        self._consoles = Consoles(backend)
        self._events = LifecycleEvents(backend)
        self._closed = threading.Event()
        self._chores = Periodic("libvirt-chores", _CHORES, self.tidy_up)
        self._chores.start()

    def nodes(self) -> Sequence[Node]:
        return [self._node()]

    def spawn(self, spec: ServerSpec) -> int:
        return self._spawning.spawn(spec)

    def rebuild(self, spec: ServerSpec) -> int:
        return self._spawning.rebuild(spec)

    def destroy(self, server_uuid: str, node_uuid: str) -> None:
        self._spawning.destroy(server_uuid)

    def forsake(self, server_uuid: str) -> None:
        """Late: a deleted server never comes back, wherever."""
        with self.backend.locks.hold(server_uuid):
            self.backend.directory(server_uuid).forget_others()

    def interrupt(self, server_uuid: str) -> None:
        self.backend.calls.interrupt(server_uuid, Interruption.DESTROYED)

    def start(self, server_uuid: str, node_uuid: str) -> int:
        return self._power.start(server_uuid)

    def stop(self, server_uuid: str, node_uuid: str) -> int:
        return self._power.stop(server_uuid)

    def reboot(self, server_uuid: str, node_uuid: str, *, hard: bool) -> int:
        return self._power.reboot(server_uuid, hard=hard)

    def pause(self, server_uuid: str, node_uuid: str) -> int:
        return self._power.pause(server_uuid)

    def unpause(self, server_uuid: str, node_uuid: str) -> int:
        return self._power.unpause(server_uuid)

    def suspend(self, server_uuid: str, node_uuid: str) -> int:
        return self._power.suspend(server_uuid)

    def resume(self, server_uuid: str, node_uuid: str) -> int:
        return self._power.resume(server_uuid)

    def rescue(self, spec: ServerSpec) -> int:
        return self._rescue.rescue(spec)

    def unrescue(self, server_uuid: str, node_uuid: str) -> int:
        return self._rescue.unrescue(server_uuid)

    def snapshot(self, server_uuid: str, node_uuid: str, image_id: str) -> None:
        self._snapshots.snapshot(server_uuid, image_id)

    def hand_over(self, server_uuid: str, node_uuid: str) -> Parcel:
        return self._cold.hand_over(server_uuid)

    def check_resize(self, server_uuid: str, node_uuid: str, flavor: Mapping[str, Any]) -> None:
        self._cold.check_resize(server_uuid, flavor)

    def take_over(self, spec: ServerSpec, parcel: Parcel) -> int:
        if parcel.get(ARRIVED):
            return self._expecting.arrive(spec)
        return self._cold.take_over(spec, parcels.unpack_handed_over(parcel))

    def resize_in_place(self, spec: ServerSpec) -> int:
        return self._in_place.resize(spec)

    def keep_resize(self, server_uuid: str, node_uuid: str) -> None:
        self._in_place.keep(server_uuid)

    def undo_resize(self, server_uuid: str, node_uuid: str) -> None:
        self.backend.calls.interrupt(server_uuid, Interruption.DESTROYED)
        self._in_place.undo(server_uuid)

    def expect(self, spec: ServerSpec) -> Parcel:
        return self._expecting.expect(spec)

    def live_migrate(self, server_uuid: str, node_uuid: str, destination: Parcel) -> Parcel:
        return self._live.migrate(server_uuid, destination)

    def abort_live_migration(self, server_uuid: str) -> None:
        self._live.abort(server_uuid)

    def hurry_live_migration(self, server_uuid: str) -> None:
        self._live.hurry(server_uuid)

    def attach_interface(self, server_uuid: str, node_uuid: str, port: Mapping[str, Any]) -> None:
        self._interfaces.attach(server_uuid, port)

    def detach_interface(self, server_uuid: str, node_uuid: str, port_id: str) -> None:
        self._interfaces.detach(server_uuid, port_id)

    def trigger_crash_dump(self, server_uuid: str, node_uuid: str) -> None:
        """A second one, after a crash of the agent, is as harmless as the first one was not."""
        self._require_running(server_uuid)
        self.backend.domains.on(server_uuid, "interrupt", lambda domain: domain.injectNMI(0))

    def change_password(self, server_uuid: str, node_uuid: str, password: str) -> None:
        options = guest_options.of(self.backend.directory(server_uuid).require().spec)
        if not options.guest_agent:
            raise DriverError("the server's image does not say hw_qemu_guest_agent=yes")
        self._require_running(server_uuid)
        user = options.admin_user or ("Administrator" if options.localtime else "root")
        self.backend.domains.on(
            server_uuid, "set the password of", lambda domain: domain.setUserPassword(user, password, 0)
        )

    def console_log(self, server_uuid: str, node_uuid: str, lines: int | None) -> str:
        return self._consoles.log(server_uuid, lines)

    def console(self, server_uuid: str, node_uuid: str, console_type: ConsoleType) -> ConsoleAddress:
        return self._consoles.address(server_uuid, console_type)

    def diagnostics(self, server_uuid: str, node_uuid: str) -> dict[str, Any]:
        self._require_running(server_uuid)
        return diagnose(self.backend, server_uuid)

    def topology(self, server_uuid: str, node_uuid: str) -> ServerTopology:
        return guest_places.told(self.backend.directory(server_uuid).require().topology)

    def hardware(self, server_uuid: str, node_uuid: str) -> dict[str, str]:
        return dict(self.backend.directory(server_uuid).require().hardware)

    def recall(self, server_uuid: str) -> ServerSpec:
        record = self.backend.directory(server_uuid).require()
        return msgspec.structs.replace(record.spec, hardware=dict(record.hardware), admin_password="")

    def start_by_permit(self, permit: Callable[[str], StartPermit | None]) -> None:
        self.backend.domains.gate.use(permit)

    def watch(self, changed: Callable[[str, int], None]) -> None:
        self._events.tell(changed)

    def power(self, server_uuid: str, node_uuid: str) -> int:
        return self.backend.domains.power(server_uuid)

    def servers(self) -> dict[str, int]:
        return self.backend.domains.powers()

    def progress(self) -> dict[str, int]:
        return self._live.progress()

    def server_at(self, address: str) -> str | None:
        vifs = self.backend.vifs
        return vifs.server_at(address) if isinstance(vifs, GuestAddressing) else None

    def close(self) -> None:
        if not self._closed.is_set():
            self._closed.set()
            self.backend.calls.close()
            self._chores.stop()
            self._events.close()
            self.backend.vifs.close()
            self.backend.domains.connection.close()

    def _require_running(self, server_uuid: str) -> None:
        if self.backend.domains.power(server_uuid) != RUNNING:
            raise DriverError(f"server {server_uuid} does not run")

    def cached_images(self) -> Sequence[CachedImage]:
        return self.backend.images.listed(self.backend.settings.unused_image_seconds)

    def expire_images(self) -> None:
        removed = self.backend.images.remove_unused(self.backend.settings.unused_image_seconds)
        if removed:
            LOG.info("removed unused images: %s", ", ".join(removed))

    def tidy_up(self) -> None:
        """What has grown or is unused."""
        try:
            self._consoles.trim_logs()
            evacuation.settle(self.backend)
            evacuation.forget_left(self.backend)
            self.backend.domains.remove_unstuck(lambda uuid: self.backend.directory(uuid).read() is not None)
            self.expire_images()
        except (DriverError, DriverClosedError, libvirt.libvirtError) as error:
            LOG.warning("chores have to wait: %s", error)
