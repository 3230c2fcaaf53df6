"""A real `nova-compute` with its libvirt driver, inside a host of the libvirt lab: guests are emulated."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from tests.lab.libvirt import programs
from tests.lab.libvirt.hosts import LibvirtHost, LibvirtLab
from tests.lab.nova.pristine import NOVA
from tests.lab.nova.service import VARIABLES
from tests.support import debian
from tests.support.processes import Service
from tests.support.profiles import Settings, ini

_CONTEXTS = ("nova_sys_admin", "vif_plug_ovs_privileged", "privsep_osbrick")


def install() -> None:
    """What makes config drives and disks; `debian.Unavailable` if something may not be installed."""
    debian.install("genisoimage", "dosfstools")


@dataclass(frozen=True)
class LibvirtComputes:
    lab: LibvirtLab

    def __call__(self, directory: Path, *, host: str) -> Service:
        """Its state, in which it keeps its node's UUID, is in `compute-HOST`."""
        inside, own = self.lab.hosts[host], directory / f"compute-{host}.conf"
        state = directory / f"compute-{host}"
        state.mkdir(exist_ok=True)
        files = ("--config-file", directory / "compute.conf", "--config-file", own)
        own.write_text(ini(_settings(inside, state, self.lab.instances, files)))
        found = {
            **VARIABLES,
            "PYTHONPATH": str(programs.binding()),
            "PATH": f"{NOVA.bin()}:/usr/sbin:/usr/bin:/sbin:/bin",
        }
        return inside.start([NOVA.bin() / "nova-compute", *files], directory / f"compute-{host}.log", found)


def _settings(host: LibvirtHost, state: Path, instances: Path, files: tuple[str | Path, ...]) -> Settings:
    """As an operator has it, but for who helps it to rights: whoever runs the lab has them already."""
    helper = " ".join(str(word) for word in (NOVA.bin() / "privsep-helper", *files))
    return {
        "DEFAULT": {
            "host": host.name,
            "my_ip": host.address,
            "state_path": str(state),
            "instances_path": str(instances),
            "compute_driver": "libvirt.LibvirtDriver",
            "initial_cpu_allocation_ratio": "16",
            "reserved_host_memory_mb": "0",
            "graceful_shutdown_timeout": "15",  # also an idle one takes as long as it may
            "manager_shutdown_timeout": "5",
        },
        "libvirt": {"virt_type": "qemu", "cpu_mode": "none"},
        "vnc": {
            "enabled": "true",
            "server_listen": host.address,
            "server_proxyclient_address": host.address,
        },
        "os_vif_ovs": {"ovsdb_connection": "unix:/run/openvswitch/db.sock"},
        "oslo_concurrency": {"lock_path": str(state / "lock")},
        **{context: {"helper_command": helper} for context in _CONTEXTS},
    }
