"""Lists of servers: filters, order and page become one SQL query.

In the usual order (newest first) an index gives the page without a look at the rest, so that a page costs the
same in a cloud of a hundred servers and of a hundred thousand.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

import sqlalchemy as sa
from sqlalchemy.dialects import postgresql
from sqlalchemy.engine import Connection

from moorage.compute.errors import ComputeError
from moorage.compute.servers.labels import MAX_TAGS
from moorage.compute.servers.server import COLUMNS, Server, from_row
from moorage.compute.servers.server_errors import MarkerNotFound
from moorage.compute.servers.states import VmState
from moorage.db.among import among
from moorage.db.order import by_character
from moorage.db.pattern import Pattern, fits
from moorage.db.tables.compute import servers

Condition = sa.ColumnElement[bool]

SORTABLE: Mapping[str, sa.Column[Any]] = {
    "access_ip_v4": servers.c.access_ip_v4,
    "access_ip_v6": servers.c.access_ip_v6,
    "availability_zone": servers.c.availability_zone,
    "config_drive": servers.c.config_drive,
    "created_at": servers.c.created_at,
    "display_description": servers.c.description,
    "display_name": servers.c.name,
    "host": servers.c.host,
    "hostname": servers.c.hostname,
    "image_ref": servers.c.image_ref,
    "instance_type_id": servers.c.flavorid,
    "key_name": servers.c.key_name,
    "launch_index": servers.c.launch_index,
    "launched_at": servers.c.launched_at,
    "locked": servers.c.locked_by,
    "locked_by": servers.c.locked_by,
    "node": servers.c.node,
    "power_state": servers.c.power_state,
    "progress": servers.c.progress,
    "project_id": servers.c.project_id,
    "task_state": servers.c.task_state,
    "terminated_at": servers.c.terminated_at,
    "updated_at": servers.c.updated_at,
    "user_id": servers.c.user_id,
    "uuid": servers.c.uuid,
    "vm_state": servers.c.vm_state,
}
UNSORTED = frozenset({"auto_disk_config", "kernel_id", "ramdisk_id", "root_device_name"})
"""Sort keys of the API that are the same for all servers here."""

EQUAL: Mapping[str, sa.Column[Any]] = {
    "project_id": servers.c.project_id,
    "user_id": servers.c.user_id,
    "image": servers.c.image_ref,
    "flavor": servers.c.flavorid,
    "host": servers.c.host,
    "uuid": servers.c.uuid,
    "vm_state": servers.c.vm_state,
    "task_state": servers.c.task_state,
}
"""Filters that want the value as it is; each may have several, of which one must be met."""

MATCHING: Mapping[str, sa.Column[Any]] = {
    "name": servers.c.name,
    "description": servers.c.description,
    "hostname": servers.c.hostname,
    "key_name": servers.c.key_name,
    "node": servers.c.node,
    "reservation_id": servers.c.reservation_id,
    "availability_zone": servers.c.availability_zone,
    "locked_by": servers.c.locked_by,
    "access_ip_v4": servers.c.access_ip_v4,
    "access_ip_v6": servers.c.access_ip_v6,
    "launch_index": servers.c.launch_index,
    "power_state": servers.c.power_state,
    "progress": servers.c.progress,
    "created_at": servers.c.created_at,
    "launched_at": servers.c.launched_at,
    "terminated_at": servers.c.terminated_at,
}
"""Filters that are regular expressions."""


@dataclass(frozen=True)
class ServerSort:
    key: str
    descending: bool


@dataclass
class ServerQuery:
    """Which servers, in which order, from where on, how many."""

    equal: dict[str, list[str]] = field(default_factory=dict)
    matching: dict[str, Pattern] = field(default_factory=dict)
    address: Pattern | None = None
    address_v6: Pattern | None = None
    tags: list[str] = field(default_factory=list)
    tags_any: list[str] = field(default_factory=list)
    not_tags: list[str] = field(default_factory=list)
    not_tags_any: list[str] = field(default_factory=list)
    changed_since: datetime | None = None
    changed_before: datetime | None = None
    deleted: bool | None = False
    """None lists both kinds."""
    soft_deleted: bool = False
    """Whether those are listed that are deleted softly."""
    locked: bool | None = None
    config_drive: bool | None = None
    auto_disk_config: bool | None = None
    order: list[ServerSort] = field(default_factory=lambda: [ServerSort("created_at", True)])
    marker: str | None = None
    marker_among: dict[str, list[str]] = field(default_factory=dict)
    """By the names of `equal`: what the caller may know of. How others' servers sort is not to be told."""
    limit: int = 1000


