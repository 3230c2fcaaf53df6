"""Ports that Neutron has bound: Open vSwitch, also OVN's, and bridges that somebody else looks after.

os-vif makes what has to be there before the guest is; where Neutron leaves that to libvirt, libvirt does it.
What a port may send and get (security groups) is Neutron's to see to: nothing of that is done here.

A late call says only what the port's record here says: record and device go together, with the server.
"""

from __future__ import annotations

import contextlib
import os
import select
import threading
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec

from moorage.drivers.contract import DriverError, ServerSpec
from moorage.drivers.libvirt.vifs.contract import Vif, tap_of
from moorage.drivers.libvirt.vifs.records import PortRecords

_INTEGRATION_BRIDGE = "br-int"
_UNBOUND = {
    "": "Neutron has not said how",
    "unbound": "Neutron has bound it to no host",
    "binding_failed": "Neutron could not bind it to this host",
}
_HYBRID = "it wants a bridge of its own (ovs_hybrid_plug): Neutron's firewall driver has to be openvswitch"
_KERNEL = "system"
_OVS_GROUP = "os_vif_ovs"
_OVS_SECONDS = 30
"""So long Open vSwitch may take to do what it is told."""


@dataclass(frozen=True)
class OsVifSettings:
    records: Path
    ovsdb_connection: str = "unix:/run/openvswitch/db.sock"
    offloads_off: bool = False


class OvsPort(msgspec.Struct, frozen=True):
    """A port with a device of os-vif's making."""

    vif: Vif
    server_uuid: str
    network_id: str
    bridge: str
    datapath_type: str
    """Empty if nobody has said: then the bridge keeps what it has."""


class OsVifs:
    def __init__(self, settings: OsVifSettings) -> None:
        self._settings = settings
        self._records = PortRecords(settings.records, OvsPort)
        self._lock = threading.Lock()
        self._library: _Library | None = None

    def load(self) -> None:
        """Ready for ports, if os-vif is installed.

        To be called in the main thread: it brings eventlet along, and a thread that first loads that never
        ends. Nothing of ours uses it.
        """
        with contextlib.suppress(DriverError), self._lock:
            self._loaded()

    def plug(self, server: ServerSpec, port: Mapping[str, Any]) -> Vif:
        port_id, kind = str(port["id"]), str(port.get("vif_type") or "")
        details: Mapping[str, Any] = port.get("vif_details") or {}
        refusal = _refusal(kind, details)
        if refusal is not None:
            raise DriverError(f"port {port_id} can't be plugged here: {refusal}", retry_elsewhere=True)
        vif = Vif(
            port_id,
            str(port["mac"]),
            tap_of(port_id),
            int(port.get("mtu") or 0),
            offloads_off=self._settings.offloads_off,
        )
        if kind == "bridge":
            bridge = details.get("bridge_name") or f"brq{str(port['network_id'])[:11]}"
            return msgspec.structs.replace(vif, bridge=str(bridge))
        if not details.get("ovs_create_tap"):
            return msgspec.structs.replace(vif, bridge=_ovs_bridge(details), interface_id=port_id)
        self._make(_ovs_port(vif, server, port))
        return vif

    def adopt(self, server: ServerSpec, port: Mapping[str, Any]) -> None:
        """Somebody else has plugged it just as we would have, and it is ours to unplug from now on."""
        port_id, details = str(port["id"]), port.get("vif_details") or {}
        if port.get("vif_type") == "ovs" and details.get("ovs_create_tap"):
            vif = Vif(port_id, str(port["mac"]), tap_of(port_id), int(port.get("mtu") or 0))
            with self._lock:
                self._records.put(port_id, _ovs_port(vif, server, port))

    def unplug(self, server_uuid: str, vif: Vif) -> None:
        """What libvirt plugged, libvirt has unplugged."""
        with self._lock:
            known = self._records.get(vif.port_id)
            if known is not None:
                self._loaded().unplug(known)
                self._records.remove(vif.port_id)

    def close(self) -> None:
        """Nothing of ours runs."""

    def _make(self, port: OvsPort) -> None:
        with self._lock:
            library = self._loaded()
            self._records.put(port.vif.port_id, port)
            library.plug(port)

    def _loaded(self) -> _Library:
        if self._library is None:
            self._library = _Library(self._settings.ovsdb_connection)
        return self._library


def _refusal(kind: str, details: Mapping[str, Any]) -> str | None:
    """Why such a port can't be plugged here; None if it can."""
    if kind in _UNBOUND:
        return _UNBOUND[kind]
    if kind not in ("ovs", "bridge"):
        return f"nobody here knows its type, {kind}"
    return _HYBRID if kind == "ovs" and details.get("ovs_hybrid_plug") else None


