"""Host states: what filters and weighers know of a node and the host that owns it."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(slots=True)
class HostState:
    """One node and its host, as of the beginning of a pass; its counts go on with the pass's decisions."""

    host: str
    node: str
    node_uuid: str
    up: bool = True
    disabled: bool = False
    zone: str | None = None
    aggregates: frozenset[str] = frozenset()
    """Those that the host is in, by our own books."""
    cell: str = ""
    """Where the host's addresses come from."""
    hypervisor_type: str = ""
    pool: bool = False
    """Whether it is no machine, but offers those that several hosts share."""
    binds_ports: bool = False
    """Whether what keeps its servers binds their ports, so that nobody else has to."""
    starts_paused: bool = False
    resizes_in_place: bool = False
    """Whether a server can get another flavor and stay."""
    supported: tuple[tuple[str, str, str], ...] = ()
    """(architecture, hypervisor type, vm mode) that the node can run; empty if it does not say."""
    servers: int = 0
    build_failures: int = 0
    """Recent ones, in a row."""
    taken: dict[str, int] = field(default_factory=dict)
    """What earlier decisions of this pass took, by resource class; Placement does not know it yet."""
