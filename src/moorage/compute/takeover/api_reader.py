"""The database of Nova's API: flavors, key pairs, aggregates, groups, limits, and where its cells are."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec
from sqlalchemy.engine import Connection

from moorage.compute.takeover import nova_tables as tables
from moorage.compute.takeover.nova_cloud import (
    NovaAggregate,
    NovaApi,
    NovaCell,
    NovaFlavor,
    NovaKeypair,
    NovaLimit,
    NovaServerGroup,
)
from moorage.compute.takeover.nova_objects import Json, plain
from moorage.compute.takeover.reading import by_owner, fields_of, pairs, rows, rows_of, utc, utc_or_none
from moorage.takeover import releases

REVISIONS = {
    "d67eeaabee36": "Xena",
    "b30f573d3377": "Yoga, Zed",
    "cdeec0c85668": "2023.1 and later",
}
CELL0 = "00000000-0000-0000-0000-000000000000"
"""The cell of servers that never came to a host."""


def check(connection: Connection) -> None:
    releases.require_known(
        connection, REVISIONS, what="a database of Nova's API", command="nova-manage api_db sync"
    )


def cells(connection: Connection) -> list[NovaCell]:
    """That of servers without a host comes last: numbers of servers that others have are theirs."""
    found = [
        NovaCell(row.uuid, row.name or "", row.database_connection, bool(row.disabled))
        for row in rows(connection, tables.cell_mappings, "id")
    ]
    return sorted(found, key=lambda cell: cell.uuid == CELL0)


def read(connection: Connection) -> NovaApi:
    return NovaApi(
        flavors=list(_flavors(connection)),
        keypairs=list(_keypairs(connection)),
        aggregates=list(_aggregates(connection)),
        groups=list(_groups(connection)),
        limits=[*_class_limits(connection), *_project_limits(connection), *_user_limits(connection)],
        unborn=[row.instance_uuid for row in rows(connection, tables.build_requests, "instance_uuid")],
    )


def request_specs(connection: Connection, server_uuids: list[str]) -> dict[str, Json]:
    found = rows_of(connection, tables.request_specs, "instance_uuid", server_uuids)
    return {
        row.instance_uuid: plain(row.spec, f"the request specification of instance {row.instance_uuid}") or {}
        for row in found
    }


def _flavors(connection: Connection) -> Iterator[NovaFlavor]:
    specs = by_owner(rows(connection, tables.flavor_extra_specs, "flavor_id"), "flavor_id")
    projects = by_owner(rows(connection, tables.flavor_projects, "flavor_id"), "flavor_id")
    for row in rows(connection, tables.flavors, "id"):
        yield NovaFlavor(
            **fields_of(row, "id", "flavorid", "name", "vcpus", "memory_mb", "description"),
            root_gb=row.root_gb or 0,
            ephemeral_gb=row.ephemeral_gb or 0,
            swap=row.swap or 0,
            rxtx_factor=1.0 if row.rxtx_factor is None else row.rxtx_factor,
            disabled=bool(row.disabled),
            is_public=row.is_public is not False,
            created_at=utc(row.created_at),
            extra_specs=pairs(specs[row.id]),
            projects=[access.project_id for access in projects[row.id]],
        )


def _keypairs(connection: Connection) -> Iterator[NovaKeypair]:
    for row in rows(connection, tables.key_pairs, "id"):
        same = fields_of(row, "id", "user_id", "name", "type", "public_key", "fingerprint")
        yield NovaKeypair(**same, created_at=utc(row.created_at))


def _aggregates(connection: Connection) -> Iterator[NovaAggregate]:
    metadata = by_owner(rows(connection, tables.aggregate_metadata, "aggregate_id"), "aggregate_id")
    hosts = by_owner(rows(connection, tables.aggregate_hosts, "aggregate_id", "host"), "aggregate_id")
    for row in rows(connection, tables.aggregates, "id"):
        yield NovaAggregate(
            **fields_of(row, "id", "uuid", "name"),
            created_at=utc(row.created_at),
            updated_at=utc_or_none(row.updated_at),
            metadata=pairs(metadata[row.id]),
            hosts=[member.host for member in hosts[row.id]],
        )


def _groups(connection: Connection) -> Iterator[NovaServerGroup]:
    policies = by_owner(rows(connection, tables.instance_group_policy, "group_id"), "group_id")
    members = by_owner(rows(connection, tables.instance_group_member, "id"), "group_id")
    for row in rows(connection, tables.instance_groups, "id"):
        policy = next(iter(policies[row.id]), None)
        rules = msgspec.json.decode((policy and policy.rules) or "{}")
        yield NovaServerGroup(
            **fields_of(row, "id", "uuid", "project_id", "user_id"),
            name=row.name or "",
            policy="" if policy is None else policy.policy,
            rules={name: int(bound) for name, bound in rules.items()},
            created_at=utc(row.created_at),
            members=[member.instance_uuid for member in members[row.id]],
        )


def _class_limits(connection: Connection) -> Iterator[NovaLimit]:
    for row in rows(connection, tables.quota_classes, "class_name", "resource"):
        if row.hard_limit is not None:
            yield NovaLimit(row.resource, row.hard_limit, class_name=row.class_name)


def _project_limits(connection: Connection) -> Iterator[NovaLimit]:
    for row in rows(connection, tables.quotas, "project_id", "resource"):
        if row.hard_limit is not None:
            yield NovaLimit(row.resource, row.hard_limit, project_id=row.project_id)


def _user_limits(connection: Connection) -> Iterator[NovaLimit]:
    for row in rows(connection, tables.project_user_quotas, "project_id", "user_id", "resource"):
        if row.hard_limit is not None:
            yield NovaLimit(row.resource, row.hard_limit, project_id=row.project_id, user_id=row.user_id)
