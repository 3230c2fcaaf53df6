"""What a host says of others' things is left out of its heartbeat: it has a word only on its own.

Most of a heartbeat is held against what is written down of the host wherever it is used. Here is the rest:
nodes that are another host's, and hosts that want to share nodes though they had some of their own.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

import msgspec
import sqlalchemy as sa
from sqlalchemy.engine import Connection

from moorage.bus.contract import Heartbeat
from moorage.bus.refusals import REFUSALS, RefusalReason, RefusedError
from moorage.compute.hosts.peers import TERMS
from moorage.compute.hosts.registry import AGENT_BINARY, BEFORE_THE_AGENT
from moorage.db.among import among
from moorage.db.tables.compute import nodes, services
from moorage.drivers.machine_failures import POLICY

_HEARTBEAT = "heartbeat"


def own_word(connection: Connection, heartbeat: Heartbeat) -> Heartbeat:
    """The heartbeat without what is not the host's to say; that is counted, and told."""
    heartbeat = _without_new_terms(connection, heartbeat)
    named = _named(heartbeat)
    others = _others(connection, heartbeat.host, named) if named else {}
    if not others:
        return heartbeat
    uuid, owner = next(iter(sorted(others.items())))
    _refuse(heartbeat.host, f"it speaks of {len(others)} nodes of others, as of {uuid}, which is {owner}'s")
    bid = heartbeat.bid
    if bid is not None:
        bid = msgspec.structs.replace(bid, wanted=[node for node in bid.wanted if node.uuid not in others])
    reported = heartbeat.nodes
    if reported is not None:
        reported = [node for node in reported if node.uuid not in others]
    return msgspec.structs.replace(
        heartbeat,
        bid=bid,
        nodes=reported,
        failures=[failure for failure in heartbeat.failures if failure.machine_uuid not in others],
        mended=[uuid for uuid in heartbeat.mended if uuid not in others],
    )


def _named(heartbeat: Heartbeat) -> set[str]:
    """The nodes that it could take, or do something to."""
    said = [*(heartbeat.nodes or []), *(heartbeat.bid.wanted if heartbeat.bid else [])]
    machines = {failure.machine_uuid for failure in heartbeat.failures}
    return {node.uuid for node in said} | machines | set(heartbeat.mended)


def _others(connection: Connection, host: str, named: Collection[str]) -> dict[str, str]:
    """Those of hosts that share theirs with nobody, with these hosts. A service that was deleted has none; of
    one that was taken over from another system it is not known yet.

    Hosts that share nodes agree on them by bids (`ownership.py`), and can reach all of them anyway.
    """
    query = (
        sa.select(nodes.c.uuid, nodes.c.host, services.c.facts)
        .join_from(nodes, services, (services.c.host == nodes.c.host) & (services.c.binary == AGENT_BINARY))
        .where(among(connection, nodes.c.uuid, sorted(named)), nodes.c.host != host)
        .where(services.c.version != BEFORE_THE_AGENT)
    )
    return {uuid: owner for uuid, owner, facts in connection.execute(query) if TERMS not in (facts or {})}


def _without_new_terms(connection: Connection, heartbeat: Heartbeat) -> Heartbeat:
    """A host that has nodes of its own is no peer of those who share theirs, whatever it says: it would get
    its part of them, and of their servers."""
    if TERMS not in heartbeat.facts:
        return heartbeat
    query = sa.select(services.c.facts).where(
        services.c.host == heartbeat.host,
        services.c.binary == AGENT_BINARY,
        services.c.version != BEFORE_THE_AGENT,
        sa.exists().where(nodes.c.host == heartbeat.host),
    )
    row = connection.execute(query).one_or_none()
    if row is None or TERMS in (row.facts or {}):
        return heartbeat
    _refuse(heartbeat.host, "it wants to share nodes, and has some of its own: delete its service first")
    facts: dict[str, Any] = {
        name: value for name, value in heartbeat.facts.items() if name not in (TERMS, POLICY)
    }
    return msgspec.structs.replace(heartbeat, facts=facts, bid=None, digest=None)


def _refuse(host: str, sentence: str) -> None:
    REFUSALS.refuse(_HEARTBEAT, RefusedError(RefusalReason.NOT_OWN, host, sentence))
