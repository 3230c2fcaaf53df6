"""What a running server uses, in the words that the API has for it since version 2.48."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import libvirt

from moorage.drivers.contract import CRASHED, PAUSED, RUNNING, SHUT_DOWN, SUSPENDED
from moorage.drivers.libvirt.backend import Backend
from moorage.drivers.libvirt.domain import live_xml
from moorage.drivers.libvirt.domain.live_xml import LiveInterface

_STATES = {
    RUNNING: "running",
    PAUSED: "paused",
    SHUT_DOWN: "shutdown",
    CRASHED: "crashed",
    SUSPENDED: "suspended",
}
_MIB_IN_KIB = 1024
_STATISTICS = (
    libvirt.VIR_DOMAIN_STATS_STATE
    | libvirt.VIR_DOMAIN_STATS_CPU_TOTAL
    | libvirt.VIR_DOMAIN_STATS_BALLOON
    | libvirt.VIR_DOMAIN_STATS_VCPU
    | libvirt.VIR_DOMAIN_STATS_INTERFACE
    | libvirt.VIR_DOMAIN_STATS_BLOCK
)


def diagnose(backend: Backend, server_uuid: str) -> dict[str, Any]:
    record = backend.directory(server_uuid).require()
    power = backend.domains.power(server_uuid)

    def ask(domain: Any) -> tuple[dict[str, Any], str]:
        found = domain.connect().domainListGetStats([domain], _STATISTICS)
        return dict(found[0][1]), str(domain.XMLDesc())

    statistics, xml = backend.domains.on(server_uuid, "look at", ask)
    interfaces = {one.tap: one for one in live_xml.interfaces(live_xml.parse(xml))}
    cpus = _cpus(statistics)
    disks, cards = _disks(statistics), _cards(statistics, interfaces)
    return {
        "state": _STATES.get(power, "pending"),
        "driver": "libvirt",
        "hypervisor": backend.settings.virt_type,
        "hypervisor_os": "linux",
        "uptime": None,
        "config_drive": record.spec.config_drive,
        "num_cpus": len(cpus),
        "num_nics": len(cards),
        "num_disks": len(disks),
        "cpu_details": cpus,
        "disk_details": disks,
        "nic_details": cards,
        "memory_details": _memory(statistics),
    }


def _cpus(statistics: Mapping[str, Any]) -> list[dict[str, Any]]:
    numbers = range(int(statistics.get("vcpu.current", 0)))
    return [
        {"id": number, "time": statistics.get(f"vcpu.{number}.time", 0), "utilisation": None}
        for number in numbers
    ]


def _disks(statistics: Mapping[str, Any]) -> list[dict[str, Any]]:
    found = []
    for number in range(int(statistics.get("block.count", 0))):
        prefix = f"block.{number}"
        found.append(
            {
                "read_bytes": statistics.get(f"{prefix}.rd.bytes", 0),
                "read_requests": statistics.get(f"{prefix}.rd.reqs", 0),
                "write_bytes": statistics.get(f"{prefix}.wr.bytes", 0),
                "write_requests": statistics.get(f"{prefix}.wr.reqs", 0),
                "errors_count": statistics.get(f"{prefix}.errors"),
            }
        )
    return found


def _cards(statistics: Mapping[str, Any], interfaces: Mapping[str, LiveInterface]) -> list[dict[str, Any]]:
    """As the guest sees it. Of devices that it did not make, libvirt counts as the host sees it."""
    found = []
    for number in range(int(statistics.get("net.count", 0))):
        prefix = f"net.{number}"
        interface = interfaces.get(str(statistics.get(f"{prefix}.name", "")))
        card: dict[str, Any] = {"mac_address": "" if interface is None else interface.mac}
        directions = ("rx", "tx")
        is_turned = interface is not None and interface.kind == "ethernet"
        for ours, theirs in zip(directions, directions[::-1] if is_turned else directions, strict=True):
            card |= {
                f"{ours}_octets": statistics.get(f"{prefix}.{theirs}.bytes", 0),
                f"{ours}_packets": statistics.get(f"{prefix}.{theirs}.pkts", 0),
                f"{ours}_drop": statistics.get(f"{prefix}.{theirs}.drop", 0),
                f"{ours}_errors": statistics.get(f"{prefix}.{theirs}.errs", 0),
                f"{ours}_rate": None,
            }
        found.append(card)
    return found


def _memory(statistics: Mapping[str, Any]) -> dict[str, int]:
    maximum = int(statistics.get("balloon.maximum", 0)) // _MIB_IN_KIB
    unused = statistics.get("balloon.unused")
    used = maximum - int(unused) // _MIB_IN_KIB if unused is not None else maximum
    return {"maximum": maximum, "used": used}
