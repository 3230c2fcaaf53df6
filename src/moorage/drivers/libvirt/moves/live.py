"""The source of a live migration.

What is asked again after a crash looks first where the guest is: still here, on its way (libvirtd goes on
without us), or gone. Once it is gone, that is written down until the server is destroyed here.
"""

from __future__ import annotations

import contextlib
import logging
import time
from collections.abc import Sequence
from functools import partial
from typing import Any

import libvirt
import msgspec

from moorage.drivers.calls import DriverCall, Interruption
from moorage.drivers.contract import DriverError, Parcel, UnchangedError
from moorage.drivers.libvirt.adoption.adopted_guests import AdoptedGuests
from moorage.drivers.libvirt.backend import Backend
from moorage.drivers.libvirt.domain import live_xml
from moorage.drivers.libvirt.moves import copying, destination_xml, parcel, peer
from moorage.drivers.libvirt.moves.migration_job import MigrationJob, Sending, Whereabouts, look
from moorage.drivers.libvirt.moves.parcel import Expected
from moorage.drivers.libvirt.storage.server_directory import Departure, ServerDirectory
from moorage.drivers.libvirt.vifs.contract import Vif
from moorage.drivers.parts import ARRIVED

LOG = logging.getLogger(__name__)

_LOOKS = 0.3
_FLAGS = (
    libvirt.VIR_MIGRATE_LIVE
    | libvirt.VIR_MIGRATE_PEER2PEER
    | libvirt.VIR_MIGRATE_PERSIST_DEST
    | libvirt.VIR_MIGRATE_UNDEFINE_SOURCE
)
_MIGRATABLE = libvirt.VIR_DOMAIN_XML_MIGRATABLE | libvirt.VIR_DOMAIN_XML_SECURE
STEP = "live_migrate"


