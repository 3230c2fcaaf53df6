"""All machines of a system, with what we know of each: who owns it, who could, what it is used for."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import timedelta

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from moorage.compute.hosts import liveness, machine_failures
from moorage.compute.hosts.peers import TERMS
from moorage.compute.hosts.registry import AGENT_BINARY
from moorage.db.among import among
from moorage.db.tables.compute import nodes, servers, services
from moorage.drivers.machines import ListedMachine, MachineState
from moorage.drivers.served_nodes import ServedNodes

_USED = (MachineState.IN_USE, MachineState.RESERVED, MachineState.DEPLOYING, MachineState.DEPLOY_FAILED)


@dataclass(frozen=True)
class ReportedMachine:
    machine: ListedMachine
    state: MachineState
    reason: str
    owner: str
    """Empty if no host owns it, or reserved it."""
    served: bool
    """Whether a host that is up serves its partition."""


@dataclass(frozen=True)
class MachineReport:
    machines: list[ReportedMachine]
    without_nodes: list[tuple[str, str]]
    """Hosts that are up, and what they serve, if there is no machine of that."""


def make(connection: Connection, machines: Iterable[ListedMachine], down_after: timedelta) -> MachineReport:
    """Needs a snapshot."""
    found = list(machines)
    serving = _serving(connection, down_after)
    partitions = set(serving.values())
    kept_out = machine_failures.quarantined(connection)
    owners = dict(connection.execute(sa.select(nodes.c.uuid, nodes.c.host)).all())
    used_for = {machine.server_uuid for machine in found if machine.server_uuid}
    hosts = _hosts_of(connection, used_for)
    reported = []
    for machine in found:
        state, reason = machine.state, machine.reason
        if state in _USED and machine.server_uuid not in hosts:
            state, reason = MachineState.OTHERS, machine.server_uuid
        elif state is MachineState.FREE and machine.uuid in kept_out:
            state, reason = MachineState.QUARANTINE, kept_out[machine.uuid].reason
        owner = owners.get(machine.uuid) or hosts.get(machine.server_uuid) or ""
        served = any(one.has(machine.group, machine.shard) for one in partitions)
        reported.append(ReportedMachine(machine, state, reason, owner, served))
    places = {(machine.group, machine.shard) for machine in found}
    without = [
        (host, str(served))
        for host, served in sorted(serving.items())
        if not any(served.has(*place) for place in places)
    ]
    return MachineReport(reported, without)


def _serving(connection: Connection, down_after: timedelta) -> dict[str, ServedNodes]:
    query = sa.select(services.c.host, services.c.facts).where(
        services.c.binary == AGENT_BINARY, liveness.is_up(down_after)
    )
    found = connection.execute(query)
    return {host: ServedNodes.read(facts[TERMS]) for host, facts in found if facts.get(TERMS) is not None}


def _hosts_of(connection: Connection, server_uuids: set[str]) -> dict[str, str]:
    query = sa.select(servers.c.uuid, servers.c.host).where(
        among(connection, servers.c.uuid, sorted(server_uuids)), servers.c.deleted_at.is_(None)
    )
    return {uuid: host or "" for uuid, host in connection.execute(query)}
