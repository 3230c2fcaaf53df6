"""The destination of a live migration: all is there before the guest comes, and goes if it does not."""

from __future__ import annotations

import secrets
from functools import partial

import libvirt
import msgspec

from moorage.drivers.calls import DriverCall
from moorage.drivers.contract import NO_STATE, DriverClosedError, DriverError, Parcel, ServerSpec
from moorage.drivers.image_store import ImageStoreError
from moorage.drivers.libvirt.actions import describing
from moorage.drivers.libvirt.actions.spawning import Spawning
from moorage.drivers.libvirt.actions.starting import Starting
from moorage.drivers.libvirt.adoption import nova_domain
from moorage.drivers.libvirt.backend import Backend
from moorage.drivers.libvirt.domain import guest_options, live_xml
from moorage.drivers.libvirt.host import post_copy
from moorage.drivers.libvirt.host.topology import GuestTopology
from moorage.drivers.libvirt.moves import parcel
from moorage.drivers.libvirt.moves.parcel import Expected
from moorage.drivers.libvirt.storage import qemu_img
from moorage.drivers.libvirt.storage.disks import Disks
from moorage.drivers.libvirt.storage.qemu_img import Check
from moorage.drivers.libvirt.storage.server_directory import ServerDirectory, ServerRecord

_GIB = 1 << 30
_WHOLE = libvirt.VIR_DOMAIN_XML_INACTIVE | libvirt.VIR_DOMAIN_XML_SECURE


class Expecting:
    def __init__(self, backend: Backend, starting: Starting, spawning: Spawning, disks: Disks) -> None:
        self._backend = backend
        self._starting = starting
        self._spawning = spawning
        self._disks = disks

    def expect(self, spec: ServerSpec) -> Parcel:
        backend = self._backend
        backend.require_node(spec.node_uuid)
        with backend.calls.begin(spec.uuid, "expect") as call:
            try:
                self._prepare(call, spec)
            except DriverClosedError:
                raise
            except Exception:
                self._spawning.undo(spec.uuid, call)
                raise
            return parcel.pack(self._expected(backend.directory(spec.uuid)))

    def arrive(self, spec: ServerSpec) -> int:
        """It has come, and is this host's from now on."""
        backend = self._backend
        with backend.at_work(spec.uuid, "take_over") as call, backend.step(spec.uuid, call):
            directory = backend.directory(spec.uuid)
            record = directory.require()
            power = backend.domains.power(spec.uuid)
            if power == NO_STATE:
                raise DriverError(f"server {spec.uuid} is still on its way")
            directory.own(backend.node_uuid)
            directory.write(
                msgspec.structs.replace(
                    self._with_definition(record, directory),
                    spec=spec,
                    is_expected=False,
                    token="",
                    done=spec.work,
                )
            )
            if record.token:
                (directory.path / record.token).unlink(missing_ok=True)
            return power

    def _with_definition(self, record: ServerRecord, directory: ServerDirectory) -> ServerRecord:
        """The one that it has kept so far, if it has: it has brought that along."""
        if not record.is_expected:  # asked again: its source may be gone by now
            return record
        uuid = directory.server_uuid
        xml = self._backend.domains.on(uuid, "look at", lambda domain: str(domain.XMLDesc(_WHOLE)))
        if not nova_domain.is_novas(live_xml.parse(xml)):
            return record
        has_own_disks = all(other.has_own_disks for other in directory.records_of_others())
        return msgspec.structs.replace(
            record, keeps_definition=True, definition=xml, has_own_disks=has_own_disks
        )

    def _prepare(self, call: DriverCall, spec: ServerSpec) -> None:
        backend, directory = self._backend, self._backend.directory(spec.uuid)
        check: Check = partial(backend.calls.check, call)
        with backend.step(spec.uuid, call):
            known = directory.read()
            if known is None or known.begun != spec.work:
                if backend.domains.power_if_there(spec.uuid) is not None:
                    raise DriverError(f"server {spec.uuid} is on this host already")
                if known is not None:  # an earlier visit that nobody undid
                    self._spawning.remove(spec.uuid)
                directory.make()
                with backend.places.chosen(spec) as topology:
                    directory.write(self._record(spec, topology))
        record = directory.require()
        (directory.path / record.token).touch()
        if record.built is None:
            if not directory.others():
                self._make_disks(directory, spec, check)
            with backend.step(spec.uuid, call):
                self._starting.plug(directory, directory.require())
                directory.write(msgspec.structs.replace(directory.require(), built=spec.work))

    def _record(self, spec: ServerSpec, topology: GuestTopology) -> ServerRecord:
        settings, options = self._backend.settings, guest_options.of(spec)
        machine = spec.hardware.get(describing.MACHINE_TYPE) or options.machine_type or settings.machine_type
        hardware = describing.hardware(options, settings, machine) | dict(spec.hardware)
        token = f"token.{secrets.token_hex(16)}"
        return ServerRecord(spec, [], hardware, spec.work, topology=topology, token=token, is_expected=True)

    def _make_disks(self, directory: ServerDirectory, spec: ServerSpec, check: Check) -> None:
        """Of the same sizes; what is in them comes with the guest, and so does its config drive.

        If its image is no longer to be had, all of the disk comes.
        """
        empty = msgspec.structs.replace(spec, config_drive=False)
        try:
            self._disks.make(directory, empty, guest_options.of(spec), check)
        except ImageStoreError:
            size = int(spec.flavor.get("disk") or 0) * _GIB
            if not size or guest_options.of(spec).kernel_id:
                raise
            qemu_img.create(directory.disk, size)

    def _expected(self, directory: ServerDirectory) -> Expected:
        backend, moves = self._backend, self._backend.settings.moves
        record = directory.require()
        is_shared = bool(directory.others())
        return Expected(
            node_uuid=backend.node_uuid,
            uri=moves.uri_of(backend.host),
            path=str(directory.path),
            token=record.token,
            is_shared=is_shared,
            sizes={} if is_shared else _sizes(directory),
            is_flat=not is_shared and not directory.base.exists(),
            address=moves.address,
            vifs=record.vifs,
            topology=record.topology,
            vnc_listen=backend.settings.vnc_listen,
            serial_listen=backend.settings.serial_listen,
            serial_port=self._starting.serial_port(directory.server_uuid),
            post_copy_objection=post_copy.objection() or "",
            takes_adopted=True,
        )


def _sizes(directory: ServerDirectory) -> dict[str, int]:
    sizes = {directory.disk.name: qemu_img.info(directory.disk, "qcow2").virtual_size}
    for path in (directory.ephemeral, directory.swap):
        if path.exists():
            sizes[path.name] = path.stat().st_size
    return sizes