def page(connection: Connection, listing: ServerQuery) -> list[Server]:
    return [from_row(row) for row in _rows(connection, listing, COLUMNS)]


def brief_page(connection: Connection, listing: ServerQuery) -> list[tuple[str, str]]:
    """UUID and name only, which spares reading the rest."""
    return [(row.uuid, row.name) for row in _rows(connection, listing, (servers.c.uuid, servers.c.name))]


def _rows(
    connection: Connection, listing: ServerQuery, columns: Sequence[sa.Column[Any]]
) -> Sequence[sa.Row[Any]]:
    if listing.limit == 0:
        return []
    keys = _sort_keys(listing.order)
    query = sa.select(*columns).where(*_conditions(connection, listing)).limit(listing.limit)
    if listing.marker is not None:
        query = query.where(_after(connection, listing.marker, listing.marker_among, keys))
    query = query.order_by(*(key.desc() if descending else key.asc() for key, descending in keys))
    try:
        return connection.execute(query).all()
    except sa.exc.DataError as error:  # too complex for PostgreSQL
        raise ComputeError("Invalid regular expression in a filter.") from error


# ---------------------------------------------------------------- conditions


def _conditions(connection: Connection, listing: ServerQuery) -> list[Condition]:
    return [
        *(_among(connection, EQUAL[name], values) for name, values in listing.equal.items()),
        *(_matches(connection, MATCHING[name], pattern) for name, pattern in listing.matching.items()),
        *_address_conditions(connection, listing),
        *_tag_conditions(connection, listing),
        *_other_conditions(listing),
    ]


def _among(connection: Connection, column: sa.Column[Any], values: list[str]) -> Condition:
    return column == values[0] if len(values) == 1 else among(connection, column, values)


def _matches(connection: Connection, column: sa.Column[Any], pattern: Pattern) -> Condition:
    text = column if isinstance(column.type, sa.String) else sa.cast(column, sa.Text)
    return fits(connection, text, pattern)


def _other_conditions(listing: ServerQuery) -> list[Condition]:
    conditions: list[Condition] = []
    if listing.deleted is not None:
        gone = servers.c.deleted_at
        conditions.append(gone.is_not(None) if listing.deleted else gone.is_(None))
    if listing.deleted is False and not listing.soft_deleted:
        conditions.append(servers.c.vm_state != VmState.SOFT_DELETED.value)
    if listing.changed_since is not None:
        conditions.append(servers.c.updated_at >= listing.changed_since)
    if listing.changed_before is not None:
        conditions.append(servers.c.updated_at <= listing.changed_before)
    if listing.locked is not None:
        by = servers.c.locked_by
        conditions.append(by.is_not(None) if listing.locked else by.is_(None))
    if listing.config_drive is not None:
        conditions.append(servers.c.config_drive.is_(listing.config_drive))
    if listing.auto_disk_config is not None:
        is_auto = sa.func.coalesce(servers.c.request["disk_config"].as_string(), "") == "AUTO"
        conditions.append(is_auto if listing.auto_disk_config else sa.not_(is_auto))
    return conditions


def _tag_conditions(connection: Connection, listing: ServerQuery) -> list[Condition]:
    def has(tag: str) -> Condition:
        return _tagged(connection, lambda found: found == tag)

    def has_all(tags: list[str]) -> list[Condition]:
        return [has(tag) for tag in tags] if len(tags) <= MAX_TAGS else [sa.false()]

    def has_any(tags: list[str]) -> Condition:
        return _tagged(connection, lambda found: among(connection, found, tags))

    conditions = has_all(listing.tags)
    if listing.tags_any:
        conditions.append(has_any(listing.tags_any))
    if listing.not_tags:
        conditions.append(sa.not_(sa.and_(*has_all(listing.not_tags))))
    if listing.not_tags_any:
        conditions.append(sa.not_(has_any(listing.not_tags_any)))
    return conditions


