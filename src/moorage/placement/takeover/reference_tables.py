"""The reference's tables, as far as we read and write them, and which of its releases have them."""

from __future__ import annotations

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from moorage.takeover import releases

UNTYPED = "b5c396305c25"
"""The last revision whose consumers had no types."""
READABLE = {
    UNTYPED: "Train to Wallaby",
    "422ece571366": "Xena to Zed",
    "a082b8bb98d0": "2023.1 and later",
}
WRITABLE = {revision: names for revision, names in READABLE.items() if revision != UNTYPED}

_WHAT = "the reference's Placement database"
_COMMAND = "placement-manage db sync"

TABLES = sa.MetaData()


def _table(name: str, *columns: sa.Column[object]) -> sa.Table:
    stamps = (sa.Column("created_at", sa.DateTime), sa.Column("updated_at", sa.DateTime))
    return sa.Table(name, TABLES, *columns, *stamps)


def _numbered(name: str, *columns: sa.Column[object]) -> sa.Table:
    return _table(name, sa.Column("id", sa.Integer, primary_key=True), *columns)


def _integers(*names: str) -> list[sa.Column[object]]:
    return [sa.Column(name, sa.Integer) for name in names]


def _strings(*names: str) -> list[sa.Column[object]]:
    return [sa.Column(name, sa.String) for name in names]


classes = _numbered("resource_classes", *_strings("name"))
traits = _numbered("traits", *_strings("name"))
consumer_types = _numbered("consumer_types", *_strings("name"))
projects = _numbered("projects", *_strings("external_id"))
users = _numbered("users", *_strings("external_id"))
aggregates = _numbered("placement_aggregates", *_strings("uuid"))
providers = _numbered(
    "resource_providers",
    *_strings("uuid", "name"),
    *_integers("generation", "root_provider_id", "parent_provider_id"),
)
inventories = _numbered(
    "inventories",
    *_integers("resource_provider_id", "resource_class_id"),
    *_integers("total", "reserved", "min_unit", "max_unit", "step_size"),
    sa.Column("allocation_ratio", sa.Float),
)
provider_traits = _table("resource_provider_traits", *_integers("resource_provider_id", "trait_id"))
provider_aggregates = _table(
    "resource_provider_aggregates", *_integers("resource_provider_id", "aggregate_id")
)
consumers = _numbered(
    "consumers", *_strings("uuid"), *_integers("project_id", "user_id", "generation", "consumer_type_id")
)
allocations = _numbered(
    "allocations", *_strings("consumer_id"), *_integers("resource_provider_id", "resource_class_id", "used")
)


def require_readable(connection: Connection) -> str:
    """The revision of its schema."""
    return releases.require_known(connection, READABLE, what=_WHAT, command=_COMMAND)


def require_writable(connection: Connection) -> str:
    return releases.require_known(connection, WRITABLE, what=_WHAT, command=_COMMAND)
