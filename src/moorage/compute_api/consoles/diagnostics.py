"""`/servers/{id}/diagnostics`: what a running server uses."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from moorage.bus.contract import QuestionKind, Refusal
from moorage.compute.servers.server import Server
from moorage.compute.servers.server_errors import InvalidState, ServiceUnavailable
from moorage.compute.servers.states import PowerNumber
from moorage.compute_api.consoles.asking import ask
from moorage.compute_api.microversions import Microversion
from moorage.compute_api.servers.servers import find
from moorage.compute_api.service import ComputeService
from moorage.http.call import Call
from moorage.http.errors import HttpError
from moorage.http.reply import Reply

_COUNTED = ("octets", "errors", "drop", "packets", "rate")
_PLAIN = (
    *("state", "driver", "hypervisor", "hypervisor_os", "uptime", "config_drive"),
    *("num_cpus", "num_nics", "num_disks"),
)
_LISTS = {
    "disk_details": ("read_bytes", "read_requests", "write_bytes", "write_requests", "errors_count"),
    "cpu_details": ("id", "time", "utilisation"),
    "nic_details": (
        "mac_address",
        *(f"{way}_{what}" for way in ("rx", "tx") for what in _COUNTED),
    ),
}
_MEMORY = ("maximum", "used")
_POWER_WORDS = {0: "pending", 1: "running", 3: "paused", 4: "shutdown", 6: "crashed", 7: "suspended"}


def show(service: ComputeService, call: Call) -> Reply:
    """Show what a running server uses."""
    with service.database.read() as connection:
        server = find(connection, call)
    try:
        answer = ask(service, call, server, QuestionKind.DIAGNOSTICS)
    except HttpError as refusal:  # as the reference, which looks at the state before it asks the driver
        if refusal.status == 501 and server.power_state != PowerNumber.RUNNING:
            raise _not_running(server, server.power_state) from refusal
        raise
    if answer.refusal is Refusal.NOT_RUNNING:
        raise _not_running(server, answer.facts.get("power_state", 0))
    if answer.refusal is not None:
        raise ServiceUnavailable
    if call.version < Microversion.STANDARD_DIAGNOSTICS:
        return Reply(body=_before_2_48(answer.facts))
    return Reply(body=_standard(answer.facts))


def _not_running(server: Server, power: int) -> InvalidState:
    return InvalidState("get_diagnostics", server.uuid, "power state", _POWER_WORDS.get(power, "pending"))


def _standard(found: Mapping[str, Any]) -> dict[str, Any]:
    """All of the API's fields and no others; what the driver does not know is null."""
    shown: dict[str, Any] = {name: found.get(name) for name in _PLAIN}
    for name, fields in _LISTS.items():
        shown[name] = [{field: one.get(field) for field in fields} for one in found.get(name, ())]
    memory = found.get("memory_details", {})
    return {**shown, "memory_details": {field: memory.get(field) for field in _MEMORY}}


def _before_2_48(found: Mapping[str, Any]) -> dict[str, Any]:
    """One flat list of numbers, by the names that most clouds had for them, and drivers for devices."""
    shown = {f"cpu{cpu.get('id', n)}_time": cpu.get("time") for n, cpu in _numbered(found, "cpu_details")}
    memory = found.get("memory_details", {}).get("maximum")
    shown["memory"] = None if memory is None else memory * 1024
    for number, disk in _numbered(found, "disk_details"):
        name = disk.get("name", f"vd{chr(ord('a') + number)}")
        shown |= {
            f"{name}_read": disk.get("read_bytes"),
            f"{name}_read_req": disk.get("read_requests"),
            f"{name}_write": disk.get("write_bytes"),
            f"{name}_write_req": disk.get("write_requests"),
            f"{name}_errors": disk.get("errors_count"),
        }
    for number, nic in _numbered(found, "nic_details"):
        name = nic.get("name", f"vnet{number}")
        shown |= {f"{name}_{way}": nic.get(f"{way}_octets") for way in ("rx", "tx")}
        shown |= {f"{name}_{field}": nic.get(field) for field in _FLAT_NIC}
    return shown


_FLAT_NIC = tuple(f"{way}_{what}" for way in ("rx", "tx") for what in ("packets", "errors", "drop"))


def _numbered(found: Mapping[str, Any], name: str) -> list[tuple[int, Mapping[str, Any]]]:
    return list(enumerate(found.get(name, ())))
