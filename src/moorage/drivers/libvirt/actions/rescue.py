"""Rescue: a server boots from another image, with its own disks as further ones."""

from __future__ import annotations

from functools import partial

import msgspec

from moorage.drivers.contract import RUNNING, ServerSpec
from moorage.drivers.libvirt.actions.power import PowerButton
from moorage.drivers.libvirt.actions.starting import Starting
from moorage.drivers.libvirt.adoption.adopted_guests import AdoptedGuests
from moorage.drivers.libvirt.backend import Backend
from moorage.drivers.libvirt.domain import guest_options
from moorage.drivers.libvirt.storage import disks
from moorage.drivers.libvirt.storage.disks import Disks


class Rescuing:
    def __init__(
        self,
        backend: Backend,
        starting: Starting,
        power: PowerButton,
        disks_of: Disks,
        adopted: AdoptedGuests,
    ) -> None:
        self._backend = backend
        self._starting = starting
        self._power = power
        self._disks = disks_of
        self._adopted = adopted

    def rescue(self, spec: ServerSpec) -> int:
        """It is written down before it is switched off: whatever starts it then, starts it in rescue."""
        backend = self._backend
        with backend.at_work(spec.uuid, "rescue") as call:
            check = partial(backend.calls.check, call)
            guest_options.of(spec)
            self._disks.prepare_rescue(spec, check)
            directory = backend.directory(spec.uuid)
            record = directory.require()
            if record.rescue is None or record.rescue.work != spec.work:
                if record.rescue is None:
                    self._adopted.require_movable(spec.uuid)
                    self._power.shut_down(spec.uuid, call, backend.settings.shutdown_timeout)
                    record = self._adopted.settle(spec.uuid, call)
                with backend.step(spec.uuid, call):
                    backend.domains.force_off(spec.uuid)
                    disks.forget_rescue(directory)
                    # What it is rescued with is our own definition: another's has to come back after it.
                    rescued = {"rescue": spec, "redefine": record.keeps_definition}
                    directory.write(msgspec.structs.replace(directory.require(), **rescued))
            self._disks.make_rescue(directory, spec, check)
            with backend.step(spec.uuid, call):
                self._starting.start(spec.uuid)
            return backend.domains.power(spec.uuid)

    def unrescue(self, server_uuid: str) -> int:
        backend = self._backend
        with backend.at_work(server_uuid, "unrescue") as call, backend.step(server_uuid, call):
            directory = backend.directory(server_uuid)
            if directory.require().rescue is not None:
                backend.domains.force_off(server_uuid)
                directory.write(msgspec.structs.replace(directory.require(), rescue=None))
            if backend.domains.power(server_uuid) != RUNNING:
                self._starting.start(server_uuid)
            disks.forget_rescue(directory)
            return backend.domains.power(server_uuid)
