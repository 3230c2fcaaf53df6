"""The database of one of Nova's cells: its hosts, and its servers, each with all that is its own."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import sqlalchemy as sa
from sqlalchemy.engine import Connection, Row

from moorage.compute.takeover import nova_tables as tables
from moorage.compute.takeover.nova_cloud import (
    NovaAction,
    NovaEvent,
    NovaFault,
    NovaMigration,
    NovaNode,
    NovaServer,
    NovaService,
)
from moorage.compute.takeover.nova_objects import Json, plain
from moorage.compute.takeover.reading import by_owner, fields_of, pairs, rows_of, utc, utc_or_none
from moorage.takeover import releases
from moorage.takeover.paging import pages

REVISIONS = {
    "16f1fbcab42b": "Xena",
    "ccb0fa1a2252": "Yoga, Zed",
    "960aac0e09ea": "between Zed and 2023.1",
    "1b91788ec3a6": "2023.1",
    "1acf2c98e646": "2023.2, 2024.1",
    "13863f4e1612": "between 2024.1 and 2024.2",
    "d60bddf7a903": "between 2024.1 and 2024.2",
    "2903cd72dc14": "2024.2, 2025.1",
    "ab450ba04102": "2025.2 and later",
}
AGENT = "nova-compute"
_BATCH = 200


def check(connection: Connection) -> None:
    releases.require_known(
        connection, REVISIONS, what="a database of one of Nova's cells", command="nova-manage db sync"
    )


def services(connection: Connection) -> list[NovaService]:
    """Of hosts: the others are processes of Nova's own."""
    table = tables.services
    query = sa.select(table).where(table.c.deleted == 0, table.c.binary == AGENT).order_by(table.c.id)
    return [
        NovaService(
            **fields_of(row, "id", "uuid", "host", "binary", "disabled_reason"),
            disabled=bool(row.disabled),
            forced_down=bool(row.forced_down),
            last_seen_up=utc_or_none(row.last_seen_up),
            created_at=utc(row.created_at),
            updated_at=utc(row.updated_at or row.created_at),
        )
        for row in connection.execute(query)
    ]


def nodes(connection: Connection) -> list[NovaNode]:
    table = tables.compute_nodes
    query = sa.select(table).where(table.c.deleted == 0).order_by(table.c.id)
    return [
        NovaNode(
            **fields_of(row, "id", "uuid", "host", "hypervisor_type", "vcpus", "memory_mb", "local_gb"),
            name=row.hypervisor_hostname,
            hypervisor_version=row.hypervisor_version or 0,
            host_ip=None if row.host_ip is None else str(row.host_ip),
            cpu_info=_object(plain(row.cpu_info, f"cpu_info of {row.hypervisor_hostname}")),
            created_at=utc(row.created_at),
        )
        for row in connection.execute(query)
    ]


def count(connection: Connection) -> int:
    query = sa.select(sa.func.count()).select_from(tables.instances).where(*VISIBLE)
    return int(connection.execute(query).scalar_one())


VISIBLE = (tables.LIVES, sa.func.coalesce(tables.instances.c.hidden, sa.false()) == sa.false())
"""A server that moves between cells is in both, and hidden in one."""


def server_uuids(connection: Connection) -> Iterator[list[str]]:
    """In batches, the oldest first."""
    table = tables.instances
    query = sa.select(table.c.id, table.c.uuid).where(*VISIBLE)
    for found in pages(connection, query, table.c.id, _BATCH):
        yield [row.uuid for row in found]


def servers(connection: Connection, uuids: Sequence[str], requests: dict[str, Json]) -> list[NovaServer]:
    """In the order of their numbers; `requests` is what the API's database knows of them."""
    belongings = _Belongings.read(connection, uuids)
    found = rows_of(connection, tables.instances, "uuid", uuids, *VISIBLE)
    return [_server(row, belongings, requests.get(row.uuid, {})) for row in found]


