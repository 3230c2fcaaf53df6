"""Adoption: a server that a host has becomes what the database says of it, which has forgotten, or knows it
elsewhere, since it was restored from a backup."""

from __future__ import annotations

import re
from typing import Any

import msgspec
import sqlalchemy as sa
from sqlalchemy.engine import Connection

from moorage.compute.audits.audit import CheckName
from moorage.compute.audits.findings import ANEW, MEND, Suspect
from moorage.compute.errors import ComputeError, ConflictError, NotFoundError
from moorage.compute.flavors import flavors
from moorage.compute.moves import migrations
from moorage.compute.ports import shown_addresses
from moorage.compute.quotas import usage
from moorage.compute.servers import actions, creation, lost_machines
from moorage.compute.servers import servers as records
from moorage.compute.servers.actions import Event, Origin
from moorage.compute.servers.server import COLUMNS, Server, from_row
from moorage.compute.servers.states import PowerNumber, VmState
from moorage.core.clock import utcnow
from moorage.db import bulk, era
from moorage.db.tables.compute import flavors as flavor_table
from moorage.db.tables.compute import nodes, servers
from moorage.db.tables.eras import FIRST
from moorage.drivers.contract import ServerSpec
from moorage.ledger import queue
from moorage.network.contract import PortRecord, ServerPorts

ACTION = "adopt"
_STATES = {
    PowerNumber.RUNNING: VmState.ACTIVE,
    PowerNumber.SHUT_DOWN: VmState.STOPPED,
    PowerNumber.CRASHED: VmState.STOPPED,
    PowerNumber.PAUSED: VmState.PAUSED,
    PowerNumber.SUSPENDED: VmState.SUSPENDED,
}
_NAMED = re.compile(r"instance-([0-9a-f]{8,15})")


class AdoptionTerms(msgspec.Struct, frozen=True):
    """What an operator says of a server; what is empty, its host has to know."""

    server_uuid: str
    host: str
    project_id: str = ""
    user_id: str = ""
    name: str = ""
    flavorid: str = ""
    node_uuid: str = ""


class SeenServer(msgspec.Struct, frozen=True):
    """What its host says of it."""

    power_state: int
    spec: ServerSpec | None = None

    def ports(self) -> list[PortRecord]:
        return [] if self.spec is None else [msgspec.convert(port, PortRecord) for port in self.spec.network]


def holding(terms: AdoptionTerms, seen: SeenServer) -> ServerPorts:
    return ServerPorts(terms.server_uuid, seen.ports())


def adopt(connection: Connection, terms: AdoptionTerms, seen: SeenServer, origin: Origin) -> str:
    """Write down what the server is, and where; a conductor claims what it needs there. Its UUID."""
    node = _node(connection, terms, seen)
    query = sa.select(*COLUMNS).where(servers.c.uuid == terms.server_uuid).with_for_update()
    row = connection.execute(query).one_or_none()
    if row is None:
        server_id, is_other = _insert(connection, _row(connection, terms, seen, node)), False
    else:
        server_id, is_other = row.id, _relocate(connection, from_row(row), terms, seen, node)
    action = actions.start(connection, server_id, ACTION, origin)
    actions.add_events(connection, [Event(action, f"compute_{ACTION}", terms.host)])
    suspect = Suspect(terms.server_uuid, {ANEW: True} if is_other else {})
    claim = {"check": CheckName.ALLOCATIONS.value, "suspect": msgspec.to_builtins(suspect)}
    queue.enqueue(connection, server_id, MEND, claim)
    return terms.server_uuid


class _Node(msgspec.Struct, frozen=True):
    uuid: str
    name: str


def _node(connection: Connection, terms: AdoptionTerms, seen: SeenServer) -> _Node:
    wanted = terms.node_uuid or (seen.spec.node_uuid if seen.spec else "")
    query = sa.select(nodes.c.uuid, nodes.c.name).where(nodes.c.host == terms.host)
    rows = connection.execute(query.where(nodes.c.uuid == wanted) if wanted else query).all()
    if not rows:
        raise NotFoundError(f"Host {terms.host} has no node {wanted}.")
    if len(rows) > 1:
        raise ComputeError(f"Host {terms.host} has several nodes, and does not say which: name the node.")
    return _Node(*rows[0])


def _insert(connection: Connection, row: dict[str, Any]) -> int:
    """It counts for its project, whatever the quota is: it is there already."""
    usage.lock(connection, row["project_id"])
    usage.add(connection, row["project_id"], usage.of_one(row["flavor"]))
    return int(connection.execute(sa.insert(servers).values(row).returning(servers.c.id)).scalar_one())