class LiveMoves:
    def __init__(self, backend: Backend, adopted: AdoptedGuests) -> None:
        self._backend = backend
        self._adopted = adopted
        self._jobs: dict[str, MigrationJob] = {}

    def migrate(self, server_uuid: str, destination: Parcel) -> Parcel:
        with self._backend.at_work(server_uuid, STEP) as call:
            expected = parcel.unpack(destination, Expected)
            if self._is_adopted(server_uuid) and not expected.takes_adopted:
                raise UnchangedError(
                    "the server was adopted from Nova, and the release on its destination knows of no such "
                    "servers: upgrade it first"
                )
            sending: Sending | None = None
            found = self._whereabouts(server_uuid, expected.node_uuid)
            if found is Whereabouts.HERE:
                if not expected.is_shared:
                    self._adopted.require_movable(server_uuid)
                sending = self._depart(server_uuid, expected, call)
            if found is not Whereabouts.GONE:
                self._watch(server_uuid, sending, call)
            self._note_arrival(server_uuid, call)
        return {ARRIVED: True}

    def abort(self, server_uuid: str) -> None:
        self._backend.calls.interrupt(server_uuid, Interruption.ABORTED, STEP)

    def hurry(self, server_uuid: str) -> None:
        self._backend.calls.interrupt(server_uuid, Interruption.HURRIED, STEP)

    def progress(self) -> dict[str, int]:
        return {server_uuid: job.percent for server_uuid, job in list(self._jobs.items())}

    # ------------------------------------------------------------ where it is

    def _whereabouts(self, server_uuid: str, node_uuid: str) -> Whereabouts:
        departure = self._backend.directory(server_uuid).require().departure
        has_gone = departure is not None and departure.arrived
        found = Whereabouts.GONE if has_gone else look(self._backend, server_uuid)
        if found is Whereabouts.HERE:
            return found
        if departure is None:
            raise DriverError(f"server {server_uuid} does not run on this host")
        if departure.node_uuid != node_uuid:
            raise DriverError(f"server {server_uuid} goes to node {departure.node_uuid}")
        return found

    def _note_arrival(self, server_uuid: str, call: DriverCall) -> None:
        """From now on it is not started here, and has nothing plugged here.

        The ports are unplugged before they are bound at the destination alone: OVN has to see that they are
        down here. If they go over while they are up at both ends, Neutron overlooks that they are up there.
        """
        backend, directory = self._backend, self._backend.directory(server_uuid)
        with backend.locks.hold(server_uuid):
            if call.interruption is Interruption.DESTROYED:
                raise DriverError(Interruption.DESTROYED.value)
            record = directory.require()
            if record.departure is not None:
                departure = msgspec.structs.replace(record.departure, arrived=True)
                directory.write(msgspec.structs.replace(record, departure=departure))
            self._unplug(server_uuid, record.vifs)

    def _unplug(self, server_uuid: str, vifs: Sequence[Vif]) -> None:
        """What fails is tried again when the server is removed here; it has gone all the same."""
        for vif in vifs:
            try:
                self._backend.vifs.unplug(server_uuid, vif)
            except DriverError as error:
                LOG.warning("port %s of server %s stays plugged for now: %s", vif.port_id, server_uuid, error)

    def _forget_departure(self, server_uuid: str) -> None:
        with self._backend.locks.hold(server_uuid), contextlib.suppress(DriverError):
            directory = self._backend.directory(server_uuid)
            directory.write(msgspec.structs.replace(directory.require(), departure=None))

    # ------------------------------------------------------------ it goes

    def _depart(self, server_uuid: str, expected: Expected, call: DriverCall) -> Sending:
        backend, directory = self._backend, self._backend.directory(server_uuid)
        xml = str(backend.domains.on(server_uuid, "describe", lambda domain: domain.XMLDesc(_MIGRATABLE)))
        domain = live_xml.parse(xml)
        _require_one_storage(directory, expected)
        copied = {} if expected.is_shared else destination_xml.copied_disks(domain, str(directory.path))
        self._require_sizes(server_uuid, copied, expected)
        with peer.connected(expected.uri) as connection:
            _require_cpu(connection, domain)
            if not expected.is_shared:
                self._send_files(connection, directory, expected, call)
        xml = destination_xml.render(xml, str(directory.path), expected)
        with backend.step(server_uuid, call):
            departure = Departure(expected.node_uuid, expected.uri)
            directory.write(msgspec.structs.replace(directory.require(), departure=departure, origin=""))
            _require_one_storage(directory, expected)  # it may have waited: who is not expected is not sent
            return Sending(
                backend.settings.connection_uri,
                server_uuid,
                expected.uri,
                partial(backend.domains.gate.require, server_uuid),
                self._parameters(xml, copied, expected),
                self._flags(copied, expected, is_adopted=self._is_adopted(server_uuid)),
            )

    def _is_adopted(self, server_uuid: str) -> bool:
        return self._backend.directory(server_uuid).require().keeps_definition

    def _require_sizes(self, server_uuid: str, copied: dict[str, str], expected: Expected) -> None:
        for target, name in copied.items():
            size = self._backend.domains.on(server_uuid, "look at a disk of", partial(_size, target))
            if expected.sizes.get(name) != size:
                raise DriverError(
                    f"{name} has {size} bytes here, and {expected.sizes.get(name)} at its destination"
                )

    def _send_files(
        self, connection: Any, directory: ServerDirectory, expected: Expected, call: DriverCall
    ) -> None:
        """What libvirt does not: the guest has its config drive open, so that must stay the same one."""

        def check() -> None:
            self._backend.calls.check(call)

        with copying.pool(connection, directory.server_uuid, expected.path) as pool:
            for path in (directory.config_drive, directory.console_log):
                if path.exists():
                    copying.upload(pool, path.name, path, check)

    def _parameters(self, xml: str, copied: dict[str, str], expected: Expected) -> dict[str, Any]:
        settings = self._backend.settings.moves
        parameters: dict[str, Any] = {
            libvirt.VIR_MIGRATE_PARAM_DEST_XML: xml,
            libvirt.VIR_MIGRATE_PARAM_PERSIST_XML: xml,
        }
        if settings.bandwidth:
            parameters[libvirt.VIR_MIGRATE_PARAM_BANDWIDTH] = settings.bandwidth
        if expected.address:
            parameters[libvirt.VIR_MIGRATE_PARAM_URI] = f"tcp://{_bracketed(expected.address)}"
        if copied:
            parameters[libvirt.VIR_MIGRATE_PARAM_MIGRATE_DISKS] = list(copied)
        return parameters

    def _flags(self, copied: dict[str, str], expected: Expected, *, is_adopted: bool) -> int:
        settings, flags = self._backend.settings.moves, _FLAGS
        if copied:
            # Whether what another system has made of an image is what we make of it, nobody can say.
            is_flat = expected.is_flat or is_adopted
            flags |= libvirt.VIR_MIGRATE_NON_SHARED_DISK if is_flat else libvirt.VIR_MIGRATE_NON_SHARED_INC
        post_copy = settings.post_copy and not expected.post_copy_objection
        if settings.post_copy and not post_copy:
            LOG.warning("no post-copy to %s: %s", expected.uri, expected.post_copy_objection)
        for wanted, flag in (
            (post_copy, libvirt.VIR_MIGRATE_POSTCOPY),
            (settings.auto_converge and not post_copy, libvirt.VIR_MIGRATE_AUTO_CONVERGE),
            (settings.native_tls, libvirt.VIR_MIGRATE_TLS),
            (settings.unsafe, libvirt.VIR_MIGRATE_UNSAFE),
        ):
            flags |= flag if wanted else 0
        return int(flags)

    # ------------------------------------------------------------ it is on its way

    def _watch(self, server_uuid: str, sending: Sending | None, call: DriverCall) -> None:
        """Until it is gone; DriverError if it has stayed."""
        job = self._jobs[server_uuid] = MigrationJob(self._backend, server_uuid)
        try:
            while True:
                has_ended = sending is None or sending.wait(_LOOKS)
                self._obey(job, call)
                found = look(self._backend, server_uuid) if has_ended else Whereabouts.MOVING
                if found is not Whereabouts.MOVING:
                    break
                if has_ended:  # not begun by us, or libvirtd was restarted: nobody tells us
                    time.sleep(_LOOKS)
                with contextlib.suppress(DriverError):  # it went while we looked
                    job.look_after()
        finally:
            del self._jobs[server_uuid]
        self._require_gone(server_uuid, found, sending, call)

    def _obey(self, job: MigrationJob, call: DriverCall) -> None:
        if call.hurried:
            job.hurry()
        elif call.interruption is not None:
            job.abort()
        with contextlib.suppress(DriverError):  # only that the agent ends: what is aborted has to end itself
            self._backend.calls.check(call)

    def _require_gone(
        self, server_uuid: str, found: Whereabouts, sending: Sending | None, call: DriverCall
    ) -> None:
        if found is Whereabouts.GONE:
            return
        self._forget_departure(server_uuid)
        if found is Whereabouts.LOST:
            self._backend.domains.force_off(server_uuid)
            raise DriverError("its destination failed in post-copy: what it had in memory is lost")
        if call.interruption is not None and not call.hurried:
            raise DriverError(call.interruption.value)
        error = "libvirt gave up the migration" if sending is None else sending.error
        raise DriverError(f"the live migration failed: {error}")


def _require_one_storage(directory: ServerDirectory, expected: Expected) -> None:
    """The destination's token is seen here if, and only if, both hosts have one directory."""
    if (directory.path / expected.token).exists() != expected.is_shared:
        what = "does not expect the server any more" if expected.is_shared else "has the same storage"
        raise DriverError(f"the destination {what}")


def _require_cpu(connection: Any, domain: Any) -> None:
    """Whether the destination's processor is enough for the guest that runs here."""
    cpu = destination_xml.cpu(domain)
    kind = domain.find("os/type")
    if not cpu or kind is None:
        return
    found = connection.compareHypervisorCPU(
        None, kind.get("arch"), kind.get("machine"), domain.get("type"), cpu, 0
    )
    if found == libvirt.VIR_CPU_COMPARE_INCOMPATIBLE:
        raise DriverError("the destination's processor lacks what the guest's has")


def _size(target: str, domain: Any) -> int:
    return int(domain.blockInfo(target, 0)[0])


def _bracketed(address: str) -> str:
    return f"[{address}]" if ":" in address else address