class _Belongings(NamedTuple):
    """Of a batch of servers: rows of other tables, by server."""

    extra: dict[Any, list[Row[Any]]]
    caches: dict[Any, list[Row[Any]]]
    metadata: dict[Any, list[Row[Any]]]
    system_metadata: dict[Any, list[Row[Any]]]
    tags: dict[Any, list[Row[Any]]]
    interfaces: dict[Any, list[Row[Any]]]
    faults: dict[Any, list[Row[Any]]]
    actions: dict[Any, list[Row[Any]]]
    events: dict[Any, list[Row[Any]]]
    """By action."""
    migrations: dict[Any, list[Row[Any]]]

    @classmethod
    def read(cls, connection: Connection, uuids: Sequence[str]) -> _Belongings:
        def of(table: sa.TableClause, key: str = "instance_uuid") -> dict[Any, list[Row[Any]]]:
            lives = (table.c.deleted == 0,) if "deleted" in table.c else ()
            return by_owner(rows_of(connection, table, key, uuids, *lives), key)

        actions = of(tables.instance_actions)
        numbers = [action.id for found in actions.values() for action in found]
        events = rows_of(connection, tables.instance_actions_events, "action_id", numbers)
        return cls(
            extra=of(tables.instance_extra),
            caches=of(tables.instance_info_caches),
            metadata=of(tables.instance_metadata),
            system_metadata=of(tables.instance_system_metadata),
            tags=of(tables.tags, "resource_id"),
            interfaces=of(tables.virtual_interfaces),
            faults=of(tables.instance_faults),
            actions=actions,
            events=by_owner(events, "action_id"),
            migrations=of(tables.migrations),
        )


_SAME = (
    *(
        "id",
        "uuid",
        "project_id",
        "user_id",
        "key_name",
        "key_data",
        "vm_state",
        "task_state",
        "host",
        "node",
    ),
    *("availability_zone", "user_data"),
)


def _server(row: Row[Any], belongings: _Belongings, request: Json) -> NovaServer:
    uuid, extra = row.uuid, next(iter(belongings.extra[row.uuid]), None)
    flavors = None if extra is None else plain(extra.flavor, f"the flavor of instance {uuid}")
    certificates = None if extra is None else plain(extra.trusted_certs, f"trusted_certs of instance {uuid}")
    cache = next(iter(belongings.caches[uuid]), None)
    return NovaServer(
        **fields_of(row, *_SAME),
        name=row.display_name or "",
        description=row.display_description,
        hostname=row.hostname or "",
        reservation_id=row.reservation_id or "",
        launch_index=row.launch_index or 0,
        image_ref=row.image_ref or "",
        power_state=row.power_state or 0,
        progress=row.progress or 0,
        locked_by=row.locked_by if row.locked else None,
        config_drive=bool(row.config_drive),
        access_ip_v4=str(row.access_ip_v4 or ""),
        access_ip_v6=str(row.access_ip_v6 or ""),
        auto_disk_config=bool(row.auto_disk_config),
        created_at=utc(row.created_at),
        updated_at=utc(row.updated_at or row.created_at),
        launched_at=utc_or_none(row.launched_at),
        terminated_at=utc_or_none(row.terminated_at),
        flavor=_object((flavors or {}).get("cur")),
        trusted_certs=None if certificates is None else list(certificates.get("ids") or []),
        network_info=plain(cache and cache.network_info, f"the network_info of instance {uuid}") or [],
        vif_tags={vif.uuid: vif.tag for vif in belongings.interfaces[uuid] if vif.tag},
        metadata=pairs(belongings.metadata[uuid]),
        system_metadata=pairs(belongings.system_metadata[uuid]),
        tags=sorted(tag.tag for tag in belongings.tags[uuid]),
        fault=_fault(belongings.faults[uuid]),
        actions=[_action(action, belongings.events[action.id]) for action in belongings.actions[uuid]],
        migrations=[_migration(move) for move in belongings.migrations[uuid]],
        request=request,
    )


def _fault(found: list[Row[Any]]) -> NovaFault | None:
    """The newest."""
    if not found:
        return None
    newest = found[-1]
    return NovaFault(newest.code, newest.message or "", newest.details or "", utc(newest.created_at))


def _action(row: Row[Any], events: list[Row[Any]]) -> NovaAction:
    return NovaAction(
        **fields_of(row, "action", "message"),
        request_id=row.request_id or "",
        user_id=row.user_id or "",
        project_id=row.project_id or "",
        start_time=utc(row.start_time),
        updated_at=utc(row.updated_at or row.start_time),
        events=[
            NovaEvent(
                **fields_of(event, "event", "result", "host", "details"),
                start_time=utc(event.start_time),
                finish_time=utc_or_none(event.finish_time),
            )
            for event in events
        ],
    )


def _migration(row: Row[Any]) -> NovaMigration:
    return NovaMigration(
        **fields_of(row, "id", "uuid", "user_id", "project_id", "status", "dest_node"),
        kind=row.migration_type or "resize",
        source_host=row.source_compute or "",
        source_node=row.source_node or "",
        dest_host=row.dest_compute,
        dest_address=row.dest_host,
        old_flavor_id=row.old_instance_type_id,
        new_flavor_id=row.new_instance_type_id,
        created_at=utc(row.created_at),
        updated_at=utc(row.updated_at or row.created_at),
    )


def _object(found: Any) -> Json:
    return found if isinstance(found, dict) else {}