def _tagged(connection: Connection, test: Callable[[sa.ColumnElement[str]], Condition]) -> Condition:
    function = (
        sa.func.json_array_elements_text if connection.dialect.name == "postgresql" else sa.func.json_each
    )
    listed = function(servers.c.tags).table_valued(sa.column("value", sa.Text))
    return sa.exists().select_from(listed).where(test(listed.c.value))


def _address_conditions(connection: Connection, listing: ServerQuery) -> list[Condition]:
    conditions = []
    for pattern, mark in ((listing.address, "."), (listing.address_v6, ":")):
        if pattern is not None:
            conditions.append(_has_address(connection, pattern, mark))
    return conditions


def _has_address(connection: Connection, pattern: Pattern, mark: str) -> Condition:
    """An address that fits `pattern`; `mark` is a character that all addresses of its kind have."""
    if connection.dialect.name == "postgresql":
        document = sa.cast(servers.c.addresses, postgresql.JSONB)
        path = sa.cast("$.*[*].addr", postgresql.JSONPATH)
        values = sa.func.jsonb_path_query(document, path).table_valued(sa.column("value", postgresql.JSONB))
        found = values.render_derived()
        address: sa.ColumnElement[str] = found.c.value.op("#>>", return_type=sa.Text())(
            sa.literal_column("'{}'")
        )
        return (
            sa.exists().select_from(found).where(fits(connection, address, pattern), address.contains(mark))
        )
    found = sa.func.json_tree(servers.c.addresses).table_valued("key", "value")
    address = found.c.value
    conditions = (found.c.key == "addr", fits(connection, address, pattern), address.contains(mark))
    return sa.exists().select_from(found).where(*conditions)


# ---------------------------------------------------------------- order and page


Key = tuple[sa.ColumnElement[Any], bool]


def _sort_keys(order: list[ServerSort]) -> list[Key]:
    """Every order ends in the id, so that it is total; nothing is NULL, so that a page can begin anywhere."""
    keys = [(by_character(_without_null(SORTABLE[one.key])), one.descending) for one in order]
    last = order[-1].descending if order else True
    return [*keys, (servers.c.id, last)]


def _without_null(column: sa.Column[Any]) -> sa.ColumnElement[Any]:
    if not column.nullable:
        return column
    blank = "" if isinstance(column.type, sa.String) else datetime.fromtimestamp(0, UTC)
    return sa.func.coalesce(column, sa.literal(blank, column.type))


def _after(connection: Connection, marker: str, among: Mapping[str, list[str]], keys: list[Key]) -> Condition:
    """A deleted server is a marker too: it may have gone while its list was paged through."""
    known = (_among(connection, EQUAL[name], values) for name, values in among.items())
    query = sa.select(*(key for key, _ in keys)).where(servers.c.uuid == marker, *known)
    row = connection.execute(query).one_or_none()
    if row is None:
        raise MarkerNotFound(marker)
    columns = [key for key, _ in keys]
    values = [sa.literal(value, key.type) for key, value in zip(columns, row, strict=True)]
    directions = {descending for _, descending in keys}
    if len(directions) == 1:
        left, right = sa.tuple_(*columns), sa.tuple_(*values)
        return left < right if directions.pop() else left > right
    return _ladder(keys, values)


def _ladder(keys: list[Key], values: list[sa.BindParameter[Any]]) -> Condition:
    """Beyond the marker in the first key, or level in it and beyond in the second, and so on."""
    rungs = []
    for at, ((column, descending), value) in enumerate(zip(keys, values, strict=True)):
        level = [key == known for (key, _), known in zip(keys[:at], values[:at], strict=True)]
        rungs.append(sa.and_(*level, column < value if descending else column > value))
    return sa.or_(*rungs)
