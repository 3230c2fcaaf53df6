"""Adopting Nova's guests: its ports get a record of ours, it gets one, then our mark. Nothing of the guest
itself changes.

Done again, it finds what is done. Late: the mark says only what the record says, which is written before; a
domain that is gone can't be marked.
"""

from __future__ import annotations

import contextlib
import os
from pathlib import Path
from typing import Any

import libvirt
from oslo_config import cfg

from moorage.core.config import ConfigError
from moorage.drivers.adoption import FoundGuest
from moorage.drivers.contract import DriverError
from moorage.drivers.libvirt.actions import describing
from moorage.drivers.libvirt.adoption import nova_domain
from moorage.drivers.libvirt.adoption.nova_domain import NotAdoptableError, NovaGuest
from moorage.drivers.libvirt.connection import Connection
from moorage.drivers.libvirt.domain import live_xml, mark
from moorage.drivers.libvirt.domains import speaking
from moorage.drivers.libvirt.host.node_identity import FILE, node_uuid
from moorage.drivers.libvirt.settings import LibvirtSettings
from moorage.drivers.libvirt.storage import qemu_img
from moorage.drivers.libvirt.storage.server_directory import ServerDirectory, ServerRecord
from moorage.drivers.libvirt.vifs.connect import neutron_records
from moorage.drivers.libvirt.vifs.os_vif import OsVifs, OsVifSettings

_PREFIX = "moorage"
_WHOLE = libvirt.VIR_DOMAIN_XML_INACTIVE | libvirt.VIR_DOMAIN_XML_SECURE


def adopt(conf: cfg.ConfigOpts, directory: Path, *, dry_run: bool) -> list[FoundGuest]:
    """All of Nova's guests that are not ours yet; `directory` is the agent's."""
    settings = LibvirtSettings.from_conf(conf)
    connection = Connection(settings.connection_uri, settings.reconnect_seconds)
    try:
        return adopt_all(connection, settings.instances_path, directory, dry_run=dry_run)
    finally:
        connection.close()


def adopt_all(connection: Connection, instances: Path, directory: Path, *, dry_run: bool) -> list[FoundGuest]:
    if not (directory / FILE).exists():
        raise ConfigError(
            f"{directory / FILE} is not there: put Nova's own file of that name into it, or a file with the "
            "UUID that `openstack hypervisor list` shows for this host, so that it stays the same node"
        )
    uuid, vifs = node_uuid(directory), OsVifs(OsVifSettings(neutron_records(directory)))

    def ask(opened: Any) -> list[FoundGuest]:
        found = []
        for domain in opened.listAllDomains(libvirt.VIR_CONNECT_LIST_DOMAINS_PERSISTENT):
            xml = str(domain.XMLDesc(_WHOLE))
            described = live_xml.parse(xml)
            if nova_domain.is_novas(described) and mark.read(described) is None:
                place = ServerDirectory(instances, domain.UUIDString(), uuid)
                found.append(_adopt(domain, xml, place, None if dry_run else vifs))
        return sorted(found, key=lambda guest: guest.name)

    with speaking("adopt the guests"):
        return connection.run(ask)


def _adopt(domain: Any, xml: str, directory: ServerDirectory, vifs: OsVifs | None) -> FoundGuest:
    """`vifs` get to know its ports; without any, nothing changes."""
    try:
        guest = nova_domain.read(live_xml.parse(xml), directory.node_uuid, directory.path)
    except NotAdoptableError as error:
        return FoundGuest(domain.UUIDString(), domain.name(), str(error))
    if vifs is not None:
        for port in guest.spec.network:
            vifs.adopt(guest.spec, port)
        _write(directory, guest, xml)
        _mark(domain, guest)
    return FoundGuest(domain.UUIDString(), domain.name())


def _write(directory: ServerDirectory, guest: NovaGuest, xml: str) -> None:
    work = guest.spec.work
    hardware = {describing.MACHINE_TYPE: guest.machine} if guest.machine else {}
    directory.make()
    directory.write(
        ServerRecord(
            guest.spec,
            guest.vifs,
            hardware,
            begun=work,
            built=work,
            done=work,
            topology=guest.topology,
            keeps_definition=True,
            definition=xml,
        )
    )
    directory.own(directory.node_uuid)
    _keep_base(directory)


def _keep_base(directory: ServerDirectory) -> None:
    """What its disk lies over gets the name that such a file has here: snapshots of what runs need it."""
    with contextlib.suppress(DriverError, OSError):  # on another file system, say: they have to do without
        found = qemu_img.info(directory.disk, "qcow2")
        if found.backing_filename and found.backing_filename_format == "raw":
            os.link(directory.path / found.backing_filename, directory.base)


def _mark(domain: Any, guest: NovaGuest) -> None:
    """In what it is started with, and in what runs."""
    flags = libvirt.VIR_DOMAIN_AFFECT_CONFIG
    if domain.isActive():
        flags |= libvirt.VIR_DOMAIN_AFFECT_LIVE
    text = mark.text(describing.mark(guest.spec))
    domain.setMetadata(libvirt.VIR_DOMAIN_METADATA_ELEMENT, text, _PREFIX, mark.NAMESPACE, flags)
