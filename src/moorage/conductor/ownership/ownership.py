"""Who owns nodes that several hosts could: a row of `nodes` says it, and only here it changes hands.

Hosts bid for what hashing gives them. A node goes to whoever bids for it if nobody has it, or if its owner is
down; its epoch grows each time. A node that carries a server goes only together with it.
"""

from __future__ import annotations

import logging
from collections import Counter as Counted
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any, NamedTuple

import sqlalchemy as sa
from prometheus_client import Counter
from sqlalchemy.engine import Connection

from moorage.bus.contract import OWN, SET_PEERS, Bid, Heartbeat, NodeFacts, OwnershipDigest, Task
from moorage.compute.aggregates import outbox
from moorage.compute.hosts import liveness, node_capabilities, peers, vanished_nodes
from moorage.compute.hosts.peers import FAILOVER, TERMS
from moorage.compute.hosts.registry import AGENT_BINARY
from moorage.compute.servers import lost_machines
from moorage.conductor.ownership import reported_traits
from moorage.core.clock import utcnow
from moorage.db.among import among
from moorage.db.tables.compute import nodes, operations, servers, services
from moorage.db.upsert import insert_if_absent
from moorage.drivers.rendezvous import share
from moorage.drivers.shared_nodes import keeps_pools

LOG = logging.getLogger(__name__)

MOVED = Counter("moorage_conductor_nodes_moved_total", "Nodes that got another owner, by reason.", ["reason"])

NOBODY = ""
"""The host of a node that its owner has given up, and that no other has got yet."""


class _Row(NamedTuple):
    """A node as it is before we decide."""

    uuid: str
    host: str
    epoch: int
    name: str
    facts: dict[str, Any]


@dataclass
class OwnershipChange:
    """What came of a bid."""

    granted: dict[str, int] = field(default_factory=dict)
    revoked: dict[str, dict[str, int]] = field(default_factory=dict)
    """By the host that lost them."""
    passed_on: dict[str, dict[str, int]] = field(default_factory=dict)
    """By the host that got them without a bid."""
    traits: dict[str, list[str]] = field(default_factory=dict)
    """Of nodes that are the bidder's: what earlier owners told Placement, and it does not say."""
    changed: bool = False
    """Whether any node came, went or moved."""


def members(connection: Connection, heartbeat: Heartbeat, down_after: timedelta) -> list[str]:
    """The live hosts that share nodes with this one; itself always."""
    terms = heartbeat.facts[TERMS]
    found = peers.living(connection, terms, down_after)
    if terms.get("peers"):
        found &= set(terms["peers"])
    return sorted(found | {heartbeat.host})


def peer_orders(connection: Connection, heartbeat: Heartbeat, down_after: timedelta) -> list[Task]:
    """Tell a host that shares its nodes with whom, if it does not know."""
    if TERMS not in heartbeat.facts:
        return []
    known = members(connection, heartbeat, down_after)
    if heartbeat.facts.get("peers") == known:
        return []
    return [Task(0, "", SET_PEERS, 0, "", {"peers": known})]


def order(change: OwnershipChange, bid: Bid, lease: float) -> Task | None:
    """What the host that bid is told."""
    if not change.granted and not bid.everything:
        return None
    told = {"granted": change.granted, "traits": change.traits, "lease": lease}
    return Task(0, "", OWN, 0, "", {**told, "all": bid.everything, "answer": bid.question})


def corrections(connection: Connection, host: str, digest: OwnershipDigest, lease: float) -> list[Task]:
    """All that a host owns, if it believes otherwise: a word got lost, or an operator moved a node."""
    owned = sa.select(sa.func.count(), sa.func.coalesce(sa.func.sum(nodes.c.epoch), 0))
    found, epochs = connection.execute(owned.where(nodes.c.host == host)).one()
    if (found, int(epochs)) == (digest.nodes, digest.epochs):
        return []
    return [Task(0, "", OWN, 0, "", {"granted": _owned(connection, host), "all": True, "lease": lease})]


