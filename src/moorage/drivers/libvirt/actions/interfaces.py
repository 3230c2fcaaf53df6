"""Ports that come to a server, or leave it, while it runs or not."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

import libvirt
import msgspec

from moorage.drivers.calls import DriverCall
from moorage.drivers.contract import DriverError
from moorage.drivers.libvirt.backend import Backend
from moorage.drivers.libvirt.domain import domain_xml, live_xml
from moorage.drivers.libvirt.storage.server_directory import ServerDirectory
from moorage.drivers.libvirt.vifs.contract import Vif, tap_of

_LOOKS = 0.1
_CONFIG = libvirt.VIR_DOMAIN_AFFECT_CONFIG
_LIVE = libvirt.VIR_DOMAIN_AFFECT_LIVE


class Interfaces:
    def __init__(self, backend: Backend) -> None:
        self._backend = backend

    def attach(self, server_uuid: str, port: Mapping[str, Any]) -> None:
        """If it fails, the port is unplugged and forgotten again."""
        backend = self._backend
        with backend.at_work(server_uuid, "attach_interface") as call:
            directory = backend.directory(server_uuid)
            port_id = str(port["id"])
            with backend.step(server_uuid, call):
                record = directory.require()
                had = any(str(other["id"]) == port_id for other in record.spec.network)
                vif = record.vif(port_id) or Vif(port_id, str(port.get("mac", "")), tap_of(port_id))
                self._remember(directory, port, vif)
                try:
                    vif = backend.vifs.plug(record.spec, port)
                    self._remember(directory, port, vif)
                    self._add(server_uuid, vif, record.hardware.get("vif_model", "virtio"))
                except Exception:
                    if not had:
                        self._forget(directory, vif)
                    raise

    def detach(self, server_uuid: str, port_id: str) -> None:
        """The guest has to let go of the device; until it does, the port stays the server's."""
        backend = self._backend
        with backend.at_work(server_uuid, "detach_interface") as call:
            directory = backend.directory(server_uuid)
            vif = directory.require().vif(port_id)
            if vif is None:
                return
            self._take(server_uuid, vif, call)
            with backend.step(server_uuid, call):
                self._forget(directory, vif)

    def _add(self, server_uuid: str, vif: Vif, model: str) -> None:
        xml = domain_xml.text(domain_xml.interface(vif, model))

        def call(domain: Any) -> None:
            for flag, wanted in ((_CONFIG, True), (_LIVE, bool(domain.isActive()))):
                if wanted and _interface(domain, vif, flag) is None:
                    domain.attachDeviceFlags(xml, flag)

        self._backend.domains.on(server_uuid, "give a port to", call)

    def _take(self, server_uuid: str, vif: Vif, call: DriverCall) -> None:
        """From what it starts with first, so that it does not come back; then from the guest that runs."""
        backend, settings = self._backend, self._backend.settings
        for _ in range(settings.detach_attempts):
            with backend.step(server_uuid, call):
                backend.domains.on(server_uuid, "take a port from", lambda domain: _ask_for(domain, vif))
            deadline = time.monotonic() + settings.detach_timeout
            while time.monotonic() < deadline:
                if not self._has(server_uuid, vif):
                    return
                call.wait(_LOOKS)
                backend.calls.check(call)
        raise DriverError(f"the guest does not let go of the device of port {vif.port_id}")

    def _has(self, server_uuid: str, vif: Vif) -> bool:
        def call(domain: Any) -> bool:
            return bool(domain.isActive()) and _interface(domain, vif, _LIVE) is not None

        return self._backend.domains.on(server_uuid, "look at", call)

    def _remember(self, directory: ServerDirectory, port: Mapping[str, Any], vif: Vif) -> None:
        record = directory.require()
        network = [one for one in record.spec.network if str(one["id"]) != vif.port_id]
        vifs = [one for one in record.vifs if one.port_id != vif.port_id]
        spec = msgspec.structs.replace(record.spec, network=[*network, dict(port)])
        directory.write(msgspec.structs.replace(record, spec=spec, vifs=[*vifs, vif]))

    def _forget(self, directory: ServerDirectory, vif: Vif) -> None:
        """Unplugged first: who comes after us knows it until then."""
        self._backend.vifs.unplug(directory.server_uuid, vif)
        record = directory.require()
        network = [one for one in record.spec.network if str(one["id"]) != vif.port_id]
        vifs = [one for one in record.vifs if one.port_id != vif.port_id]
        spec = msgspec.structs.replace(record.spec, network=network)
        directory.write(msgspec.structs.replace(record, spec=spec, vifs=vifs))


def _interface(domain: Any, vif: Vif, flag: int) -> live_xml.LiveInterface | None:
    xml = domain.XMLDesc(libvirt.VIR_DOMAIN_XML_INACTIVE if flag == _CONFIG else 0)
    return live_xml.interface(live_xml.parse(xml), vif.mac)


def _ask_for(domain: Any, vif: Vif) -> None:
    kept = _interface(domain, vif, _CONFIG)
    if kept is not None:
        domain.detachDeviceFlags(kept.element, _CONFIG)
    live = _interface(domain, vif, _LIVE) if domain.isActive() else None
    if live is not None:
        try:
            domain.detachDeviceFlags(live.element, _LIVE)
        except libvirt.libvirtError as error:  # it is on its way already
            if error.get_error_code() not in (
                libvirt.VIR_ERR_OPERATION_FAILED,
                libvirt.VIR_ERR_DEVICE_MISSING,
            ):
                raise
