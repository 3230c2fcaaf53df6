"""Who plugs which port: os-vif what Neutron has bound, our own bridges what the built-in pool has."""

from __future__ import annotations

import ipaddress
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from oslo_config import cfg

from moorage.core.config import ConfigError
from moorage.drivers.contract import ServerSpec
from moorage.drivers.libvirt.vifs.bridge import BridgeSettings, BridgeVifs
from moorage.drivers.libvirt.vifs.contract import Vif, Vifs
from moorage.drivers.libvirt.vifs.links import Tunnels
from moorage.drivers.libvirt.vifs.options import DIRECTORY
from moorage.drivers.libvirt.vifs.os_vif import OsVifs, OsVifSettings

_RUNTIME = Path("/run/moorage")


class VifsByPort:
    def __init__(self, built_in: BridgeVifs, neutron: OsVifs) -> None:
        self._built_in = built_in
        self._neutron = neutron

    def plug(self, server: ServerSpec, port: Mapping[str, Any]) -> Vif:
        details: Mapping[str, Any] = port.get("vif_details") or {}
        by: Vifs = self._built_in if details.get("built_in") else self._neutron
        return by.plug(server, port)

    def unplug(self, server_uuid: str, vif: Vif) -> None:
        """Each knows its own."""
        self._built_in.unplug(server_uuid, vif)
        self._neutron.unplug(server_uuid, vif)

    def server_at(self, address: str) -> str | None:
        """Only guests on networks of the pool ask us: Neutron has agents for its own."""
        return self._built_in.server_at(address)

    def close(self) -> None:
        self._built_in.close()
        self._neutron.close()


def connect(conf: cfg.ConfigOpts, host: str, directory: Path) -> VifsByPort:
    """Of this host; from now on what is plugged is kept so. ConfigError if the options make no sense."""
    options = conf.libvirt
    built_in = BridgeVifs(
        BridgeSettings(
            host=host,
            records=directory / DIRECTORY / "built-in",
            runtime=Path(options.network_directory) if options.network_directory else _RUNTIME / host,
            tunnels=_tunnels(options),
        )
    )
    neutron = OsVifs(
        OsVifSettings(
            records=neutron_records(directory),
            ovsdb_connection=options.ovsdb_connection,
            offloads_off=not options.guest_offloads,
        )
    )
    if conf.network.provider == "neutron":
        neutron.load()
    built_in.start()
    return VifsByPort(built_in, neutron)


def neutron_records(directory: Path) -> Path:
    """Where, in the agent's directory, is what os-vif has plugged."""
    return directory / DIRECTORY / "neutron"


def _tunnels(options: Any) -> Tunnels:
    if options.tunnel_peers and not options.tunnel_address:
        raise ConfigError("[libvirt] tunnel_peers needs tunnel_address, too")
    for address in (*filter(None, [options.tunnel_address]), *options.tunnel_peers):
        try:
            ipaddress.ip_address(address)
        except ValueError as error:
            raise ConfigError(f"[libvirt] tunnel_address and tunnel_peers: {error}") from error
    return Tunnels(options.tunnel_address, tuple(options.tunnel_peers), options.tunnel_port)
