"""What can be asked of a node: agents report it with the node, conductors keep it among the node's facts."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

import msgspec

from moorage.drivers.contract import Node
from moorage.drivers.parts import PARTS

CAPABILITIES = "capabilities"
"""Where the facts of a node say it."""


class Capabilities(msgspec.Struct, frozen=True):
    """All of it is told, also what is false: who reads it knows by that that it was told.

    A field that comes later is false for agents that don't know it yet, which is true of them.
    """

    binds_ports: bool = False
    """What keeps its servers binds their ports, so that nobody else has to."""
    pool: bool = False
    """It is no machine, but offers those of several."""
    starts_paused: bool = False
    """Servers can be there with their processors stopped, until their ports carry traffic."""
    keeps_ephemeral: bool = False
    """Servers can be rebuilt without what is on their ephemeral disks being lost."""
    rebuild: bool = False
    migrate: bool = False
    resize_in_place: bool = False
    live_migrate: bool = False
    change_interfaces: bool = False
    pause: bool = False
    suspend: bool = False
    rescue: bool = False
    snapshot: bool = False
    crash_dump: bool = False
    change_password: bool = False
    console_log: bool = False
    remote_console: bool = False
    diagnose: bool = False
    place: bool = False
    """It says on which NUMA cells servers are."""


def of(abilities: Collection[str], node: Node) -> Capabilities:
    """What its driver has parts for (`parts.of`), and what the node says of itself."""
    parts = {ability: ability in abilities for ability in PARTS}
    return Capabilities(
        binds_ports=node.binds_ports,
        pool=node.pool,
        starts_paused=node.starts_paused,
        keeps_ephemeral=node.keeps_ephemeral,
        **parts,
    )


def facts(abilities: Collection[str], node: Node) -> dict[str, Any]:
    """What an agent says of a node."""
    return {**node.facts, CAPABILITIES: msgspec.to_builtins(of(abilities, node))}
