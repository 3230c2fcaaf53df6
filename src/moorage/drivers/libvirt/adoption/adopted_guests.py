"""Guests that keep the definition of another system, for whoever moves them or makes them larger."""

from __future__ import annotations

from functools import partial
from typing import Any

import libvirt
import msgspec

from moorage.drivers.calls import DriverCall
from moorage.drivers.contract import DriverError
from moorage.drivers.libvirt.actions.starting import Starting
from moorage.drivers.libvirt.adoption import definition, nova_domain, own_disks
from moorage.drivers.libvirt.backend import Backend
from moorage.drivers.libvirt.domain import live_xml
from moorage.drivers.libvirt.domain.live_xml import LiveDisk
from moorage.drivers.libvirt.storage.server_directory import ServerRecord

_WHOLE = libvirt.VIR_DOMAIN_XML_INACTIVE | libvirt.VIR_DOMAIN_XML_SECURE


class AdoptedGuests:
    def __init__(self, backend: Backend, starting: Starting) -> None:
        self._backend = backend
        self._starting = starting

    def require_movable(self, server_uuid: str) -> None:
        """Before it is switched off: UnchangedError if it has something that nobody here can carry along."""
        directory = self._backend.directory(server_uuid)
        if directory.require().keeps_definition:
            own_disks.require_known(directory, self._disks(server_uuid))

    def settle(self, server_uuid: str, call: DriverCall) -> ServerRecord:
        """While it is off here: its disks become such as ours are, and what it is started with is written
        down. A guest of our own stays as it is."""
        backend = self._backend
        self.have_own_disks(server_uuid, call)
        with backend.step(server_uuid, call):
            record = backend.directory(server_uuid).require()
            if record.keeps_definition:
                self._starting.redefine(server_uuid)
                record = self._keep(server_uuid, self.definition(server_uuid))
            return record

    def have_own_disks(self, server_uuid: str, call: DriverCall) -> None:
        backend, directory = self._backend, self._backend.directory(server_uuid)
        record = directory.require()
        if record.keeps_definition and not record.has_own_disks:
            xml = self.definition(server_uuid)
            check = partial(backend.calls.check, call)
            token = own_disks.prepare(directory, self._disks(server_uuid), check)
            with backend.step(server_uuid, call):
                settled = definition.settled(xml, directory)
                self._keep(server_uuid, settled, has_own_disks=True, waiting=token, redefine=True)

    def definition(self, server_uuid: str) -> str:
        """What it would be started with: libvirt knows that best, unless it has to be told first, or knows
        only how it is rescued."""
        record = self._backend.directory(server_uuid).require()
        known = self._backend.domains.if_there(server_uuid, lambda domain: str(domain.XMLDesc(_WHOLE)))
        if known and not record.redefine and nova_domain.is_novas(live_xml.parse(known)):
            return known
        if not record.definition:
            raise DriverError(f"nobody knows any more how server {server_uuid} was defined")
        return record.definition

    def with_definition(self, record: ServerRecord, xml: str, **changes: Any) -> ServerRecord:
        """Of a guest that keeps this one here, as far as its flavor and its place allow."""
        directory, cache = self._backend.directory(record.spec.uuid), self._backend.settings.disk_cache
        fitted = definition.fitted(
            definition.moved(xml, directory.path), record.spec, record.topology, directory, cache
        )
        return msgspec.structs.replace(
            record, keeps_definition=True, definition=fitted, redefine=True, **changes
        )

    def root_size(self, server_uuid: str) -> int:
        """Of its root disk, as the guest sees it."""
        directory = self._backend.directory(server_uuid)
        is_adopted = directory.require().keeps_definition
        return own_disks.root_size(directory, self._disks(server_uuid) if is_adopted else [])

    def _disks(self, server_uuid: str) -> list[LiveDisk]:
        return live_xml.disks(live_xml.parse(self.definition(server_uuid)))

    def _keep(self, server_uuid: str, xml: str, **changes: Any) -> ServerRecord:
        directory = self._backend.directory(server_uuid)
        record = directory.require()
        changed = msgspec.structs.replace(record, definition=xml, **changes)
        return record if changed == record else directory.write(changed)
