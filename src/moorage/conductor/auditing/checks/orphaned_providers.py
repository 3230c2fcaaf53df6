"""Providers of nodes in Placement that no host has any more."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import timedelta

import sqlalchemy as sa

from moorage.compute.audits.audit import CheckName
from moorage.compute.audits.findings import Drift, Suspect
from moorage.compute.hosts import backlog
from moorage.compute.hosts.backlog import BacklogKind
from moorage.conductor.auditing.contract import AuditCheck, Portion
from moorage.db.among import among
from moorage.db.tables.compute import nodes, servers
from moorage.db.tables.moves import migrations

_PORTION = 2_000


class OrphanedProvidersCheck(AuditCheck):
    name = CheckName.ORPHANED_PROVIDERS
    compares = "providers of nodes in Placement, and nodes"

    def look(self) -> Iterator[Portion]:
        listed = sorted(self._tools.placement.nodes())
        for start in range(0, len(listed), _PORTION):
            portion = listed[start : start + _PORTION]
            ours = self._with_node(portion)
            odd = [Suspect(uuid) for uuid in portion if uuid not in ours]
            yield Portion(odd, start + len(portion), len(listed))

    def _with_node(self, uuids: Sequence[str]) -> set[str]:
        with self._tools.database.read() as connection:
            return set(
                connection.execute(
                    sa.select(nodes.c.uuid).where(among(connection, nodes.c.uuid, uuids))
                ).scalars()
            )

    def judge(self, suspect: Suspect) -> Drift | None:
        """First that no host has it: a host that comes for it reports the provider after that."""
        uuid = suspect.subject
        if self._with_node([uuid]) or not self._tools.placement.aggregates([uuid]):
            return None
        was_ours = self._was_ours(uuid)
        held = self._tools.placement.consumers([uuid])
        holders = f", and {len(held)} consumers hold something of it" if held else ""
        return Drift(
            suspect=suspect,
            sentence=f"provider {uuid} is no host's node{'' if was_ours else ', and never was'}{holders}",
            remedy="delete it" if was_ours and not held else "",
            safe=was_ours and not held,
        )

    def _was_ours(self, uuid: str) -> bool:
        """Servers were on it; any other may be another cloud's that has the same Placement."""
        with self._tools.database.read() as connection:
            before = sa.select(servers.c.id).where(servers.c.node_uuid == uuid).limit(1)
            left = sa.select(migrations.c.id).where(migrations.c.source_node_uuid == uuid).limit(1)
            return any(connection.execute(query).first() is not None for query in (before, left))

    def repair(self, drift: Drift) -> None:
        """Late: Placement refuses it if it is used, and a host that has it again is asked to report it."""
        self._tools.database.transact(
            lambda connection: backlog.add(
                connection, BacklogKind.PROVIDER, [drift.suspect.subject], timedelta(0), "it is no node"
            )
        )
