"""Ports of the built-in pool: a bridge for each network, set up and looked after by this agent.

A network is there as long as a server of this host has a port on it. What is plugged is written down before
it is plugged, and forgotten after it is unplugged: whatever happens in between, `mend` makes the one follow
from the other, when the agent starts and from time to time.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from moorage.core.periodic import Periodic
from moorage.drivers.contract import ServerSpec
from moorage.drivers.libvirt.vifs import guest_network, rules
from moorage.drivers.libvirt.vifs.address_leases import AddressLeases
from moorage.drivers.libvirt.vifs.contract import Vif
from moorage.drivers.libvirt.vifs.guest_network import GuestNetwork, GuestPort
from moorage.drivers.libvirt.vifs.links import Links, Tunnels
from moorage.drivers.libvirt.vifs.records import PortRecords
from moorage.drivers.libvirt.vifs.system_commands import SystemCommands

LOG = logging.getLogger(__name__)
_MEND_SECONDS = 30.0


@dataclass(frozen=True)
class BridgeSettings:
    host: str
    records: Path
    """Where it is written what is plugged: that has to survive a reboot."""
    runtime: Path
    """What programs need that serve the networks; others may read it."""
    tunnels: Tunnels = field(default_factory=Tunnels)
    commands: SystemCommands = field(default_factory=SystemCommands)


class BridgeVifs:
    def __init__(self, settings: BridgeSettings) -> None:
        self._commands = settings.commands
        self._links = Links(settings.commands, settings.host, settings.tunnels)
        self._leases = AddressLeases(settings.commands, settings.runtime)
        self._records = PortRecords(settings.records, GuestPort)
        self._lock = threading.Lock()
        self._mending = Periodic("guest networks", _MEND_SECONDS, self.mend)

    def start(self) -> None:
        """Whatever a crash or a reboot left is as it should be soon, and from then on."""
        self._mending.start()

    def close(self) -> None:
        self._mending.stop()

    def knows(self, port_id: str) -> bool:
        return self._records.get(port_id) is not None

    def server_at(self, address: str) -> str | None:
        """Whose address it is; None if it is nobody's here, or that of two, on networks that overlap."""
        found = {port.server_uuid for port in self._records.all().values() if address in port.addresses}
        return found.pop() if len(found) == 1 else None

    def plug(self, server: ServerSpec, port: Mapping[str, Any]) -> Vif:
        wanted = guest_network.read(server.uuid, port)
        with self._lock:
            self._records.put(wanted.vif.port_id, wanted)
            ports = list(self._records.all().values())
            self._links.ensure_network(wanted.network)
            self._apply_rules(ports)  # before the tap: not a packet goes without them
            self._links.ensure_tap(wanted)
            self._leases.ensure(wanted.network, _of(wanted.network, ports))
        return wanted.vif

    def unplug(self, server_uuid: str, vif: Vif) -> None:
        with self._lock:
            known = self._records.get(vif.port_id)
            if known is None:
                return
            self._links.remove(vif.tap)
            self._records.remove(vif.port_id)
            ports = list(self._records.all().values())
            self._apply_rules(ports)
            left = _of(known.network, ports)
            if left:
                self._leases.ensure(known.network, left)
            else:
                self._remove(known.network.bridge)
                self._remove(known.network.tunnel)

    def mend(self) -> None:
        """All that is written down is there, and what carries our mark beside that is not."""
        with self._lock:
            ports = list(self._records.all().values())
            networks = {port.network for port in ports}
            wanted = {port.vif.tap for port in ports}
            wanted |= {name for network in networks for name in (network.bridge, network.tunnel)}
            strays = (self._links.ours() | self._leases.known()) - wanted
            if ports or strays:
                self._apply_rules(ports)
            for name in sorted(strays):
                LOG.warning("device %s is removed: no server has it", name)
                self._remove(name)
            for network in networks:
                self._links.ensure_network(network)
                self._leases.ensure(network, _of(network, ports))
            for port in ports:
                self._links.ensure_tap(port)

    def _remove(self, name: str) -> None:
        """A device that no server has any more; with a bridge goes what serves it."""
        self._leases.remove(name)
        self._links.remove(name)

    def _apply_rules(self, ports: list[GuestPort]) -> None:
        self._commands.run("nft", "-f", "-", stdin=rules.ruleset(ports))


def _of(network: GuestNetwork, ports: list[GuestPort]) -> list[GuestPort]:
    return [port for port in ports if port.network.bridge == network.bridge]
