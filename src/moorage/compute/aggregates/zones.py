"""Availability zones: the groups of hosts that a user may choose from.

A host is in the zone that its aggregates name, else in the default zone.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from moorage.compute.hosts.services import AGENT, Service


@dataclass(frozen=True)
class Zone:
    name: str
    available: bool
    """Some host in it takes servers."""
    services: list[Service] = field(default_factory=list)
    """Those that are enabled."""


@dataclass(frozen=True)
class Zones:
    named: Mapping[str, str]
    """By host: the zone that an aggregate puts it in."""
    default: str
    internal: str

    def of(self, service: Service) -> str:
        """Where a service counts: what owns no nodes is in a zone of its own."""
        return self.named.get(service.host, self.default) if service.binary == AGENT else self.internal

    def grouped(self, services: Iterable[Service]) -> list[Zone]:
        """All zones: those that are available first, each kind by name."""
        by_name: dict[str, list[Service]] = {}
        for service in services:
            by_name.setdefault(self.of(service), []).append(service)
        enabled = {
            name: [service for service in all_ if not service.disabled] for name, all_ in by_name.items()
        }
        zones = [Zone(name, bool(enabled[name]), enabled[name]) for name in by_name]
        return sorted(zones, key=lambda zone: (not zone.available, zone.name))

    def takes_servers(self, name: str, services: Iterable[Service]) -> bool:
        """Whether a user may ask for this zone."""
        return any(
            service.binary == AGENT and not service.disabled and self.of(service) == name
            for service in services
        )
