"""All nodes, a page at a time."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import sqlalchemy as sa

from moorage.compute.hosts.vanished_nodes import VANISHED
from moorage.db.database import Database
from moorage.db.tables.compute import IS_PLACE, nodes

_PAGE = 50


class ListedNode(NamedTuple):
    id: int
    uuid: str
    host: str


class NodePage(NamedTuple):
    nodes: Sequence[ListedNode]
    done: int
    total: int


EXISTS = sa.and_(IS_PLACE, ~sa.func.coalesce(nodes.c.facts[VANISHED].as_boolean(), sa.false()))
"""Servers can be there: neither what several hosts share, nor what was lost."""


def pages(database: Database) -> Iterator[NodePage]:
    with database.read() as connection:
        total = connection.execute(sa.select(sa.func.count()).select_from(nodes).where(EXISTS)).scalar_one()
    last, done = 0, 0
    while True:
        query = sa.select(nodes.c.id, nodes.c.uuid, nodes.c.host).where(nodes.c.id > last, EXISTS)
        with database.read() as connection:
            found = [ListedNode(*row) for row in connection.execute(query.order_by(nodes.c.id).limit(_PAGE))]
        if not found:
            return
        last, done = found[-1].id, done + len(found)
        yield NodePage(found, done, max(total, done))


def host_of(database: Database, uuid: str) -> str | None:
    query = sa.select(nodes.c.host).where(nodes.c.uuid == uuid, EXISTS)
    with database.read() as connection:
        return connection.execute(query).scalar_one_or_none()
