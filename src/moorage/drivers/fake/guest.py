"""What would be seen of a guest if there were one: its console log, and what it uses."""

from __future__ import annotations

from typing import Any

from moorage.drivers.fake.servers import FakeServer

_BOOT = (
    "[    0.000000] Linux version 0.0.0-fake (nobody@nowhere) #1 SMP",
    "[    0.000000] Command line: root=LABEL=fake console=ttyS0",
    "[    0.004711] Memory: as much as the flavor says",
    "[    0.101010] smpboot: as many processors as the flavor says",
    "[    0.314159] virtio_blk virtio0: [vda] disk {disk}",
    "[    0.350000] virtio_net virtio1: {interfaces} interfaces",
    "[    0.420000] random: crng init done",
    "[    0.500000] EXT4-fs (vda1): mounted filesystem",
    "[    0.700000] systemd[1]: Reached target Network",
    "[    0.710000] systemd[1]: Reached target Multi-User System",
    "",
    "server {uuid}, of which there is only this log",
    "",
    "login: ",
)


def console_log(server: FakeServer, lines: int | None) -> str:
    text = "\n".join(_BOOT).format(
        uuid=server.uuid, disk=server.disk, interfaces=len(server.interfaces) or "no"
    )
    return text if lines is None else "\n".join(text.split("\n")[-lines:] if lines else ())


def diagnostics(server: FakeServer) -> dict[str, Any]:
    """The same numbers whenever one looks: nothing is going on in there."""
    nic = dict.fromkeys(
        f"{way}_{what}" for way in ("rx", "tx") for what in ("octets", "errors", "drop", "packets", "rate")
    )
    disk = ("read_bytes", "read_requests", "write_bytes", "write_requests", "errors_count")
    return {
        "state": "running",
        "driver": "libvirt",  # what the API knows; it has no word for a driver like this one
        "hypervisor": "fake",
        "hypervisor_os": "linux",
        "uptime": 0,
        "config_drive": False,
        "num_cpus": 1,
        "num_nics": len(server.interfaces),
        "num_disks": 1,
        "cpu_details": [{"id": 0, "time": 0, "utilisation": 0}],
        "disk_details": [{**dict.fromkeys(disk, 0), "name": "vda"}],
        "nic_details": [{**dict.fromkeys(nic, 0), "mac_address": None} for _ in server.interfaces],
        "memory_details": {"maximum": server.ram_mb, "used": 0},
    }
