"""Agents that share nodes, and a conductor that decides who owns them; the machines are a dictionary.

What agents and conductors say to each other waits until it is delivered, so that a test can lose it, say it
twice, or have somebody die in between.
"""

from __future__ import annotations

import uuid
from collections.abc import Collection, Mapping, Sequence
from datetime import timedelta
from typing import Any

import msgspec
import sqlalchemy as sa

from moorage.agent.ownership import Ownership, OwnershipUpdate
from moorage.bus.contract import OWN, SET_PEERS, Heartbeat, Task
from moorage.compute.hosts import registry
from moorage.conductor.ownership import ownership
from moorage.core import uuids
from moorage.core.clock import utcnow
from moorage.db.database import Database
from moorage.db.tables.compute import nodes, servers, services
from moorage.drivers.contract import Node
from moorage.drivers.rendezvous import share
from moorage.drivers.shared_nodes import Held, SharedNode

DOWN_AFTER = timedelta(seconds=60)
_NODES = uuid.UUID("0d6f5b9c-3c0e-4a55-8f0c-6c1c2b1f7a10")


class Machines:
    """What there is, whoever owns it: the group of each node, and the server that it has."""

    def __init__(self) -> None:
        self.group: dict[str, str] = {}
        self.server: dict[str, str] = {}
        self.traits: dict[str, list[str]] = {}


class View:
    """What the driver of one host sees of the machines."""

    def __init__(self, machines: Machines, group: str) -> None:
        self._machines = machines
        self.group = group
        self._seen: dict[str, SharedNode] = {}
        self.kept: set[str] | None = None

    def look(self) -> None:
        found = (uuid for uuid, group in self._machines.group.items() if group == self.group)
        self._seen = {uuid: self._shared(uuid) for uuid in found}

    def terms(self) -> dict[str, Any]:
        return {"key": self.group, "shard": "", "peers": []}

    def eligible(self) -> Mapping[str, SharedNode]:
        return self._seen

    def share(self, host: str, members: Sequence[str]) -> set[str]:
        return share(host, members, list(self._seen))

    def look_up_missing(self, node_uuid: str) -> SharedNode | None:
        return self._shared(node_uuid) if node_uuid in self._machines.group else None

    def keep(self, node_uuids: Collection[str]) -> None:
        self.kept = set(node_uuids)

    def extend_lease(self, until: float) -> None:
        """Nobody in here is ever stopped."""

    def lost_servers(self) -> set[str]:
        return set()

    def held(self) -> set[Held]:
        return set()

    def sweep(self, held: Held) -> bool:
        return False

    def _shared(self, uuid: str) -> SharedNode:
        traits = self._machines.traits.get(uuid, [])
        group = self._machines.group[uuid]
        facts = {"conductor_group": group, "shard": "", "ironic_name": "test", "traits": traits}
        return SharedNode(Node(uuid, uuid, "test", {}, traits, facts), free=uuid not in self._machines.server)


class Agent:
    def __init__(self, host: str, machines: Machines, group: str, *, failover: bool = True) -> None:
        self.host = host
        self.view = View(machines, group)
        self.ownership = Ownership(host, self.view, failover_servers=failover)
        self.inherited: dict[str, list[str]] = {}

    def owned(self) -> set[str]:
        return self.view.kept or set()

    def take(self, task: Task) -> None:
        if task.kind == SET_PEERS:
            self.ownership.meet(task.payload["peers"])
        elif task.kind == OWN:
            word = msgspec.convert(task.payload, OwnershipUpdate)
            self.inherited |= word.traits
            self.ownership.learn(word)


