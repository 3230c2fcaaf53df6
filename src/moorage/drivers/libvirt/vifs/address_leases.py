"""A dnsmasq for each network of guests: it gives them their addresses, and answers their questions for names.

It runs on while the agent is away, and only guests of this host ask it, so it knows only those.
"""

from __future__ import annotations

import contextlib
import ipaddress
import os
import shutil
import signal
import time
from collections.abc import Sequence
from pathlib import Path

from moorage.drivers.contract import DriverError
from moorage.drivers.libvirt.vifs.guest_network import GuestNetwork, GuestPort
from moorage.drivers.libvirt.vifs.records import write
from moorage.drivers.libvirt.vifs.system_commands import SystemCommands

_ACCOUNT = "nobody"
"""Whose rights it works with, once it listens."""
_STOP_SECONDS = 10.0


class AddressLeases:
    def __init__(self, commands: SystemCommands, directory: Path) -> None:
        """`directory` is for all to read: what is in there is no secret, and dnsmasq is not root for long."""
        self._commands = commands
        self._directory = directory

    def ensure(self, network: GuestNetwork, ports: Sequence[GuestPort]) -> None:
        """It runs, and knows these ports of the network and no others."""
        files = _Files(self._directory / network.bridge)
        files.directory.mkdir(mode=0o755, parents=True, exist_ok=True)
        changed = _write(files.configuration, configuration(network, files.hosts, files.pid))
        told = _write(files.hosts, hosts(ports))
        pid = files.running()
        if pid is not None and not changed:
            if told:
                os.kill(pid, signal.SIGHUP)
            return
        self._stop(files)
        self._commands.run("dnsmasq", f"--conf-file={files.configuration}")

    def remove(self, bridge: str) -> None:
        files = _Files(self._directory / bridge)
        self._stop(files)
        shutil.rmtree(files.directory, ignore_errors=True)

    def known(self) -> set[str]:
        """The bridges that there is one for."""
        if not self._directory.is_dir():
            return set()
        return {path.name for path in self._directory.iterdir() if path.is_dir()}

    def _stop(self, files: _Files) -> None:
        deadline = time.monotonic() + _STOP_SECONDS
        while (pid := files.running()) is not None:
            if time.monotonic() > deadline:
                raise DriverError(f"dnsmasq (process {pid}) does not end")
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGTERM)
            time.sleep(0.02)


class _Files:
    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.configuration = directory / "dnsmasq.conf"
        self.hosts = directory / "hosts"
        self.pid = directory / "pid"

    def running(self) -> int | None:
        """The process that was started with this configuration, and not one that has its number by now."""
        try:
            pid = int(self.pid.read_text())
            command = Path(f"/proc/{pid}/cmdline").read_bytes()
        except (OSError, ValueError):
            return None
        return pid if str(self.configuration).encode() in command else None


def configuration(network: GuestNetwork, hosts_file: Path, pid_file: Path) -> str:
    net = ipaddress.IPv4Network(network.cidr)
    routes = [*network.routes, ("0.0.0.0/0", network.gateway)] if network.routes else []
    lines = [
        "# Made by Moorage, and made again whenever it changes.",
        f"user={_ACCOUNT}",
        f"pid-file={pid_file}",
        f"interface={network.bridge}",
        "except-interface=lo",
        "bind-interfaces",
        "no-hosts",
        f"dhcp-range={net.network_address},static,{net.netmask},24h",
        "dhcp-authoritative",
        "leasefile-ro",
        f"dhcp-hostsfile={hosts_file}",
        f"dhcp-option=option:router,{network.gateway}",
        f"dhcp-option=option:dns-server,{','.join(network.dns_servers or (network.gateway,))}",
    ]
    if network.mtu:
        lines.append(f"dhcp-option=option:mtu,{network.mtu}")
    if routes:
        told = ",".join(f"{to},{by}" for to, by in routes)
        lines.append(f"dhcp-option=option:classless-static-route,{told}")
    return "\n".join([*lines, ""])


def hosts(ports: Sequence[GuestPort]) -> str:
    """Who gets which address."""
    return "".join(
        f"{port.vif.mac},{port.addresses[0]}\n" for port in sorted(ports, key=lambda port: port.vif.mac)
    )


def _write(path: Path, content: str) -> bool:
    """Whether that is news."""
    if path.exists() and path.read_text() == content:
        return False
    write(path, content.encode())
    path.chmod(0o644)
    return True
