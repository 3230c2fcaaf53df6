"""What of a reference's database can't come over, or need not: asked before anything is written."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from moorage.placement.takeover import reference_tables as theirs
from moorage.takeover.remainders import EXAMPLES, Remainders, Weight

_ONLINE = "`placement-manage db online_data_migrations` mends it"


def remainders(connection: Connection) -> Remainders:
    found = Remainders()
    ask = _Asking(connection, found)
    _ask_providers(ask)
    _ask_trees(connection, found)
    _ask_belongings(ask)
    _ask_allocations(ask)
    _ask_nobody(ask)
    return found


class _Asking:
    def __init__(self, connection: Connection, found: Remainders) -> None:
        self._connection = connection
        self._found = found

    def __call__(
        self, kind: str, weight: Weight, sentence: str, query: sa.Select[Any], shown: Callable[..., str]
    ) -> None:
        """`query` finds them; `shown` makes a line of one of its rows."""
        counted = sa.select(sa.func.count()).select_from(query.subquery())
        count = self._connection.execute(counted).scalar_one()
        examples = self._connection.execute(query.limit(EXAMPLES)).all() if count else []
        self._found.add(kind, weight, sentence, count, [shown(*row) for row in examples])


def _ask_providers(ask: _Asking) -> None:
    table = theirs.providers
    query = sa.select(table.c.uuid).where(table.c.name.is_(None) | table.c.generation.is_(None))
    ask("nameless", Weight.BLOCKING, "providers without a name or a generation", query, "provider {}".format)


def _ask_trees(connection: Connection, found: Remainders) -> None:
    """Each provider's parents lead to the root that it names."""
    table = theirs.providers
    query = sa.select(table.c.id, table.c.uuid, table.c.parent_provider_id, table.c.root_provider_id)
    rows = connection.execute(query).all()
    rootless = [uuid for _, uuid, _, root in rows if root is None]
    sentence = f"providers that have no root yet: {_ONLINE}"
    found.add("rootless", Weight.BLOCKING, sentence, len(rootless), [f"provider {uuid}" for uuid in rootless])
    parents = {number: parent for number, _, parent, _ in rows}
    tops: dict[int, int | None] = {}
    for number in parents:
        _climb(number, parents, tops)
    astray = [uuid for number, uuid, _, root in rows if root is not None and tops[number] != root]
    sentence = "providers whose parents don't lead to their root"
    found.add("trees", Weight.BLOCKING, sentence, len(astray), [f"provider {uuid}" for uuid in astray])


def _climb(number: int, parents: dict[int, int | None], tops: dict[int, int | None]) -> None:
    """Note the top for each on the way; None for those whose parents are missing or a ring."""
    way = []
    at: int | None = number
    while at is not None and at in parents and at not in tops:
        tops[at] = None  # until it is known: who comes by again goes in a ring
        way.append(at)
        at = parents[at]
    top = way[-1] if at is None else tops.get(at)
    for passed in way:
        tops[passed] = top


def _ask_belongings(ask: _Asking) -> None:
    provider = theirs.providers.alias("owner")
    for kind, sentence, table, column, names in (
        ("inventories", "inventories", theirs.inventories, "resource_class_id", theirs.classes),
        ("traits", "traits", theirs.provider_traits, "trait_id", theirs.traits),
        (
            "aggregates",
            "members of aggregates",
            theirs.provider_aggregates,
            "aggregate_id",
            theirs.aggregates,
        ),
    ):
        query = (
            sa.select(table.c.resource_provider_id, table.c[column])
            .outerjoin_from(table, provider, provider.c.id == table.c.resource_provider_id)
            .outerjoin(names, names.c.id == table.c[column])
            .where(provider.c.id.is_(None) | names.c.id.is_(None))
        )
        shown = f"{table.name}: resource_provider_id {{}}, {column} {{}}".format
        of = f"{sentence} of a provider, or of a name, that does not exist, which nobody sees"
        ask(f"orphan-{kind}", Weight.OPTIONAL, of, query, shown)


def _ask_allocations(ask: _Asking) -> None:
    held, consumer, provider = theirs.allocations, theirs.consumers, theirs.providers
    row = (held.c.id, held.c.consumer_id)
    shown = "allocation {}, consumer {}".format
    query = (
        sa.select(*row)
        .outerjoin_from(held, provider, provider.c.id == held.c.resource_provider_id)
        .outerjoin(theirs.classes, theirs.classes.c.id == held.c.resource_class_id)
        .where(provider.c.id.is_(None) | theirs.classes.c.id.is_(None))
    )
    of = "allocations of a provider, or of a resource class, that does not exist, which nobody sees"
    ask("orphan-allocations", Weight.OPTIONAL, of, query, shown)
    query = sa.select(*row).outerjoin_from(held, consumer, consumer.c.uuid == held.c.consumer_id)
    query = query.where(consumer.c.id.is_(None))
    of = f"allocations whose consumer has no record: {_ONLINE}"
    ask("incomplete-consumers", Weight.BLOCKING, of, query, shown)
    query = (
        sa.select(consumer.c.uuid)
        .outerjoin_from(consumer, theirs.projects, theirs.projects.c.id == consumer.c.project_id)
        .outerjoin(theirs.users, theirs.users.c.id == consumer.c.user_id)
        .where(theirs.projects.c.id.is_(None) | theirs.users.c.id.is_(None))
    )
    of = "consumers of a project, or of a user, that has no record"
    ask("unowned-consumers", Weight.BLOCKING, of, query, "consumer {}".format)
    key = (held.c.consumer_id, held.c.resource_provider_id, held.c.resource_class_id)
    double: sa.Select[Any] = sa.select(*key).group_by(*key).having(sa.func.count() > 1)
    of = "consumers that hold a class of a provider twice"
    shown = "consumer {}, resource_provider_id {}, resource_class_id {}".format
    ask("double-allocations", Weight.BLOCKING, of, double, shown)


def _ask_nobody(ask: _Asking) -> None:
    consumer, held, members = theirs.consumers, theirs.allocations, theirs.provider_aggregates
    holding = sa.exists().where(held.c.consumer_id == consumer.c.uuid)
    query = sa.select(consumer.c.uuid).where(~holding)
    of = "consumers that hold nothing, which the reference has forgotten to delete"
    ask("empty-consumers", Weight.NOTICE, of, query, "consumer {}".format)
    member = sa.exists().where(members.c.aggregate_id == theirs.aggregates.c.id)
    query = sa.select(theirs.aggregates.c.uuid).where(~member)
    of = "aggregates without a provider"
    ask("empty-aggregates", Weight.NOTICE, of, query, "aggregate {}".format)
