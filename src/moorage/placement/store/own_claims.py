"""What an agent may do to allocations by a reshape: move what is held of its own trees, and nothing else."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from moorage.db.among import among
from moorage.db.tables.placement import consumers
from moorage.placement.claims import Claim
from moorage.placement.errors import TreeRefusal, TreeRefused, UnknownProvider
from moorage.placement.store import allocations, tree_owners
from moorage.placement.store.allocations import UNKNOWN_TYPE, Consumer

if TYPE_CHECKING:
    from moorage.placement.store.own_trees import OwnTrees


def check(connection: Connection, claims: Sequence[Claim], trees: OwnTrees) -> None:
    """A server may hold something elsewhere, too, such as shared storage or another end of a move: there it
    keeps what it has. One that holds nothing of the agent's own is none of its business."""
    _lock(connection, claims)
    for claim in claims:
        held = _held(connection, claim.consumer_uuid)
        roots = tree_owners.roots_of(connection, {*held, *claim.resources})
        for uuid in claim.resources:
            if uuid not in roots:  # one that somebody makes just now would not have been looked at
                raise UnknownProvider(uuid)
        changed = {uuid for uuid in roots if held.get(uuid, {}) != claim.resources.get(uuid, {})}
        trees.admit(connection, {roots[uuid] for uuid in changed})
        if not trees.owns_any(connection, {roots[uuid] for uuid in held}):
            raise trees.told(_refused(claim, "holds nothing of the agent's own providers"))
        consumer = allocations.consumer(connection, claim.consumer_uuid)
        if consumer is None or not _is_same(consumer, claim):
            raise trees.told(_refused(claim, "stays whose it is, and what it is"))


def _lock(connection: Connection, claims: Sequence[Claim]) -> None:
    """As the claim itself does right after this."""
    uuids = [claim.consumer_uuid for claim in claims]
    query = sa.select(consumers.c.id).where(among(connection, consumers.c.uuid, uuids))
    connection.execute(query.order_by(consumers.c.id).with_for_update()).all()


def _held(connection: Connection, consumer_uuid: str) -> Mapping[str, Mapping[str, int]]:
    held: dict[str, dict[str, int]] = {}
    for one in allocations.of_consumer(connection, consumer_uuid):
        held.setdefault(one.provider_uuid, {})[one.class_name] = one.used
    return held


def _is_same(consumer: Consumer, claim: Claim) -> bool:
    if (consumer.project_id, consumer.user_id) != (claim.project_id, claim.user_id):
        return False
    return claim.type_name is None or consumer.type_name in (UNKNOWN_TYPE, claim.type_name)


def _refused(claim: Claim, sentence: str) -> TreeRefused:
    return TreeRefused(TreeRefusal.OTHER_CONSUMER, f"Consumer {claim.consumer_uuid} {sentence}.")
