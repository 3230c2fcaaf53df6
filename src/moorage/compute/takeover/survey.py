"""What there is, what of it can't come over, and why: found before anything is written."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from moorage.compute.moves.migrations import MigrationStatus
from moorage.compute.options import QUOTAS
from moorage.compute.servers.states import VmState
from moorage.compute.takeover import api_reader, cell_reader, cloud_rows
from moorage.compute.takeover import nova_tables as tables
from moorage.compute.takeover.nova_cloud import NovaApi, NovaLimit, NovaNode, NovaService
from moorage.compute.takeover.nova_source import NovaSource
from moorage.takeover.remainders import Remainders, Weight

_INSTANCES = tables.instances
_BRINGABLE = (
    *(VmState.ACTIVE, VmState.STOPPED, VmState.PAUSED, VmState.SUSPENDED, VmState.SHELVED),
    *(VmState.SHELVED_OFFLOADED, VmState.ERROR),
)
_MENDABLE = {
    VmState.BUILDING: "servers are being built: wait until that is over",
    VmState.RESIZED: "servers wait for the end of a resize: confirm or revert it",
    VmState.RESCUED: "servers are rescued: unrescue them",
    VmState.SOFT_DELETED: "servers are deleted softly: restore them, or delete them for good",
}
_UNDER_WAY = (
    *(MigrationStatus.ACCEPTED, MigrationStatus.QUEUED, MigrationStatus.PREPARING, MigrationStatus.RUNNING),
    *(MigrationStatus.PRE_MIGRATING, MigrationStatus.MIGRATING, MigrationStatus.POST_MIGRATING),
    *(MigrationStatus.FINISHED, MigrationStatus.CONFIRMING, MigrationStatus.REVERTING),
)


@dataclass
class Survey:
    api: NovaApi
    services: list[list[NovaService]]
    """By cell, as `nodes`."""
    nodes: list[list[NovaNode]]
    limits: list[NovaLimit]
    """Of what there are quotas of here."""
    counts: dict[str, int]
    remainders: Remainders
    left_out: set[str] = field(default_factory=set)
    """Servers that stay behind."""


def look(source: NovaSource) -> Survey:
    api = api_reader.read(source.api)
    services = [cell_reader.services(cell) for cell in source.cells]
    nodes = [cell_reader.nodes(cell) for cell in source.cells]
    remainders, left_out = Remainders(), set[str]()
    _of_api(api, remainders)
    _twice(services, nodes, remainders)
    for cell in source.cells:
        _busy(cell, remainders)
        left_out |= _homeless(cell, remainders)
        left_out |= _with_volumes(cell, remainders)
        _quiet_changes(cell, remainders)
    limits = [limit for limit in api.limits if cloud_rows.is_known(limit, QUOTAS)]
    counts = {
        "flavors": sum(not flavor.disabled for flavor in api.flavors),
        "keypairs": len(api.keypairs),
        "aggregates": len(api.aggregates),
        "server_groups": len(api.groups),
        "limits": len(limits),
        "services": sum(map(len, services)),
        "nodes": sum(map(len, nodes)),
        "servers": sum(map(cell_reader.count, source.cells)) - len(left_out),
    }
    return Survey(api, services, nodes, limits, counts, remainders, left_out)


def _of_api(api: NovaApi, remainders: Remainders) -> None:
    remainders.add(
        "unborn",
        Weight.BLOCKING,
        "servers were asked for, and no cell has them yet: wait until they are there",
        len(api.unborn),
        api.unborn,
    )
    disabled = [f"{flavor.flavorid} ({flavor.name})" for flavor in api.flavors if flavor.disabled]
    remainders.add(
        "disabled-flavors",
        Weight.OPTIONAL,
        "flavors are disabled, which nothing here can be; servers that have them keep them",
        len(disabled),
        disabled,
    )
    unread = {limit.resource for limit in api.limits if not cloud_rows.is_known(limit, QUOTAS)}
    remainders.add(
        "limits",
        Weight.NOTICE,
        "resources have limits that nothing in Compute asks for: networks have their own",
        len(unread),
        sorted(unread),
    )


def _twice(
    services: Sequence[Sequence[NovaService]], nodes: Sequence[Sequence[NovaNode]], remainders: Remainders
) -> None:
    """Cells know nothing of each other."""
    hosts = _repeated(service.host for cell in services for service in cell)
    remainders.add("hosts", Weight.BLOCKING, "hosts have the same name in several cells", len(hosts), hosts)
    same = _repeated(node.uuid for cell in nodes for node in cell)
    remainders.add("nodes", Weight.BLOCKING, "compute nodes have the same UUID", len(same), same)


def _repeated(names: Iterable[str]) -> list[str]:
    seen, repeated = set[str](), set[str]()
    for name in names:
        (repeated if name in seen else seen).add(name)
    return sorted(repeated)


def _busy(cell: Connection, remainders: Remainders) -> None:
    """Nothing may be at work: who would go on with it?"""
    idle = _INSTANCES.c.task_state.is_(None)
    working = _named(cell, ~idle)
    remainders.add(
        "busy",
        Weight.BLOCKING,
        "servers are being worked on: wait, or reset those that are stuck (openstack server set --state)",
        len(working),
        _shown(working),
    )
    for state, sentence in _MENDABLE.items():
        found = _named(cell, idle & (_INSTANCES.c.vm_state == state.value))
        remainders.add(f"state-{state.value}", Weight.BLOCKING, sentence, len(found), _shown(found))
    known = [state.value for state in (*_BRINGABLE, *_MENDABLE)]
    strange = _named(cell, idle & _INSTANCES.c.vm_state.not_in(known))
    remainders.add(
        "state",
        Weight.BLOCKING,
        "servers are in a state that there is not here",
        len(strange),
        _shown(strange),
    )
    moving = sa.exists().where(
        tables.migrations.c.instance_uuid == _INSTANCES.c.uuid,
        tables.migrations.c.deleted == 0,
        tables.migrations.c.status.in_([status.value for status in _UNDER_WAY]),
    )
    moved = _named(cell, idle & (_INSTANCES.c.vm_state != VmState.RESIZED.value) & moving)
    remainders.add(
        "moving",
        Weight.BLOCKING,
        "servers have a migration that has not ended: wait, or abort it",
        len(moved),
        _shown(moved),
    )


def _homeless(cell: Connection, remainders: Remainders) -> set[str]:
    node = sa.exists().where(
        tables.compute_nodes.c.host == _INSTANCES.c.host,
        tables.compute_nodes.c.hypervisor_hostname == _INSTANCES.c.node,
        tables.compute_nodes.c.deleted == 0,
    )
    found = _named(cell, _INSTANCES.c.host.is_not(None) & ~node)
    remainders.add(
        "homeless",
        Weight.OPTIONAL,
        "servers are on a host that has no such compute node any more: delete them, or mend that",
        len(found),
        _shown(found),
    )
    flavor = sa.exists().where(
        tables.instance_extra.c.instance_uuid == _INSTANCES.c.uuid,
        tables.instance_extra.c.flavor.is_not(None),
    )
    shapeless = _named(cell, ~flavor)
    remainders.add(
        "flavorless",
        Weight.OPTIONAL,
        "servers do not know their flavor (nova-manage db online_data_migrations)",
        len(shapeless),
        _shown(shapeless),
    )
    return {*found, *shapeless}


def _with_volumes(cell: Connection, remainders: Remainders) -> set[str]:
    volume = sa.exists().where(
        tables.block_device_mapping.c.instance_uuid == _INSTANCES.c.uuid,
        tables.block_device_mapping.c.destination_type == "volume",
        tables.block_device_mapping.c.deleted == 0,
    )
    found = _named(cell, volume)
    remainders.add(
        "volumes",
        Weight.OPTIONAL,
        "servers have volumes, of which there are none here: detach them, or leave the servers behind",
        len(found),
        _shown(found),
    )
    return set(found)


def _quiet_changes(cell: Connection, remainders: Remainders) -> None:
    deleted = sa.select(sa.func.count()).select_from(_INSTANCES).where(_INSTANCES.c.deleted != 0)
    remainders.add(
        "deleted",
        Weight.NOTICE,
        "servers were deleted; rows that are left of them, and of their moves, stay behind",
        int(cell.execute(deleted).scalar_one()),
    )
    placed = sa.exists().where(
        tables.instance_extra.c.instance_uuid == _INSTANCES.c.uuid,
        tables.instance_extra.c.numa_topology.is_not(None),
    )
    pinned = _named(cell, placed)
    remainders.add(
        "placed",
        Weight.NOTICE,
        "servers have a place on their host's processors, which is not brought: the domain has it",
        len(pinned),
        _shown(pinned),
    )
    table = tables.services
    others = cell.execute(
        sa.select(table.c.binary, table.c.host).where(
            table.c.deleted == 0, table.c.binary != cell_reader.AGENT
        )
    ).all()
    remainders.add(
        "processes",
        Weight.NOTICE,
        "services are processes of Nova's own, which are not brought",
        len(others),
        [f"{row.binary} on {row.host}" for row in others],
    )


def _named(cell: Connection, condition: sa.ColumnElement[bool]) -> dict[str, str]:
    """Servers, by UUID, with their names."""
    query = sa.select(_INSTANCES.c.uuid, _INSTANCES.c.display_name).where(*cell_reader.VISIBLE, condition)
    return {row.uuid: row.display_name or "" for row in cell.execute(query.order_by(_INSTANCES.c.id))}


def _shown(named: Mapping[str, Any]) -> list[str]:
    return [f"{uuid} ({name})" for uuid, name in named.items()]