def grant(won: Mapping[str, int]) -> Task:
    """For a host that did not ask; if it gets lost, the host's digest tells."""
    return Task(0, "", OWN, 0, "", {"granted": dict(won)})


def revocation(lost: Mapping[str, int]) -> Task:
    return Task(0, "", OWN, 0, "", {"revoked": dict(lost)})


def reminders(connection: Connection, heartbeat: Heartbeat) -> list[Task]:
    """A host that sees a server on a node that is another's now may not have heard that it lost it.

    It has to hear it before it hears that the server should not be there: it would end it on its new host.
    """
    if TERMS not in heartbeat.facts or not heartbeat.observed:
        return []
    query = (
        sa.select(nodes.c.uuid, nodes.c.epoch)
        .join_from(nodes, servers, servers.c.node_uuid == nodes.c.uuid)
        .where(
            among(connection, servers.c.uuid, list(heartbeat.observed)),
            servers.c.deleted_at.is_(None),
            nodes.c.host != heartbeat.host,
        )
    )
    lost = dict(connection.execute(query).all())
    return [revocation(lost)] if lost else []


def decide(connection: Connection, heartbeat: Heartbeat, bid: Bid, down_after: timedelta) -> OwnershipChange:
    """Decide about everything that a host bids, in the transaction of its heartbeat."""
    host, change = heartbeat.host, OwnershipChange()
    _forget(connection, host, bid.gone, change)
    heirs = _living_heirs(connection, heartbeat, bid, down_after)
    _release(connection, host, bid.released, heirs, change)
    _withdraw(connection, host, bid.withdrawn, change)
    rows = _locked(connection, [node.uuid for node in bid.wanted])
    change.granted |= {uuid: row.epoch for uuid, row in rows.items() if row.host == host}
    new = [node for node in bid.wanted if node.uuid not in rows]
    others = {uuid: row for uuid, row in rows.items() if row.host != host}
    living = liveness.hosts_up(connection, down_after) if new or others else set()
    if host in living:  # an operator may have said that it is down
        _insert(connection, host, new, change)
        failover = bool(heartbeat.facts.get(FAILOVER, True))
        _take(connection, host, others, living, change, failover=failover)
        _return_to_servers(connection, others, living, change)
        _bring_home(connection, host, others, living, change)
    _follow(connection, [node for node in bid.wanted if node.uuid in change.granted], rows, change)
    if bid.everything:
        change.granted = _owned(connection, host)
    return change


def assign_pools(connection: Connection, heartbeat: Heartbeat, down_after: timedelta) -> OwnershipChange:
    """Pools whose host is down: no peer bids for them, but somebody has to look after the servers in them, or
    after machines that are held through them for nobody.

    Each goes to that peer to which hashing gives it, as soon as that one is heard of.
    """
    change, terms = OwnershipChange(), heartbeat.facts.get(TERMS) or {}
    if not keeps_pools(terms) or not heartbeat.facts.get(FAILOVER, True):
        return change
    query = sa.select(services.c.host, services.c.facts).where(services.c.binary == AGENT_BINARY)
    mates = {
        host for host, facts in connection.execute(query) if peers.same_partition(facts.get(TERMS), terms)
    }
    living = liveness.hosts_up(connection, down_after)
    if heartbeat.host not in living or mates <= living:
        return change
    doubtful = among(connection, nodes.c.uuid, sorted({one.node_uuid for one in heartbeat.held_machines}))
    left = sa.select(nodes.c.uuid).where(
        nodes.c.host.in_(sorted(mates - living)),
        node_capabilities.is_pool(),
        _carries_server() | doubtful if heartbeat.held_machines else _carries_server(),
    )
    found = list(connection.execute(left).scalars())
    if found:
        mine = share(heartbeat.host, members(connection, heartbeat, down_after), found)
        _take(connection, heartbeat.host, _locked(connection, mine), living, change, failover=True)
    return change


