"""`/os-hypervisors`: the nodes that servers land on."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec
from oslo_utils.uuidutils import is_uuid_like

from moorage.compute.hosts import hypervisors
from moorage.compute.hosts.hypervisors import Hypervisor
from moorage.compute_api import links
from moorage.compute_api.microversions import Microversion
from moorage.compute_api.schema_types import as_boolean
from moorage.compute_api.service import ComputeService
from moorage.core.numbers import row_number
from moorage.http.call import Call
from moorage.http.errors import HttpError
from moorage.http.reply import Reply

_COLLECTION = "os-hypervisors"


def index(service: ComputeService, call: Call) -> Reply:
    """List hypervisors."""
    return _list(service, call, detailed=False)


def detail(service: ComputeService, call: Call) -> Reply:
    """List hypervisors with all that is known of them."""
    return _list(service, call, detailed=True)


def _list(service: ComputeService, call: Call, *, detailed: bool) -> Reply:
    query = call.checked_query()
    by_query = call.version >= Microversion.HOSTS_BY_UUID
    pattern = query.get("hypervisor_hostname_pattern") if by_query else None
    with_servers = by_query and as_boolean(query.get("with_servers"))
    pages = call.version >= Microversion.PAGES_OF_HYPERVISORS
    page = links.page(call, service.settings.max_limit) if pages else links.PageRequest(None, None)
    if pattern is not None and ("limit" in query or page.marker):
        raise HttpError(
            400,
            "Paging over hypervisors with the hypervisor_hostname_pattern query parameter is not supported.",
        )
    with service.database.snapshot() as connection:
        if pattern is not None:
            found = hypervisors.matching(connection, pattern)
        else:
            found = hypervisors.page(connection, _marker(call, page.marker), page.limit)
        found = hypervisors.with_quarantine(connection, found)
        if detailed and call.version < Microversion.HYPERVISORS_WITHOUT_USAGE:
            found = hypervisors.with_usage(connection, found)
        if with_servers:
            found = hypervisors.with_servers(connection, found)
    body: dict[str, Any] = {
        "hypervisors": [_body(service, call, one, detailed, with_servers) for one in found]
    }
    if pattern is None:
        collection = f"{_COLLECTION}/detail" if detailed else _COLLECTION
        more = links.next_page(call, collection, [str(_id(call, one)) for one in found], page.limit)
        if more:
            body["hypervisors_links"] = more
    return Reply(body=body)


def _marker(call: Call, marker: str | None) -> str | int | None:
    if marker is None or call.version >= Microversion.HOSTS_BY_UUID:
        return marker
    number = row_number(marker)
    if number is None:
        raise HttpError(400, f"marker [{marker}] not found")
    return number


def show(service: ComputeService, call: Call) -> Reply:
    """Show a hypervisor."""
    query = call.checked_query()
    with_servers = call.version >= Microversion.HOSTS_BY_UUID and as_boolean(query.get("with_servers"))
    with service.database.snapshot() as connection:
        found = hypervisors.with_usage(connection, [hypervisors.find(connection, _identity(call))])
        found = hypervisors.with_quarantine(connection, found)
        if with_servers:
            found = hypervisors.with_servers(connection, found)
    return Reply(body={"hypervisor": _body(service, call, found[0], True, with_servers)})


def uptime(service: ComputeService, call: Call) -> Reply:
    """Show since when a hypervisor runs."""
    with service.database.read() as connection:
        found = hypervisors.find(connection, _identity(call))
    running = found.fact("uptime", None)
    if running is None:
        raise HttpError(501, "The requested functionality is not supported.")
    return Reply(body={"hypervisor": {**_body(service, call, found, False), "uptime": running}})


def search(service: ComputeService, call: Call) -> Reply:
    """Find hypervisors by a part of their name."""
    with service.database.read() as connection:
        found = hypervisors.matching(connection, call.params["hypervisor_id"])
    return Reply(body={"hypervisors": [_body(service, call, one, False) for one in found]})


def servers(service: ComputeService, call: Call) -> Reply:
    """Find hypervisors by a part of their name, and the servers on them."""
    with service.database.snapshot() as connection:
        found = hypervisors.with_servers(
            connection, hypervisors.matching(connection, call.params["hypervisor_id"])
        )
    return Reply(body={"hypervisors": [_body(service, call, one, False, bool(one.hosted)) for one in found]})


def statistics(service: ComputeService, call: Call) -> Reply:
    """Sum up all hypervisors."""
    with service.database.snapshot() as connection:
        found = hypervisors.with_usage(connection, hypervisors.page(connection))
    enabled = [one for one in found if not one.service.disabled]
    return Reply(body={"hypervisor_statistics": {"count": len(enabled), **_sums(enabled)}})


def _sums(found: Sequence[Hypervisor]) -> dict[str, int]:
    amounts = [_amounts(one) for one in found]
    return {name: sum(amount[name] for amount in amounts) for name in _AMOUNTS}


def _identity(call: Call) -> str | int:
    given = call.params["hypervisor_id"]
    if call.version >= Microversion.HOSTS_BY_UUID:
        if not is_uuid_like(given):
            raise HttpError(400, f"Invalid uuid {given}")
        return given
    number = row_number(given)
    if number is None:
        raise HttpError(404, f"Hypervisor with ID '{given}' could not be found.")
    return number


def _id(call: Call, hypervisor: Hypervisor) -> str | int:
    return hypervisor.uuid if call.version >= Microversion.HOSTS_BY_UUID else hypervisor.id


def _body(
    compute: ComputeService, call: Call, hypervisor: Hypervisor, detailed: bool, with_servers: bool = False
) -> dict[str, Any]:
    service = hypervisor.service
    body: dict[str, Any] = {
        "id": _id(call, hypervisor),
        "hypervisor_hostname": hypervisor.name,
        "state": "up" if service.is_up(compute.settings.service_down_time) else "down",
        "status": "disabled" if service.disabled or hypervisor.quarantine else "enabled",
    }
    if detailed:
        body |= _details(call, hypervisor)
    if with_servers and (hypervisor.hosted or call.version >= Microversion.CONSISTENT_ANSWERS):
        body["servers"] = [{"name": name, "uuid": uuid} for name, uuid in hypervisor.hosted]
    return body


def _details(call: Call, hypervisor: Hypervisor) -> dict[str, Any]:
    service = hypervisor.service
    body: dict[str, Any] = {
        "hypervisor_type": hypervisor.hypervisor_type,
        "hypervisor_version": hypervisor.fact("hypervisor_version"),
        "host_ip": hypervisor.fact("host_ip", None),
        "service": {
            "id": service.uuid if call.version >= Microversion.HOSTS_BY_UUID else service.id,
            "host": hypervisor.host,
            "disabled_reason": _disabled_reason(hypervisor),
        },
    }
    if call.version >= Microversion.HYPERVISORS_WITHOUT_USAGE:
        return {**body, "uptime": hypervisor.fact("uptime", None)}
    cpu_info = hypervisor.fact("cpu_info", {})
    if call.version < Microversion.CPU_INFO_AS_OBJECT:
        cpu_info = msgspec.json.encode(cpu_info).decode()
    return {**body, **_amounts(hypervisor), "cpu_info": cpu_info}


def _disabled_reason(hypervisor: Hypervisor) -> str | None:
    """Clients show it: that of its host, or why the machine itself is kept out."""
    if hypervisor.quarantine is None:
        return hypervisor.service.disabled_reason
    said = f"the machine is in quarantine: {hypervisor.quarantine}"
    host = hypervisor.service.disabled_reason
    return f"{host}; {said}" if host else said


_AMOUNTS = (
    "vcpus",
    "memory_mb",
    "local_gb",
    "vcpus_used",
    "memory_mb_used",
    "local_gb_used",
    "free_ram_mb",
    "free_disk_gb",
    "current_workload",
    "running_vms",
    "disk_available_least",
)


def _amounts(hypervisor: Hypervisor) -> dict[str, int]:
    usage = hypervisor.usage
    ram, disk = hypervisor.fact("memory_mb"), hypervisor.fact("local_gb")
    return {
        "vcpus": hypervisor.fact("vcpus"),
        "memory_mb": ram,
        "local_gb": disk,
        "vcpus_used": usage.vcpus,
        "memory_mb_used": usage.ram_mb,
        "local_gb_used": usage.disk_gb,
        "free_ram_mb": ram - usage.ram_mb,
        "free_disk_gb": disk - usage.disk_gb,
        "current_workload": usage.busy,
        "running_vms": usage.servers,
        "disk_available_least": disk - usage.disk_gb,
    }
