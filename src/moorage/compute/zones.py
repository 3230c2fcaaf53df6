"""Availability zones: the groups of hosts that a user may choose from."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from moorage.compute.services import AGENT, Service


@dataclass(frozen=True)
class Zone:
    name: str
    available: bool
    """Some host in it takes servers."""
    services: list[Service] = field(default_factory=list)
    """Those that are enabled."""


def zone_of(service: Service, default: str, internal: str) -> str:
    """Where a service counts: what owns no nodes is in a zone of its own."""
    return (service.zone or default) if service.binary == AGENT else internal


def grouped(services: Iterable[Service], default: str, internal: str) -> list[Zone]:
    """All zones: those that are available first, each kind by name."""
    by_name: dict[str, list[Service]] = {}
    for service in services:
        by_name.setdefault(zone_of(service, default, internal), []).append(service)
    enabled = {name: [service for service in all_ if not service.disabled] for name, all_ in by_name.items()}
    zones = [Zone(name, bool(enabled[name]), enabled[name]) for name in by_name]
    return sorted(zones, key=lambda zone: (not zone.available, zone.name))
