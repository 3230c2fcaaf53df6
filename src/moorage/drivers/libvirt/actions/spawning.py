"""How a server comes to this host, is made anew, and leaves: every step looks first at what is there."""

from __future__ import annotations

import logging
from collections.abc import Callable
from functools import partial

import msgspec

from moorage.drivers.calls import DriverCall, Interruption
from moorage.drivers.contract import DriverClosedError, DriverError, ServerSpec
from moorage.drivers.libvirt.actions import describing
from moorage.drivers.libvirt.actions.starting import Starting
from moorage.drivers.libvirt.adoption.adopted_guests import AdoptedGuests
from moorage.drivers.libvirt.backend import Backend
from moorage.drivers.libvirt.domain import guest_options
from moorage.drivers.libvirt.moves import copying
from moorage.drivers.libvirt.storage import disks
from moorage.drivers.libvirt.storage.disks import Disks
from moorage.drivers.libvirt.storage.server_directory import ServerDirectory, ServerRecord

LOG = logging.getLogger(__name__)


class Spawning:
    def __init__(self, backend: Backend, starting: Starting, disks_of: Disks, adopted: AdoptedGuests) -> None:
        self._backend = backend
        self._starting = starting
        self._disks = disks_of
        self._adopted = adopted

    def spawn(self, spec: ServerSpec) -> int:
        """If it fails, nothing is left of it, so that it may be tried again, here or elsewhere."""
        backend = self._backend
        backend.require_node(spec.node_uuid)
        with backend.calls.begin(spec.uuid, "spawn") as call:
            known = backend.directory(spec.uuid).read()
            if known is not None and known.done is not None:
                power = backend.domains.power_if_there(spec.uuid)
                if power is not None:
                    return power
            try:
                return self._make(call, spec, known)
            except DriverClosedError:
                raise
            except Exception:
                if known is None or known.done is None:  # else it was a server before
                    self.undo(spec.uuid, call)
                raise

    def rebuild(self, spec: ServerSpec) -> int:
        """Its disks are replaced, once it is known that there is something to replace them with."""
        backend = self._backend
        with backend.at_work(spec.uuid, "rebuild") as call:
            directory = backend.directory(spec.uuid)
            record = directory.require()
            if record.done == spec.work and record.built == spec.work:
                return backend.domains.power(spec.uuid)
            options = guest_options.of(spec)
            if record.begun != spec.work:
                self._disks.prepare(spec, options, partial(backend.calls.check, call))
                machine = self._machine(
                    options.machine_type, record.hardware.get(describing.MACHINE_TYPE, "")
                )
                hardware = describing.hardware(options, backend.settings, machine)
                with backend.step(spec.uuid, call):
                    backend.domains.force_off(spec.uuid)
                    disks.forget(directory)
                    directory.write(
                        ServerRecord(spec, record.vifs, hardware, begun=spec.work, topology=record.topology)
                    )
            return self._finish(call, spec)

    def destroy(self, server_uuid: str) -> None:
        """It wins over whatever else is at work; what can't be removed now is removed the next time."""
        backend = self._backend
        backend.calls.interrupt(server_uuid, Interruption.DESTROYED)
        with backend.calls.begin(server_uuid, "destroy"):
            self.remove(server_uuid)

    def _make(self, call: DriverCall, spec: ServerSpec, known: ServerRecord | None) -> int:
        backend = self._backend
        options = guest_options.of(spec)
        if known is None or known.begun != spec.work:
            wanted = options.machine_type or spec.hardware.get(describing.MACHINE_TYPE, "")
            machine = self._machine(wanted, "")
            hardware = describing.hardware(options, backend.settings, machine) | dict(spec.hardware)
            hardware[describing.MACHINE_TYPE] = machine
            with backend.step(spec.uuid, call):
                if known is not None:  # an earlier attempt that nobody undid
                    self.remove(spec.uuid)
                directory = backend.directory(spec.uuid)
                directory.make()
                is_kept = self._keep_disks(directory, spec)
                with backend.places.chosen(spec) as topology:
                    record = ServerRecord(spec, [], hardware, begun=spec.work, topology=topology)
                    directory.write(self._with_definition(record, directory) if is_kept else record)
                directory.own(backend.node_uuid)
        return self._finish(call, spec)

    def _finish(self, call: DriverCall, spec: ServerSpec) -> int:
        backend, directory = self._backend, self._backend.directory(spec.uuid)
        check: Callable[[], None] = partial(backend.calls.check, call)
        if directory.require().built is None:
            self._disks.make(directory, spec, guest_options.of(spec), check)
            with backend.step(spec.uuid, call):
                directory.write(msgspec.structs.replace(directory.require(), built=spec.work))
        self._adopted.have_own_disks(spec.uuid, call)
        with backend.step(spec.uuid, call):
            if spec.power_on:
                self._starting.start(spec.uuid, paused=spec.paused)
            else:
                self._starting.define(spec.uuid)
            directory.write(msgspec.structs.replace(directory.require(), done=spec.work))
        return backend.domains.power(spec.uuid)

    def _with_definition(self, record: ServerRecord, directory: ServerDirectory) -> ServerRecord:
        """Of a server with the disks that another host has left; also with the definition, if it kept one."""
        record = msgspec.structs.replace(record, built=record.begun)
        left = next((other for other in directory.records_of_others() if other.keeps_definition), None)
        if left is None:
            return record
        if not left.definition:
            raise DriverError(f"nobody knows any more how server {directory.server_uuid} was defined")
        disks_of_it = {"has_own_disks": left.has_own_disks, "waiting": left.waiting}
        return self._adopted.with_definition(record, left.definition, **disks_of_it)

    def _keep_disks(self, directory: ServerDirectory, spec: ServerSpec) -> bool:
        """Whether another host has left them here. Those of a build that failed there are not to be used."""
        if not directory.others():
            return False
        if spec.keep_disk and directory.disk.exists():
            LOG.info("server %s comes from a host with the same storage: its disk is kept", spec.uuid)
            return True
        if directory.is_done_elsewhere():  # we are late: nothing here is ours
            raise DriverError(f"server {spec.uuid} is another host's")
        disks.forget(directory)
        return False

    def undo(self, server_uuid: str, call: DriverCall) -> None:
        if call.interruption is not None:  # whoever destroys it does that
            return
        try:
            self.remove(server_uuid)
        except Exception as error:
            LOG.warning("what a failed spawn of server %s left stays for now: %s", server_uuid, error)

    def remove(self, server_uuid: str) -> None:
        backend, directory = self._backend, self._backend.directory(server_uuid)
        with backend.locks.hold(server_uuid):
            backend.domains.remove(server_uuid)
            record = directory.read()
            for vif in directory.plugged():
                backend.vifs.unplug(server_uuid, vif)
            if record is not None and record.token:
                backend.domains.connection.run(
                    lambda connection: copying.forget_pool(connection, server_uuid)
                )
            directory.remove()

    def _machine(self, wanted: str, had: str) -> str:
        """A version, once and for all."""
        settings = self._backend.settings
        if not wanted and had:
            return had
        return self._backend.domains.machine_type(
            settings.architecture, wanted or settings.machine_type, settings.virt_type
        )