def _ovs_port(vif: Vif, server: ServerSpec, port: Mapping[str, Any]) -> OvsPort:
    details: Mapping[str, Any] = port.get("vif_details") or {}
    datapath_type = str(details.get("datapath_type") or "")
    return OvsPort(vif, server.uuid, str(port["network_id"]), _ovs_bridge(details), datapath_type)


def _ovs_bridge(details: Mapping[str, Any]) -> str:
    return str(details.get("bridge_name") or _INTEGRATION_BRIDGE)


class _Library:
    """os-vif, which is configured by a global of oslo.config's: once in a process, and here only."""

    def __init__(self, ovsdb_connection: str) -> None:
        try:
            import os_vif
            import ovs.poller
            import vif_plug_ovs.ovs
            import vif_plug_ovs.privsep
            from oslo_config import cfg
            from vif_plug_ovs.ovsdb import ovsdb_lib
        except ImportError as error:
            raise DriverError("os-vif is not installed on this host: pip install moorage[libvirt]") from error
        cfg.CONF([], project="moorage", default_config_files=[], default_config_dirs=[])
        cfg.CONF.register_opts(vif_plug_ovs.ovs.OvsPlugin.CONFIG_OPTS, _OVS_GROUP)
        cfg.CONF.set_override("ovsdb_connection", ovsdb_connection, _OVS_GROUP)
        cfg.CONF.set_override("ovs_vsctl_timeout", _OVS_SECONDS, _OVS_GROUP)
        ovs.poller.SelectPoll = select.poll  # its own way refuses what is opened after 1,024 other files
        if os.geteuid() == 0:  # else it asks a helper of its own, by sudo
            vif_plug_ovs.privsep.vif_plug.set_client_mode(False)
        os_vif.initialize()
        self._os_vif = os_vif
        self._switch = ovsdb_lib.BaseOVS(cfg.CONF[_OVS_GROUP])  # which connects when it is first asked

    def plug(self, port: OvsPort) -> None:
        """os-vif gives the bridge the datapath type of the port, and takes none for the kernel's: a bridge of
        another one would be torn down, with the ports of all guests."""
        if not port.datapath_type:
            port = msgspec.structs.replace(port, datapath_type=self._datapath_type(port.bridge))
        try:
            self._os_vif.plug(*self._objects(port))
        except self._os_vif.exception.ExceptionBase as error:
            text = f"port {port.vif.port_id} can't be plugged: {_reason(error)}"
            raise DriverError(text, retry_elsewhere=True) from error

    def unplug(self, port: OvsPort) -> None:
        try:
            self._os_vif.unplug(*self._objects(port))
        except self._os_vif.exception.ExceptionBase as error:
            raise DriverError(f"port {port.vif.port_id} can't be unplugged: {_reason(error)}") from error

    def _datapath_type(self, bridge: str) -> str:
        """Of a bridge; one that is not there yet gets what Open vSwitch itself prefers."""
        try:
            found = self._switch.ovsdb.db_find("Bridge", ("name", "=", bridge), columns=["datapath_type"])
            listed = found.execute(check_error=True)
        except Exception as error:  # ovsdbapp has no base of its own for them
            raise DriverError(f"Open vSwitch does not answer: {error}", retry_elsewhere=True) from error
        return str(listed[0]["datapath_type"] if listed else "") or _KERNEL

    def _objects(self, port: OvsPort) -> tuple[Any, Any]:
        """The port and the server, as os-vif calls them."""
        objects = self._os_vif.objects
        vif = objects.vif.VIFOpenVSwitch(
            id=port.vif.port_id,
            address=port.vif.mac,
            vif_name=port.vif.tap,
            bridge_name=port.bridge,
            plugin="ovs",
            has_traffic_filtering=True,
            preserve_on_delete=True,
            network=objects.network.Network(
                id=port.network_id, bridge=port.bridge, **({"mtu": port.vif.mtu} if port.vif.mtu else {})
            ),
            port_profile=objects.vif.VIFPortProfileOpenVSwitch(
                interface_id=port.vif.port_id,
                datapath_type=port.datapath_type,
                create_tap=True,
                create_port=True,
            ),
        )
        return vif, objects.instance_info.InstanceInfo(uuid=port.server_uuid, name=port.server_uuid)


def _reason(error: BaseException) -> str:
    """What went wrong below os-vif, without all that it knows of the port."""
    return str(error.__context__ or error)[:300]
