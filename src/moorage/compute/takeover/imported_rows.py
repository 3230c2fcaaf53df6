"""All rows that come over, table by table, in an order in which each finds what it refers to."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from moorage.compute.quotas import usage
from moorage.compute.takeover import api_reader, cell_reader, cloud_rows, server_rows
from moorage.compute.takeover.nova_cloud import NovaServer
from moorage.compute.takeover.nova_source import NovaSource
from moorage.compute.takeover.numbers import Numbers
from moorage.compute.takeover.server_rows import Known
from moorage.compute.takeover.survey import Survey
from moorage.db.tables.aggregates import aggregate_hosts, aggregates
from moorage.db.tables.compute import (
    actions,
    flavor_projects,
    flavors,
    keypairs,
    nodes,
    quota_usage,
    quotas,
    server_group_members,
    server_groups,
    servers,
    services,
)
from moorage.db.tables.moves import migrations

Row = dict[str, Any]

WHOLE = ""


@dataclass(frozen=True)
class ImportedRows:
    table: sa.Table
    rows: list[Row]
    scope: str = WHOLE
    """A column: these are all rows that have one of its values. Or they are all rows that there are."""


def of_cloud(survey: Survey, numbers: Numbers) -> Iterator[ImportedRows]:
    """All but servers. Services and nodes are not the only ones: conductors may have come before."""
    api = survey.api
    usable = [flavor for flavor in api.flavors if not flavor.disabled]
    yield ImportedRows(flavors, [cloud_rows.flavor(one) for one in usable])
    yield ImportedRows(flavor_projects, [row for one in usable for row in cloud_rows.flavor_projects(one)])
    yield ImportedRows(keypairs, [cloud_rows.keypair(one) for one in api.keypairs])
    yield ImportedRows(aggregates, [cloud_rows.aggregate(one) for one in api.aggregates])
    yield ImportedRows(
        aggregate_hosts, [row for one in api.aggregates for row in cloud_rows.aggregate_hosts(one)]
    )
    yield ImportedRows(server_groups, [cloud_rows.server_group(one) for one in api.groups])
    yield ImportedRows(quotas, [cloud_rows.limit(one) for one in survey.limits])
    yield ImportedRows(
        services,
        [
            cloud_rows.service(one, numbers.of(services, one.uuid, one.id))
            for cell in survey.services
            for one in cell
        ],
        scope="uuid",
    )
    yield ImportedRows(
        nodes,
        [cloud_rows.node(one, numbers.of(nodes, one.uuid, one.id)) for cell in survey.nodes for one in cell],
        scope="uuid",
    )


def of_servers(source: NovaSource, survey: Survey, numbers: Numbers) -> Iterator[list[ImportedRows]]:
    """In batches; what projects use of their quotas comes last."""
    known, groups = _known(survey), {group.uuid: group.id for group in survey.api.groups}
    used: dict[str, Counter[str]] = {}
    for cell in source.cells:
        for uuids in cell_reader.server_uuids(cell):
            wanted = [uuid for uuid in uuids if uuid not in survey.left_out]
            batch = _batch(source.api, cell, wanted, numbers, known, groups)
            for row in batch[0].rows:
                used.setdefault(row["project_id"], Counter()).update(usage.of_one(row["flavor"]))
            yield batch
    yield [
        ImportedRows(quota_usage, [{"project_id": project, **amounts} for project, amounts in used.items()])
    ]


def _known(survey: Survey) -> Known:
    return Known(
        nodes={(node.host, node.name): node.uuid for cell in survey.nodes for node in cell},
        groups={member: group.uuid for group in reversed(survey.api.groups) for member in group.members},
        flavors={flavor.id: flavor for flavor in survey.api.flavors},
    )


def _batch(
    api: Connection,
    cell: Connection,
    uuids: list[str],
    numbers: Numbers,
    known: Known,
    groups: dict[str, int],
) -> list[ImportedRows]:
    found = cell_reader.servers(cell, uuids, api_reader.request_specs(api, uuids))
    rows = [server_rows.server(one, numbers.of(servers, one.uuid, one.id), known) for one in found]
    pairs: list[tuple[NovaServer, Row]] = list(zip(found, rows, strict=True))
    return [
        ImportedRows(servers, rows, scope="uuid"),
        ImportedRows(
            server_group_members,
            [
                {
                    "group_id": groups[known.groups[one.uuid]],
                    "server_id": row["id"],
                    "node_uuid": row["node_uuid"],
                }
                for one, row in pairs
                if one.uuid in known.groups
            ],
            scope="server_id",
        ),
        ImportedRows(
            actions,
            [server_rows.action(action, row["id"]) for one, row in pairs for action in one.actions],
            scope="server_id",
        ),
        ImportedRows(
            migrations,
            [
                server_rows.migration(move, numbers.of(migrations, move.uuid, move.id), row, known)
                for one, row in pairs
                for move in one.migrations
            ],
            scope="uuid",
        ),
    ]