class NotMovableError(Exception):
    """Why an operator can't have a node moved; a sentence for them."""


def move(connection: Connection, node_uuid: str, host: str, down_after: timedelta) -> None:
    """Give a node, and the server that it carries, to another host, because an operator says so."""
    row = _locked(connection, [node_uuid]).get(node_uuid)
    living = liveness.hosts_up(connection, down_after)
    if row is None:
        raise NotMovableError(f"there is no node {node_uuid}")
    if row.host == host:
        raise NotMovableError(f"node {node_uuid} is host {host}'s already")
    if host not in living:
        raise NotMovableError(f"host {host} is not up")
    if row.host in living:
        raise NotMovableError(f"host {row.host}, which owns the node, is up: stop its agent first")
    _hand(connection, [node_uuid], host)
    _move_servers(connection, [node_uuid], host)
    MOVED.labels("by hand").inc()


def _forget(connection: Connection, host: str, gone: Collection[str], change: OwnershipChange) -> None:
    """Their providers go, too. One that carries a server is nobody's from now on, and goes with the server;
    if something is being done to that, the host says next time again that the node is gone."""
    known = [uuid for uuid, row in _locked(connection, gone).items() if row.host == host]
    carried = _servers_on(connection, known)
    free = [uuid for uuid in known if uuid not in carried]
    if free:
        connection.execute(sa.delete(nodes).where(among(connection, nodes.c.uuid, free)))
        outbox.mark(connection, free)
        vanished_nodes.remove_providers(connection, free)
    lost_machines.lose_on_nodes(connection, carried)
    left = _lost(connection, carried)
    vanished_nodes.mark(connection, left)
    _hand(connection, left, NOBODY)
    change.changed |= bool(free or left)


def _withdraw(
    connection: Connection, host: str, withdrawn: Mapping[str, int], change: OwnershipChange
) -> None:
    """They go with their providers, and their host is told; but not if a server is there, or on its way."""
    if not withdrawn:
        return
    rows = _locked(connection, withdrawn)
    held = [uuid for uuid, row in rows.items() if row.host == host and row.epoch == withdrawn[uuid]]
    carrying = _servers_on(connection, held).keys()
    free = [uuid for uuid in held if uuid not in carrying]
    if free:
        connection.execute(sa.delete(nodes).where(among(connection, nodes.c.uuid, free)))
        outbox.mark(connection, free)
        vanished_nodes.remove_providers(connection, free)
        change.revoked.setdefault(host, {}).update({uuid: rows[uuid].epoch + 1 for uuid in free})
        change.changed = True


def _living_heirs(
    connection: Connection, heartbeat: Heartbeat, bid: Bid, down_after: timedelta
) -> dict[str, str]:
    """Of nodes that a host gives up, the peers that get them, if they live: they bid for them, or will."""
    if not bid.heirs:
        return {}
    peers_up = set(members(connection, heartbeat, down_after)) - {heartbeat.host}
    return {uuid: heir for uuid, heir in bid.heirs.items() if heir in peers_up}


def _release(
    connection: Connection,
    host: str,
    released: Mapping[str, int],
    heirs: Mapping[str, str],
    change: OwnershipChange,
) -> None:
    """To its heir or to nobody, unless a server has come to the node meanwhile: then it stays, at a new
    epoch."""
    if not released:
        return
    rows = _locked(connection, released)
    held = [uuid for uuid, row in rows.items() if row.host == host and row.epoch == released[uuid]]
    carrying = _servers_on(connection, held).keys()
    free = [uuid for uuid in held if uuid not in carrying]
    stay = [uuid for uuid in held if uuid in carrying]
    for heir in {heirs.get(uuid, NOBODY) for uuid in free}:
        inherited = [uuid for uuid in free if heirs.get(uuid, NOBODY) == heir]
        _hand(connection, inherited, heir)
        if heir != NOBODY:
            change.passed_on[heir] = {uuid: rows[uuid].epoch + 1 for uuid in inherited}
    _hand(connection, stay, host)
    change.granted |= {uuid: rows[uuid].epoch + 1 for uuid in stay}
    change.changed |= bool(free)
    MOVED.labels("released").inc(len(free))


