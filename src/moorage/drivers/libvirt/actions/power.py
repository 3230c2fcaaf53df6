"""Power: start, stop, reboot, pause, suspend. All of it may be asked again."""

from __future__ import annotations

import time
from typing import Any

import libvirt

from moorage.drivers.calls import DriverCall
from moorage.drivers.contract import PAUSED, RUNNING, SHUT_DOWN, SUSPENDED, DriverError
from moorage.drivers.libvirt.actions.starting import Starting
from moorage.drivers.libvirt.backend import Backend
from moorage.drivers.libvirt.domain import guest_options
from moorage.drivers.libvirt.moves import whereabouts

_LOOKS = 0.1


class PowerButton:
    def __init__(self, backend: Backend, starting: Starting) -> None:
        self._backend = backend
        self._starting = starting

    def start(self, server_uuid: str) -> int:
        with self._backend.at_work(server_uuid, "start") as call:
            return self._run(server_uuid, call)

    def stop(self, server_uuid: str) -> int:
        with self._backend.at_work(server_uuid, "stop") as call:
            self.shut_down(server_uuid, call, self.patience(server_uuid))
            return self._backend.domains.power(server_uuid)

    def reboot(self, server_uuid: str, *, hard: bool) -> int:
        """A soft one that the guest does not follow becomes a hard one, which also gives it new devices."""
        backend = self._backend
        with backend.at_work(server_uuid, "reboot") as call:
            if hard:
                with backend.step(server_uuid, call):
                    backend.domains.force_off(server_uuid)
                    self._forget_saved(server_uuid)
            else:
                self.shut_down(server_uuid, call, backend.settings.soft_reboot_timeout)
            return self._run(server_uuid, call)

    def pause(self, server_uuid: str) -> int:
        def call(domain: Any) -> None:
            if domain.state()[0] != libvirt.VIR_DOMAIN_PAUSED:
                domain.suspend()

        with self._backend.at_work(server_uuid, "pause"):
            self._backend.domains.on(server_uuid, "pause", call)
            return self._backend.domains.power(server_uuid)

    def unpause(self, server_uuid: str) -> int:
        with self._backend.at_work(server_uuid, "unpause"):
            self._backend.domains.go_on(server_uuid)
            power = self._backend.domains.power(server_uuid)
            if power != RUNNING:
                raise DriverError(f"a server of power state {power} can't be unpaused")
            return power

    def suspend(self, server_uuid: str) -> int:
        """Not in a step, since it takes long; a destroy aborts it. One that a dead agent has begun goes on in
        libvirt, and is waited for."""

        def call(domain: Any) -> None:
            if domain.isActive():
                try:
                    domain.managedSave(0)
                except libvirt.libvirtError:
                    if domain.isActive() or not domain.hasManagedSaveImage():
                        raise
            elif not domain.hasManagedSaveImage():
                raise DriverError("a server that does not run can't be suspended")

        with self._backend.at_work(server_uuid, "suspend") as at_work:
            self._backend.calls.check(at_work)
            self._backend.domains.on(server_uuid, "suspend", call)
            return self._backend.domains.power(server_uuid)

    def resume(self, server_uuid: str) -> int:
        return self.start(server_uuid)

    def shut_down(self, server_uuid: str, call: DriverCall, seconds: float) -> None:
        """By the power button, and by force if the guest does not follow; one that can't follow is not asked,
        nor one that libvirtd has forgotten.

        What a suspended server has in its memory is kept.
        """
        backend, again = self._backend, self._backend.settings.shutdown_retry_interval
        deadline, pressed = time.monotonic() + seconds, float("-inf")
        while backend.domains.power(server_uuid) == RUNNING and time.monotonic() < deadline:
            if backend.domains.is_forgotten(server_uuid):
                break
            backend.calls.check(call)
            if time.monotonic() - pressed >= again:
                backend.domains.on(server_uuid, "shut down", _press)
                pressed = time.monotonic()
            call.wait(_LOOKS)
        if backend.domains.power(server_uuid) not in (SHUT_DOWN, SUSPENDED):
            with backend.step(server_uuid, call):
                backend.domains.force_off(server_uuid)

    def _run(self, server_uuid: str, call: DriverCall) -> int:
        backend = self._backend
        with backend.step(server_uuid, call):
            power = backend.domains.power_if_there(server_uuid)
            if power == SUSPENDED:
                whereabouts.require_here(backend.directory(server_uuid))
                backend.domains.start(server_uuid)
            elif power != RUNNING:
                self._starting.start(server_uuid)
            if backend.domains.power(server_uuid) == PAUSED:
                backend.domains.go_on(server_uuid)
        return backend.domains.power(server_uuid)

    def patience(self, server_uuid: str) -> float:
        record = self._backend.directory(server_uuid).require()
        asked = guest_options.of(record.spec).shutdown_seconds
        return self._backend.settings.shutdown_timeout if asked is None else asked

    def _forget_saved(self, server_uuid: str) -> None:
        def call(domain: Any) -> None:
            if domain.hasManagedSaveImage():
                domain.managedSaveRemove()

        if self._backend.domains.power_if_there(server_uuid) == SUSPENDED:
            self._backend.domains.on(server_uuid, "forget the memory of", call)


def _press(domain: Any) -> None:
    if domain.isActive():
        domain.shutdownFlags(libvirt.VIR_DOMAIN_SHUTDOWN_ACPI_POWER_BTN)
