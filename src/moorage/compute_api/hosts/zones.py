"""`/os-availability-zone`: what a user may choose from, and what an administrator sees behind it."""

from __future__ import annotations

from typing import Any

from moorage.compute.aggregates.zones import Zone
from moorage.compute.hosts import services
from moorage.compute_api.service import ComputeService
from moorage.compute_api.times import plain
from moorage.http.call import Call
from moorage.http.reply import Reply


def index(service: ComputeService, call: Call) -> Reply:
    """List availability zones."""
    shown = [
        {"zoneName": zone.name, "zoneState": {"available": zone.available}, "hosts": None}
        for zone in _zones(service)
        if zone.name != service.settings.internal_zone
    ]
    return Reply(body={"availabilityZoneInfo": shown})


def detail(service: ComputeService, call: Call) -> Reply:
    """List availability zones with the hosts and services in each."""
    shown = [
        {
            "zoneName": zone.name,
            "zoneState": {"available": zone.available},
            "hosts": _hosts(zone, service.settings.service_down_time) if zone.available else None,
        }
        for zone in _zones(service)
    ]
    return Reply(body={"availabilityZoneInfo": shown})


def _zones(service: ComputeService) -> list[Zone]:
    with service.database.read() as connection:
        return service.zones().grouped(services.listed(connection))


def _hosts(zone: Zone, down_time: int) -> dict[str, Any]:
    hosts: dict[str, Any] = {}
    for service in zone.services:
        hosts.setdefault(service.host, {})[service.binary] = {
            "available": service.is_up(down_time),
            "active": not service.disabled,
            "updated_at": plain(service.seen_at or service.updated_at),
        }
    return hosts
