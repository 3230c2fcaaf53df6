"""A server gets another flavor on the host that it is on, and can get its old one back until that is final.

Its disks are kept as they were (`before`), and so is what the driver remembers (`ServerRecord.earlier`). The
record says `earlier` only when the copies are whole, and says it no more only when they were put back: so
whatever breaks off in between is done again from the beginning.
"""

from __future__ import annotations

import shutil
from functools import partial

import msgspec

from moorage.drivers.contract import ServerSpec
from moorage.drivers.libvirt.actions.power import PowerButton
from moorage.drivers.libvirt.actions.starting import Starting
from moorage.drivers.libvirt.adoption.adopted_guests import AdoptedGuests
from moorage.drivers.libvirt.backend import Backend
from moorage.drivers.libvirt.moves import keeping, whereabouts
from moorage.drivers.libvirt.storage import disks
from moorage.drivers.libvirt.storage.server_directory import ServerDirectory, ServerRecord


class ResizesInPlace:
    def __init__(
        self, backend: Backend, starting: Starting, power: PowerButton, adopted: AdoptedGuests
    ) -> None:
        self._backend = backend
        self._starting = starting
        self._power = power
        self._adopted = adopted

    def resize(self, spec: ServerSpec) -> int:
        backend = self._backend
        backend.require_node(spec.node_uuid)
        with backend.at_work(spec.uuid, "resize_in_place") as call:
            directory = backend.directory(spec.uuid)
            record = directory.require()
            if record.earlier is not None and record.done == spec.work:
                return backend.domains.power(spec.uuid)
            if record.begun != spec.work:
                disks.require_room(spec.flavor, self._adopted.root_size(spec.uuid))
                self._adopted.require_movable(spec.uuid)
                self._power.shut_down(spec.uuid, call, 0)
                self._adopted.settle(spec.uuid, call)
                shutil.rmtree(directory.before, ignore_errors=True)
                keeping.keep(directory, partial(backend.calls.check, call))
                with backend.step(spec.uuid, call):
                    self._begin(directory, directory.require(), spec)
            with backend.step(spec.uuid, call):
                if directory.require().built is None:
                    whereabouts.require_here(
                        directory
                    )  # late: another host may share the directory, and own it
                    disks.grow(directory, spec)
                    directory.write(msgspec.structs.replace(directory.require(), built=spec.work))
                if spec.power_on:
                    self._starting.start(spec.uuid)
                else:
                    self._starting.define(spec.uuid)
                directory.write(msgspec.structs.replace(directory.require(), done=spec.work))
            return backend.domains.power(spec.uuid)

    def _begin(self, directory: ServerDirectory, record: ServerRecord, spec: ServerSpec) -> None:
        with self._backend.places.chosen(spec) as topology:
            earlier = msgspec.structs.replace(
                record, token="", earlier=None, redefine=record.keeps_definition
            )
            now = ServerRecord(
                spec,
                record.vifs,
                record.hardware | spec.hardware,
                begun=spec.work,
                topology=topology,
                earlier=earlier,
            )
            if earlier.keeps_definition:
                now = self._adopted.with_definition(now, earlier.definition, has_own_disks=True)
            directory.write(now)
        if record.token:
            (directory.path / record.token).unlink(missing_ok=True)

    def keep(self, server_uuid: str) -> None:
        with self._backend.at_work(server_uuid, "keep_resize") as call, self._backend.step(server_uuid, call):
            keeping.forget(self._backend.directory(server_uuid))

    def undo(self, server_uuid: str) -> None:
        backend = self._backend
        with backend.at_work(server_uuid, "undo_resize") as call, backend.step(server_uuid, call):
            directory = backend.directory(server_uuid)
            record = directory.require()
            earlier = record.earlier
            if earlier is None:
                keeping.forget(directory)
                return
            whereabouts.require_here(directory)  # late: its disks may be those of a guest of another host
            backend.domains.force_off(server_uuid)
            keeping.put_back(directory)
            for name, path in (("ephemeral", directory.ephemeral), ("swap", directory.swap)):
                if not int(earlier.spec.flavor.get(name) or 0):
                    path.unlink(missing_ok=True)
            with backend.places.chosen(earlier.spec) as topology:
                if earlier.keeps_definition:  # which says where it is; what it asked for is not known here
                    topology = earlier.topology
                directory.write(msgspec.structs.replace(earlier, vifs=record.vifs, topology=topology))
            shutil.rmtree(directory.before, ignore_errors=True)
            self._starting.define(server_uuid)
