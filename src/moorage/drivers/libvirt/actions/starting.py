"""A server gets its devices and is started, from what its record says: also after the host itself was."""

from __future__ import annotations

import socket
import threading
from collections.abc import Mapping
from typing import Any

import msgspec

from moorage.drivers.contract import PAUSED, DriverError
from moorage.drivers.libvirt.actions import describing
from moorage.drivers.libvirt.adoption import definition, own_disks
from moorage.drivers.libvirt.backend import Backend
from moorage.drivers.libvirt.domain import domain_xml, live_xml
from moorage.drivers.libvirt.moves import whereabouts
from moorage.drivers.libvirt.storage.server_directory import ServerDirectory, ServerRecord
from moorage.drivers.libvirt.vifs.contract import Vif, tap_of


class Starting:
    """What is here is done in a step of a call: a destroy waits for it."""

    def __init__(self, backend: Backend) -> None:
        self._backend = backend
        self._numbering = threading.Lock()

    def start(self, server_uuid: str, *, paused: bool = False) -> None:
        """Runs already: nothing happens. One that stands still, because who started it has died before its
        processors ran, is set going."""
        backend = self._backend
        if backend.domains.is_active(server_uuid):
            if not paused and backend.domains.power(server_uuid) == PAUSED:
                backend.domains.go_on(server_uuid)
            return
        whereabouts.require_here(backend.directory(server_uuid))
        self.define(server_uuid)
        backend.domains.start(server_uuid, paused=paused)

    def define(self, server_uuid: str) -> None:
        """Have libvirt know it as the record says, with its ports plugged. What runs goes on as it is."""
        backend = self._backend
        directory = backend.directory(server_uuid)
        record = self.plug(directory, directory.require())
        own_disks.put_in_place(directory, record.waiting)
        if record.keeps_definition and record.rescue is None:
            self.redefine(server_uuid)
            return
        with self._numbering:  # two guests must not choose the same port, or name
            port = self.serial_port(server_uuid)
            guest = describing.describe(record, directory, backend.settings, serial_port=port)
            name = backend.domains.name_for(server_uuid, guest.name)
            backend.domains.define(server_uuid, domain_xml.render(msgspec.structs.replace(guest, name=name)))

    def redefine(self, server_uuid: str) -> None:
        """One that keeps the definition of another system, if libvirt has still to be told of it."""
        backend, directory = self._backend, self._backend.directory(server_uuid)
        record = directory.require()
        if not record.redefine:
            return
        own_disks.put_in_place(directory, record.waiting)
        with self._numbering:
            settings, port = backend.settings, self.serial_port(server_uuid)
            name = backend.domains.name_for(server_uuid, record.spec.instance_name)
            consoles = (settings.vnc_listen, settings.serial_listen, port)
            marked = describing.mark(record.spec)
            xml = definition.here(record.definition, name, marked, record.vifs, consoles)
            backend.domains.define(server_uuid, xml)
        directory.write(msgspec.structs.replace(directory.require(), redefine=False))

    def plug(self, directory: ServerDirectory, record: ServerRecord) -> ServerRecord:
        """All its ports; they are written down before, so that who comes after us knows what to unplug."""
        ports = record.spec.network
        known = {vif.port_id: vif for vif in record.vifs}
        planned = [known.get(str(port["id"])) or _planned(port) for port in ports]
        if planned != record.vifs:
            record = directory.write(msgspec.structs.replace(record, vifs=planned))
        plugged = [self._backend.vifs.plug(record.spec, port) for port in ports]
        if plugged != record.vifs:
            record = directory.write(msgspec.structs.replace(record, vifs=plugged))
        return record

    def serial_port(self, server_uuid: str) -> int:
        """One that no guest of ours has, running or not, and nobody listens on; 0 if guests need none."""
        if not self._backend.settings.serial_listen:
            return 0
        taken = {port for _, port in self._serial_addresses(server_uuid)}
        first, last = self._backend.settings.serial_ports
        for port in range(first, last + 1):
            if port not in taken and _is_free(self._backend.settings.serial_listen, port):
                return port
        raise DriverError("all ports for serial consoles are taken", retry_elsewhere=True)

    def _serial_addresses(self, but: str) -> list[tuple[str, int]]:
        domains = self._backend.domains
        found = []
        for server_uuid in domains.powers():
            if server_uuid != but:
                try:
                    address = live_xml.serial_address(domains.live(server_uuid, inactive=True))
                except DriverError:  # it went away meanwhile
                    continue
                found += [] if address is None else [address]
        return found


def _planned(port: Mapping[str, Any]) -> Vif:
    return Vif(str(port["id"]), str(port.get("mac", "")), tap_of(str(port["id"])))


def _is_free(address: str, port: int) -> bool:
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    with socket.socket(family) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((address, port))
        except OSError:
            return False
    return True
