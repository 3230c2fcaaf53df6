"""`/os-hosts`, until 2.43: hosts by name, which newer clients see as services and hypervisors."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from moorage.compute.hosts import hypervisors, services
from moorage.compute.hosts.host_usage import HostUsage, by_project
from moorage.compute_api.hosts.services import switch
from moorage.compute_api.service import ComputeService
from moorage.http.call import Call
from moorage.http.errors import HttpError
from moorage.http.reply import Reply

Json = dict[str, Any]


def index(service: ComputeService, call: Call) -> Reply:
    """List the hosts whose services are enabled, by the kind of service."""
    zone = call.checked_query().get("zone")
    with service.database.read() as connection:
        found = services.listed(connection)
    zones = service.zones()
    shown = [
        {"host_name": one.host, "service": one.binary.removeprefix("nova-"), "zone": zones.of(one)}
        for one in found
        if not one.disabled
    ]
    return Reply(body={"hosts": [host for host in shown if not zone or host["zone"] == zone]})


def show(service: ComputeService, call: Call) -> Reply:
    """Show what a host has, and what of it its servers use."""
    host = call.params["host_name"]
    with service.database.snapshot() as connection:
        first = hypervisors.first_of_host(connection, host)
        (node,) = hypervisors.with_usage(connection, [first])
        projects = by_project(connection, host)
    total = HostUsage("(total)", node.fact("vcpus"), node.fact("memory_mb"), node.fact("local_gb"))
    used = HostUsage("(used_now)", node.usage.vcpus, node.usage.ram_mb, node.usage.disk_gb)
    return Reply(body={"host": _resources(host, [total, used, _sum(projects), *projects])})


def _sum(projects: Iterable[HostUsage]) -> HostUsage:
    found = list(projects)
    return HostUsage(
        "(used_max)",
        sum(one.vcpus for one in found),
        sum(one.memory_mb for one in found),
        sum(one.disk_gb for one in found),
    )


def _resources(host: str, found: Iterable[HostUsage]) -> list[Json]:
    return [
        {
            "resource": {
                "host": host,
                "project": one.project,
                "cpu": one.vcpus,
                "memory_mb": one.memory_mb,
                "disk_gb": one.disk_gb,
            }
        }
        for one in found
    ]


def update(service: ComputeService, call: Call) -> Reply:
    """Have a host take servers, or no more. No driver has a state of maintenance."""
    host, asked = call.params["host_name"], call.json()
    if "maintenance_mode" in asked:
        raise _unsupported(service, host)
    enabled = asked["status"].lower() == "enable"
    switch(service, host, disabled=not enabled)
    return Reply(body={"host": host, "status": "enabled" if enabled else "disabled"})


def power(service: ComputeService, call: Call) -> Reply:
    """Start, shut down or reboot a host, which no driver does."""
    raise _unsupported(service, call.params["host_name"])


def _unsupported(service: ComputeService, host: str) -> HttpError:
    with service.database.read() as connection:
        services.find_agent(connection, host)
    return HttpError(501, "The requested functionality is not supported.")