class SharedFleet:
    def __init__(self, database: Database) -> None:
        self.database = database
        self.machines = Machines()
        self.agents: dict[str, Agent] = {}
        self.mail: dict[str, list[Task]] = {}
        """What each host has yet to be told."""

    def add_nodes(self, group: str, count: int) -> list[str]:
        # The same in every run, so that hashing gives the same shares.
        made = [str(uuid.uuid5(_NODES, f"{group}-{number}")) for number in range(count)]
        self.machines.group |= dict.fromkeys(made, group)
        return made

    def start(self, host: str, group: str, *, failover: bool = True) -> Agent:
        self.agents[host] = Agent(host, self.machines, group, failover=failover)
        return self.agents[host]

    def kill(self, host: str, *, forgotten: bool = True) -> None:
        """It knows nothing any more; once it is `forgotten`, it counts as down."""
        del self.agents[host]
        if forgotten:
            self.forget(host)

    def forget(self, host: str) -> None:
        old = sa.update(services).where(services.c.host == host).values(seen_at=utcnow() - 2 * DOWN_AFTER)
        self.database.transact(lambda connection: connection.execute(old))

    def beat(self, host: str, *, heard: bool = True) -> None:
        """A heartbeat, and a conductor that does what is to be done, unless it is not `heard`."""
        agent = self.agents[host]
        agent.ownership.about_to_beat()
        bid = agent.ownership.bid()
        tally = agent.ownership.digest() if bid is None else None
        said = Heartbeat(host, 3, facts=agent.ownership.facts(), bid=bid, digest=tally)
        if heard:
            self._record(said)
            agent.ownership.has_beaten()

    def look(self, host: str) -> None:
        self.agents[host].ownership.look()

    def deliver(self, host: str) -> None:
        waiting, self.mail[host] = self.mail.get(host, []), []
        for task in waiting:
            if host in self.agents:
                self.agents[host].take(task)

    def settle(self, rounds: int = 6) -> None:
        """Everybody does what they do all the time, for a while."""
        for _ in range(rounds):
            for host, agent in self.agents.items():
                agent.ownership.ask_for_everything()
                self.look(host)
                self.beat(host)
                self.deliver(host)

    def rest(self, rounds: int = 3) -> None:
        """Everybody goes on as usual, and says nothing that they said before."""
        for _ in range(rounds):
            for host in self.agents:
                self.look(host)
                self.beat(host)
                self.deliver(host)

    def owners(self) -> dict[str, str]:
        """As it is written down."""
        with self.database.read() as connection:
            return dict(connection.execute(sa.select(nodes.c.uuid, nodes.c.host)).all())

    def epochs(self) -> dict[str, int]:
        with self.database.read() as connection:
            return dict(connection.execute(sa.select(nodes.c.uuid, nodes.c.epoch)).all())

    def place(self, node: str) -> str:
        """A server comes to a node, and is its owner's."""
        server, host = uuids.generate(), self.owners()[node]
        self.machines.server[node] = server
        row = {
            **dict.fromkeys(("project_id", "user_id", "name", "hostname", "flavorid"), "x"),
            "uuid": server,
            "reservation_id": "r-1",
            "flavor": {},
            "vm_state": "active",
            "host": host,
            "node": node,
            "node_uuid": node,
        }
        self.database.transact(lambda connection: connection.execute(sa.insert(servers).values(**row)))
        return server

    def remove_server(self, node: str) -> None:
        gone = sa.update(servers).where(servers.c.node_uuid == node).values(deleted_at=utcnow())
        self.database.transact(lambda connection: connection.execute(gone))
        del self.machines.server[node]

    def server_hosts(self) -> dict[str, str]:
        """The hosts of the servers that there are, by node."""
        query = sa.select(servers.c.node_uuid, servers.c.host).where(servers.c.deleted_at.is_(None))
        with self.database.read() as connection:
            return dict(connection.execute(query).all())

    def _record(self, said: Heartbeat) -> None:
        def work(connection: sa.Connection) -> dict[str, list[Task]]:
            registry.heartbeat(
                connection, said.host, registry.AGENT_BINARY, version=said.version, facts=said.facts
            )
            told = {said.host: ownership.peer_orders(connection, said, DOWN_AFTER)}
            if said.bid is not None:
                settlement = ownership.decide(connection, said, said.bid, DOWN_AFTER)
                order = ownership.order(settlement, said.bid, DOWN_AFTER.total_seconds())
                told[said.host] += [order] if order is not None else []
                for host, lost in settlement.revoked.items():
                    told.setdefault(host, []).append(ownership.revocation(lost))
                for host, won in settlement.passed_on.items():
                    told.setdefault(host, []).append(ownership.grant(won))
            elif said.digest is not None:
                lease = DOWN_AFTER.total_seconds()
                told[said.host] += ownership.corrections(connection, said.host, said.digest, lease)
            return told

        for host, tasks in self.database.transact(work).items():
            self.mail.setdefault(host, []).extend(tasks)