def _row(connection: Connection, terms: AdoptionTerms, seen: SeenServer, node: _Node) -> dict[str, Any]:
    spec = seen.spec or ServerSpec(terms.server_uuid, "", "", "", node.uuid, {})
    project_id, name = terms.project_id or spec.project_id, terms.name or spec.name
    if not project_id or not name:
        raise ComputeError(f"Host {terms.host} does not know the server's project or name: say both.")
    flavor = _flavor(connection, terms, spec)
    image = spec.image or {}
    row = {
        "uuid": terms.server_uuid,
        "project_id": project_id,
        "user_id": terms.user_id or spec.user_id,
        "name": name,
        "hostname": spec.hostname or creation.host_name_from(name, terms.server_uuid),
        "reservation_id": spec.reservation_id or creation.new_reservation_id(),
        "launch_index": spec.launch_index,
        "flavor": flavor,
        "flavorid": flavor["id"],
        "image_ref": str(image.get("id", "")),
        "key_name": spec.key_name,
        "config_drive": spec.config_drive,
        "user_data": spec.user_data,
        "metadata": spec.metadata,
        "request": _request(spec),
        "launched_at": utcnow(),
        **_whereabouts(terms, seen, node),
    }
    return {**row, "id": _number(connection, spec)}


def _request(spec: ServerSpec) -> dict[str, Any]:
    kept = {"image": spec.image, "ports": spec.network, "public_key": spec.public_key, "files": spec.files}
    kept |= {"hardware": spec.hardware, "scheduler_hints": spec.hints}
    return {"networks": "none", **{name: value for name, value in kept.items() if value}}


def _number(connection: Connection, spec: ServerSpec) -> int:
    """The id that it had before the restore, if its name tells: hypervisors know it by that, and no other
    gets it. Else a new one."""
    (drawn,) = bulk.numbers(connection, servers, 1)
    named = _NAMED.fullmatch(spec.instance_name)
    number = drawn if named is None or era.current(connection).number == FIRST else int(named[1], 16)
    taken = connection.execute(sa.select(servers.c.id).where(servers.c.id == number)).first()
    return drawn if taken is not None or number > drawn else number


def _flavor(connection: Connection, terms: AdoptionTerms, spec: ServerSpec) -> dict[str, Any]:
    if terms.flavorid:
        return flavors.find(connection, terms.flavorid).as_booted()
    if spec.flavor.get("id"):
        return dict(spec.flavor)
    name = spec.flavor.get("name", "")
    query = sa.select(flavor_table.c.flavorid).where(flavor_table.c.name == name)
    found = connection.execute(query).scalar_one_or_none()
    if found is None:
        raise ComputeError(f"Host {terms.host} does not know the server's flavor: name it.")
    return flavors.find(connection, found).as_booted()


def _whereabouts(terms: AdoptionTerms, seen: SeenServer, node: _Node) -> dict[str, Any]:
    return {
        "host": terms.host,
        "node": node.name,
        "node_uuid": node.uuid,
        "vm_state": _STATES.get(seen.power_state, VmState.ACTIVE).value,
        "task_state": None,
        "power_state": seen.power_state,
        "addresses": shown_addresses.addresses(seen.ports()),
        "fault": None,
    }


def _relocate(
    connection: Connection, server: Server, terms: AdoptionTerms, seen: SeenServer, node: _Node
) -> bool:
    """It moved, got another flavor, or was built, since the backup; whether one of the first two. What was
    under way then is over: whoever wrote it down does not know how it went on."""
    if server.deleted_at is not None:
        raise ConflictError(f"Server {server.uuid} is deleted.")
    queue.cancel(connection, server.id)
    move = migrations.active(connection, server.id)
    reserved = {} if move is None else move.reserved
    if move is not None:
        migrations.end_with_server(connection, move)
    spec, changes = seen.spec, _whereabouts(terms, seen, node)
    flavor = server.flavor
    if spec is not None and spec.flavor.get("id"):
        flavor = dict(spec.flavor)
        changes |= {"flavor": flavor, "flavorid": flavor["id"]}
    usage.lock(connection, server.project_id)
    usage.resized(connection, server.project_id, server.flavor, flavor, reserved)
    request = {name: value for name, value in server.request.items() if name != lost_machines.LOST}
    if spec is not None and spec.network:
        request["ports"] = spec.network
    records.update(connection, server.id, **changes, request=request)
    return server.node_uuid != node.uuid or server.flavor != flavor