def _insert(connection: Connection, host: str, new: list[NodeFacts], change: OwnershipChange) -> None:
    """Of two hosts that bid for a new node at once, one inserts it."""
    if not new:
        return
    values = [
        {
            "uuid": node.uuid,
            "name": node.name,
            "host": host,
            "epoch": 1,
            "hypervisor_type": node.hypervisor_type,
            "facts": node.facts,
        }
        for node in new
    ]
    connection.execute(insert_if_absent(connection, nodes, key=["uuid"]), values)
    mine = sa.select(nodes.c.uuid, nodes.c.epoch).where(
        among(connection, nodes.c.uuid, [node.uuid for node in new]), nodes.c.host == host
    )
    came = dict(connection.execute(mine).all())
    change.granted |= came
    change.changed |= bool(came)
    outbox.mark(connection, came)


def _follow(
    connection: Connection, said: Iterable[NodeFacts], rows: Mapping[str, _Row], change: OwnershipChange
) -> None:
    """Write down what the owner of nodes that were there says of them."""
    for node in said:
        row = rows.get(node.uuid)
        if row is None:
            continue
        facts = reported_traits.kept(row.facts, node.facts)
        left = reported_traits.unsaid(row.facts, node.facts)
        if left:
            change.traits[node.uuid] = left
        if (row.name, row.facts) != (node.name, facts):
            statement = sa.update(nodes).where(nodes.c.uuid == node.uuid)
            connection.execute(statement.values(name=node.name, facts=facts, updated_at=utcnow()))


def _take(
    connection: Connection,
    host: str,
    others: Mapping[str, _Row],
    living: set[str],
    change: OwnershipChange,
    *,
    failover: bool,
) -> None:
    """Nodes of nobody, and of hosts that are down; with their servers, unless those have a living host."""
    unowned = {uuid: row for uuid, row in others.items() if row.host not in living}
    carried = _servers_on(connection, unowned)
    takeable = {
        uuid: row
        for uuid, row in unowned.items()
        if not carried.get(uuid) or (failover and not carried[uuid] & (living - {host}))
    }
    _hand(connection, takeable, host)
    for uuid, row in takeable.items():
        change.granted[uuid] = row.epoch + 1
        change.changed = True
        if row.host != NOBODY:
            change.revoked.setdefault(row.host, {})[uuid] = row.epoch + 1
    _move_servers(connection, [uuid for uuid in takeable if carried.get(uuid)], host)
    MOVED.labels("taken").inc(len(takeable))
    for loser, lost in Counted(row.host for row in takeable.values() if row.host != NOBODY).items():
        LOG.warning("host %s is down: host %s takes over %d of its nodes", loser, host, lost)


def _return_to_servers(
    connection: Connection, others: Mapping[str, _Row], living: set[str], change: OwnershipChange
) -> None:
    """Nobody's nodes that carry a server of a host that lives: they were thought gone, and are back. That
    host hears of it at its next pass."""
    unowned = [uuid for uuid, row in others.items() if row.host == NOBODY and uuid not in change.granted]
    for uuid, hosts in _servers_on(connection, unowned).items():
        if len(hosts) == 1 and hosts <= living:
            _hand(connection, [uuid], *hosts)
            change.changed = True


