"""Allocations in Placement, held against servers and migrations: both ways, node by node."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import sqlalchemy as sa

from moorage.compute.audits.audit import CheckName
from moorage.compute.audits.findings import ANEW, MEND, Drift, Suspect
from moorage.compute.moves.migrations import MigrationStatus
from moorage.compute.servers.server import COLUMNS, Server, from_row
from moorage.compute.servers.states import VmState
from moorage.conductor.auditing import node_pages, resting
from moorage.conductor.auditing.contract import AuditCheck, Portion
from moorage.conductor.auditing.node_pages import ListedNode
from moorage.conductor.auditing.resting import RestingServer
from moorage.db.among import among
from moorage.db.tables.compute import servers
from moorage.db.tables.moves import migrations
from moorage.ledger.leasing import GIVE_BACK
from moorage.placement.client.contract import ConsumerClaim
from moorage.scheduler.request import from_flavor

_HOLDING = frozenset(
    {
        *(VmState.ACTIVE, VmState.STOPPED, VmState.PAUSED, VmState.SUSPENDED),
        *(VmState.RESCUED, VmState.RESIZED, VmState.SHELVED),
    }
)
"""States in which a server that is on a node holds something of it."""
_ELSEWHERE, _KEPT = "elsewhere", "kept"
_REVERTIBLE = sa.and_(
    migrations.c.active,
    migrations.c.status == MigrationStatus.FINISHED.value,
    servers.c.vm_state == VmState.RESIZED.value,
    servers.c.deleted_at.is_(None),
)
"""Migrations that wait for a user's word, and keep the server's room on the node that it left."""


class AllocationsCheck(AuditCheck):
    name = CheckName.ALLOCATIONS
    compares = "allocations in Placement, and servers and migrations"

    def look(self) -> Iterator[Portion]:
        for page in node_pages.pages(self._tools.database):
            yield Portion(self._suspects(page.nodes), page.done, page.total)

    def _suspects(self, page: Sequence[ListedNode]) -> list[Suspect]:
        placement = self._tools.placement
        node_of = {provider.uuid: node.uuid for node in page for provider in placement.tree(node.uuid)}
        consumers = {claim.consumer_uuid: claim for claim in placement.consumers(list(node_of))}
        expected = self._expected([node.uuid for node in page])
        where = self._whereabouts(consumers.keys())
        found = [Suspect(uuid) for uuid in sorted(expected - consumers.keys())]
        kept = self._kept([node.uuid for node in page])
        found += [Suspect(uuid, {_KEPT: kept[uuid]}) for uuid in sorted(kept.keys() - consumers.keys())]
        for uuid, claim in consumers.items():
            held = {node_of[provider] for provider in claim.allocations if provider in node_of}
            wrong = sorted(held - {where.get(uuid)})
            if wrong:
                others = [one for one in claim.allocations if node_of.get(one) in wrong]
                found.append(Suspect(uuid, {_ELSEWHERE: sorted(others)}))
        return found

    def _expected(self, node_uuids: Sequence[str]) -> set[str]:
        """Servers that should hold something of these nodes."""
        with self._tools.database.read() as connection:
            query = sa.select(servers.c.uuid).where(
                among(connection, servers.c.node_uuid, node_uuids),
                servers.c.deleted_at.is_(None),
                servers.c.vm_state.in_([state.value for state in _HOLDING]),
            )
            return set(connection.execute(query).scalars())

    def _kept(self, node_uuids: Sequence[str]) -> dict[str, str]:
        """By migration, that of these nodes which it should hold something of."""
        with self._tools.database.read() as connection:
            query = (
                sa.select(migrations.c.uuid, migrations.c.source_node_uuid)
                .join_from(migrations, servers, migrations.c.server_id == servers.c.id)
                .where(among(connection, migrations.c.source_node_uuid, node_uuids), _REVERTIBLE)
            )
            return dict(connection.execute(query).all())

    def _whereabouts(self, uuids: Collection[str]) -> dict[str, str]:
        """By consumer: the node that it may hold something of."""
        with self._tools.database.read() as connection:
            on_nodes = sa.select(servers.c.uuid, servers.c.node_uuid).where(
                among(connection, servers.c.uuid, uuids), servers.c.deleted_at.is_(None)
            )
            moving = sa.select(migrations.c.uuid, migrations.c.source_node_uuid).where(
                among(connection, migrations.c.uuid, uuids), migrations.c.active
            )
            return dict([*connection.execute(on_nodes), *connection.execute(moving)])

    # ------------------------------------------------------------ a closer look

    def judge(self, suspect: Suspect) -> Drift | None:
        """First whether the server is at rest, then what it holds, then whether it was at rest all along."""
        uuid = suspect.subject
        if _KEPT in suspect.facts:
            return self._without_room(suspect)
        server = resting.one(self._tools.database, uuid)
        if server is None:
            return None if resting.is_known(self._tools.database, uuid) else self._of_no_server(suspect)
        held, generation = self._tools.placement.allocations(uuid)
        if resting.one(self._tools.database, uuid) != server:
            return None
        said = self._said(server, held, suspect.facts)
        if said is None:
            return None
        sentence, remedy, is_safe = said
        return Drift(
            suspect=suspect,
            sentence=sentence,
            remedy=remedy,
            safe=is_safe,
            fingerprint=str(generation),
            host=server.host or "",
            server_uuid=uuid,
            operation=GIVE_BACK if server.is_deleted else MEND,
        )

    def _said(
        self, server: RestingServer, held: Mapping[str, Mapping[str, int]], facts: Mapping[str, Any]
    ) -> tuple[str, str, bool] | None:
        """Sentence, remedy, and whether that is safe."""
        elsewhere: Collection[str] = facts.get(_ELSEWHERE, [])
        if server.is_deleted or server.node_uuid is None:
            state = "is deleted" if server.is_deleted else "is on no host"
            if not held:
                return None
            return f"server {server.uuid} {state}, and holds {_amounts(held)}", "release it", True
        if facts.get(ANEW):
            return f"server {server.uuid} was adopted", "claim anew what its flavor asks for", False
        own = {provider.uuid for provider in self._tools.placement.tree(server.node_uuid)}
        others = {uuid: held[uuid] for uuid in elsewhere if uuid in held and uuid not in own}
        if others:
            sentence = (
                f"server {server.uuid} is on node {server.node_uuid}, and holds also {_amounts(others)}"
            )
            return sentence, "release what is not of its node", False
        if own and server.vm_state in _HOLDING and not own & held.keys():
            sentence = f"server {server.uuid} holds nothing of node {server.node_uuid}, which it is on"
            return sentence, "claim there what its flavor asks for", False
        return None

    def _of_no_server(self, suspect: Suspect) -> Drift | None:
        """A migration's, or nobody's: every server has its row before anything is claimed for it."""
        uuid = suspect.subject
        with self._tools.database.read() as connection:
            query = sa.select(servers.c.uuid, migrations.c.active).join_from(migrations, servers)
            move = connection.execute(query.where(migrations.c.uuid == uuid)).one_or_none()
        if move is not None and (move.active or resting.one(self._tools.database, move.uuid) is None):
            return None
        held, generation = self._tools.placement.allocations(uuid)
        if not held:
            return None
        if move is None:
            return Drift(
                suspect=suspect,
                sentence=f"nobody knows consumer {uuid}, which holds {_amounts(held)}",
                remedy="release it; not if the database was restored, and the server is there",
                fingerprint=str(generation),
            )
        return Drift(
            suspect=suspect,
            sentence=f"migration {uuid} of server {move.uuid} is over, and holds {_amounts(held)}",
            remedy="release it",
            safe=True,
            fingerprint=str(generation),
            server_uuid=move.uuid,
            operation=MEND,
        )

    def _without_room(self, suspect: Suspect) -> Drift | None:
        """A resize that could not be reverted, if somebody else took the room."""
        uuid, node = suspect.subject, suspect.facts[_KEPT]
        query = sa.select(servers.c.uuid).join_from(
            migrations, servers, migrations.c.server_id == servers.c.id
        )
        with self._tools.database.read() as connection:
            of = connection.execute(query.where(migrations.c.uuid == uuid, _REVERTIBLE)).scalar_one_or_none()
        before = None if of is None else resting.one(self._tools.database, of)
        if before is None:
            return None
        held, generation = self._tools.placement.allocations(uuid)
        own = {provider.uuid for provider in self._tools.placement.tree(node)}
        if not own or own & held.keys() or resting.one(self._tools.database, before.uuid) != before:
            return None
        return Drift(
            suspect=suspect,
            sentence=f"migration {uuid} of server {before.uuid} holds nothing of node {node}, which a revert "
            "would need",
            remedy="claim there what the old flavor asks for",
            fingerprint=str(generation),
            server_uuid=before.uuid,
            operation=MEND,
        )

    # ------------------------------------------------------------ repair

    def repair(self, drift: Drift) -> None:
        """Late: refused, by the consumer's generation, if anything was claimed or released since the look."""
        uuid, placement = drift.suspect.subject, self._tools.placement
        held, generation = placement.allocations(uuid)
        if _KEPT in drift.suspect.facts:
            self._give_room(drift, held, generation)
            return
        if drift.server_uuid != uuid:  # a migration's, or nobody's
            self._claim(ConsumerClaim(uuid, {}, "-", "-", consumer_generation=generation), held)
            return
        with self._tools.database.read() as connection:
            row = connection.execute(sa.select(*COLUMNS).where(servers.c.uuid == uuid)).one()
        server = from_row(row)
        wanted = self._wanted(server, held, drift.suspect.facts)
        claim = ConsumerClaim(uuid, wanted, server.project_id, server.user_id, consumer_generation=generation)
        self._claim(claim, held)

    def _give_room(self, drift: Drift, held: dict[str, dict[str, int]], generation: int | None) -> None:
        uuid = drift.suspect.subject
        with self._tools.database.read() as connection:
            row = connection.execute(sa.select(*COLUMNS).where(servers.c.uuid == drift.server_uuid)).one()
            flavor = sa.select(migrations.c.old_flavor).where(migrations.c.uuid == uuid)
            old = connection.execute(flavor).scalar_one()
        server = from_row(row)
        wanted = self._room(replace(server, flavor=old), drift.suspect.facts[_KEPT])
        claim = ConsumerClaim(
            uuid,
            {**held, **wanted},
            server.project_id,
            server.user_id,
            consumer_generation=generation,
            consumer_type="MIGRATION",
        )
        self._claim(claim, held)

    def _claim(self, claim: ConsumerClaim, held: Mapping[str, Mapping[str, int]]) -> None:
        if claim.allocations == held:
            return
        refusal = self._tools.placement.claim_together([claim])
        if refusal is not None:
            raise refusal

    def _wanted(
        self, server: Server, held: dict[str, dict[str, int]], facts: Mapping[str, Any]
    ) -> dict[str, dict[str, int]]:
        """What it should hold: nothing, what it holds without what is elsewhere, or what its flavor says."""
        if server.node_uuid is None:
            return {}
        own = {provider.uuid for provider in self._tools.placement.tree(server.node_uuid)}
        if held and not facts.get(ANEW):
            return {uuid: held[uuid] for uuid in held if uuid in own or uuid not in facts.get(_ELSEWHERE, [])}
        try:
            return self._room(server, server.on_node)
        except LookupError:
            if held and held.keys() <= own:  # of a full node, which it holds a part of already
                return held
            raise

    def _room(self, server: Server, node_uuid: str) -> dict[str, dict[str, int]]:
        """What its flavor asks for, on this node."""
        properties = (server.request.get("image") or {}).get("properties") or {}
        aliases = self._tools.scheduler.pci_aliases
        request = from_flavor(server.uuid, server.flavor, properties, aliases=aliases)
        there = request.narrowed(lambda group: group.within(node_uuid))
        found = self._tools.placement.candidates(there.queries(1)[0]).allocation_requests
        if not found:
            raise LookupError(f"node {node_uuid} has no room left for what the server should hold")
        return {uuid: amounts["resources"] for uuid, amounts in found[0].allocations.items()}


def _amounts(held: Mapping[str, Mapping[str, int]]) -> str:
    listed = [
        f"{amount} {name} of {provider}"
        for provider, amounts in sorted(held.items())
        for name, amount in sorted(amounts.items())
    ]
    return ", ".join(listed[:4]) + (" and more" if len(listed) > 4 else "")
