"""Criteria: what filters and weighers know of a request."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from operator import attrgetter
from typing import Any

from moorage.scheduler.groups import RequestGroup
from moorage.scheduler.narrowing import Narrowing
from moorage.scheduler.server_group import ServerGroupState

_SAME = {"amd64": "x86_64", "i386": "i686", "i486": "i686", "i586": "i686", "pv": "xen", "hv": "hvm"}
"""Other spellings that images use, and the one that nodes report."""


@dataclass(frozen=True, slots=True)
class ImageNeeds:
    """What an image says of the machines that it runs on; empty means any."""

    architecture: str = ""
    hypervisor_type: str = ""
    vm_mode: str = ""

    @classmethod
    def of(cls, properties: Mapping[str, str]) -> ImageNeeds:
        """The older names of these properties still count, as clients send them."""

        def first(*names: str) -> str:
            said = next((str(properties[name]).lower() for name in names if properties.get(name)), "")
            return _SAME.get(said, said)

        return cls(
            architecture=first("hw_architecture", "architecture"),
            hypervisor_type=first("img_hv_type", "hypervisor_type"),
            vm_mode=first("hw_vm_mode", "vm_mode"),
        )

    def __bool__(self) -> bool:
        return bool(self.architecture or self.hypervisor_type or self.vm_mode)


@dataclass(frozen=True, slots=True, kw_only=True)
class Criteria:
    """Requests whose criteria are equal rank the hosts of one answer alike, and share a ranking.

    Filters and weighers get this and nothing else of a request, so none can go by what a shared ranking does
    not tell apart. What a new one has to know becomes a field here.
    """

    groups: tuple[RequestGroup, ...]
    host: str | None = None
    """The one host that an administrator asked for."""
    leaves: str | None = None
    """The host that a server which is moved must not be on any more."""
    may_stay_on: str | None = None
    """The node there that it may be on all the same, if that can give it another flavor."""
    cell: str | None = None
    """Where a server that is moved has its addresses from, and has to stay."""
    image: ImageNeeds = ImageNeeds()
    server_group: ServerGroupState | None = None
    same_nodes: frozenset[str] | None = None
    """Nodes of the servers that it shall be next to; None if it does not matter."""
    different_nodes: frozenset[str] = frozenset()
    tried_nodes: frozenset[str] = frozenset()
    """Nodes that have failed this server already."""
    failed_hosts: frozenset[str] = frozenset()
    """Hosts that could not bind the ports of this server, on whichever node."""
    full_cells: frozenset[str] = frozenset()
    """Cells that have no address left for this server."""
    narrowings: tuple[Narrowing, ...] = ()
    """By which aggregates it was narrowed, as the trace tells it."""

    def criteria(self) -> Criteria:
        """These alone, of whatever they are a part of."""
        return Criteria(**dict(zip(_NAMES, self.values(), strict=True)))

    def values(self) -> tuple[Any, ...]:
        """Equal for equal criteria, and quicker made."""
        found: tuple[Any, ...] = _VALUES(self)
        return found


_NAMES = tuple(field.name for field in fields(Criteria))
_VALUES = attrgetter(*_NAMES)