def _bring_home(
    connection: Connection, host: str, others: Mapping[str, _Row], living: set[str], change: OwnershipChange
) -> None:
    """A pool has its host's name. When that host is back, a peer that looked after it gives it back, with its
    servers, as soon as nothing is being done to these."""
    busy = sa.exists().where(
        servers.c.node_uuid == nodes.c.uuid,
        operations.c.server_id == servers.c.id,
        operations.c.finished_at.is_(None),
    )
    strayed = [uuid for uuid, row in others.items() if row.name == host and row.host in living]
    query = sa.select(nodes.c.uuid).where(among(connection, nodes.c.uuid, strayed), ~busy)
    found = connection.execute(query).scalars().all() if strayed else []
    _hand(connection, found, host)
    _move_servers(connection, found, host)
    for uuid in found:
        change.granted[uuid] = others[uuid].epoch + 1
        change.revoked.setdefault(others[uuid].host, {})[uuid] = others[uuid].epoch + 1
        change.changed = True
    MOVED.labels("home").inc(len(found))


def _move_servers(connection: Connection, node_uuids: Collection[str], host: str) -> None:
    """Node and server move together; what an operation waits for there is asked of the new host at once."""
    if not node_uuids:
        return
    here = sa.and_(among(connection, servers.c.node_uuid, node_uuids), servers.c.deleted_at.is_(None))
    moved = sa.update(servers).where(here, servers.c.host != host).values(host=host, updated_at=utcnow())
    ids = connection.execute(moved.returning(servers.c.id)).scalars().all()
    waiting = sa.update(operations).where(
        among(connection, operations.c.server_id, ids), operations.c.finished_at.is_(None)
    )
    connection.execute(waiting.values(due_at=utcnow()))


def _hand(connection: Connection, node_uuids: Collection[str], host: str) -> None:
    if not node_uuids:
        return
    connection.execute(
        sa.update(nodes)
        .where(among(connection, nodes.c.uuid, node_uuids))
        .values(host=host, epoch=nodes.c.epoch + 1, updated_at=utcnow())
    )
    outbox.mark(connection, node_uuids)


def _locked(connection: Connection, node_uuids: Collection[str]) -> dict[str, _Row]:
    """Nobody else changes these until we are done; in one order for all, so that none wait for each other."""
    if not node_uuids:
        return {}
    query = (
        sa.select(nodes.c.uuid, nodes.c.host, nodes.c.epoch, nodes.c.name, nodes.c.facts)
        .where(among(connection, nodes.c.uuid, node_uuids))
        .order_by(nodes.c.uuid)
        .with_for_update()
    )
    return {row.uuid: _Row(*row) for row in connection.execute(query)}


def _servers_on(connection: Connection, node_uuids: Collection[str]) -> dict[str, set[str]]:
    """The hosts of the servers that nodes carry, by node."""
    if not node_uuids:
        return {}
    query = sa.select(servers.c.node_uuid, servers.c.host).where(
        among(connection, servers.c.node_uuid, node_uuids), servers.c.deleted_at.is_(None)
    )
    found: dict[str, set[str]] = {}
    for node_uuid, host in connection.execute(query):
        found.setdefault(node_uuid, set()).add(host or NOBODY)
    return found


def _lost(connection: Connection, node_uuids: Collection[str]) -> list[str]:
    """Those all of whose servers are known to be lost."""
    query = (
        sa.select(servers.c.node_uuid)
        .where(among(connection, servers.c.node_uuid, node_uuids), servers.c.deleted_at.is_(None))
        .group_by(servers.c.node_uuid)
        .having(sa.func.count() == sa.func.count().filter(lost_machines.IS_LOST))
    )
    return list(connection.execute(query).scalars()) if node_uuids else []


def _carries_server() -> sa.ColumnElement[bool]:
    return sa.exists().where(servers.c.node_uuid == nodes.c.uuid, servers.c.deleted_at.is_(None))


def _owned(connection: Connection, host: str) -> dict[str, int]:
    query = sa.select(nodes.c.uuid, nodes.c.epoch).where(nodes.c.host == host)
    return dict(connection.execute(query).all())
