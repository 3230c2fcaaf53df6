"""What conductors make of hosts that reserve machines: who looks after a pool, and what is no stray."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import pytest
import sqlalchemy as sa

from moorage.bus.contract import DISCARD, OWN, Bid, HeldMachine, NodeFacts, ObservedServer, Task
from moorage.core import uuids
from moorage.core.clock import utcnow
from moorage.db import engine, migrate
from moorage.db.database import Database
from moorage.db.tables.compute import nodes, operations, servers
from moorage.drivers.contract import RUNNING
from moorage.drivers.ironic.reservations import pool
from tests.functional.conductor.control import Control

TERMS = {"key": "a", "shard": "", "peers": [], "selection": "reservation"}


class Pools(Control):
    """Hosts of one partition, each with its pool."""

    described: tuple[str, dict[str, Any]]
    """Type and facts of each pool."""

    def say(
        self, host: str, *, wants: bool = True, held_machines: Sequence[HeldMachine] = (), **facts: Any
    ) -> list[tuple[str, Task]]:
        uuid = pool.uuid_of(host)
        bid = Bid(wanted=[NodeFacts(uuid, host, *self.described)]) if wants else None
        return self.beat(host, {"partition": TERMS, **facts}, bid=bid, held_machines=list(held_machines))

    def owner(self, host: str) -> str:
        query = sa.select(nodes.c.host).where(nodes.c.uuid == pool.uuid_of(host))
        with self.database.read() as connection:
            return str(connection.execute(query).scalar_one())

    def host_of(self, server: str) -> str:
        query = sa.select(servers.c.host).where(servers.c.uuid == server)
        with self.database.read() as connection:
            return str(connection.execute(query).scalar_one())

    def rest(self) -> None:
        """Nothing is being done to any server."""
        done = sa.update(operations).values(finished_at=utcnow())
        self.database.transact(lambda connection: connection.execute(done))


@pytest.fixture(params=[("other", {"capabilities": {"pool": True}}), (pool.HYPERVISOR_TYPE, {})])
def control(request: pytest.FixtureRequest, database_url: str) -> Iterator[Pools]:
    """Agents say that it is a pool; those that are too old to, say its type."""
    connected = engine.connect(database_url)
    migrate.sync(connected)
    made = Pools(Database(connected))
    made.described = request.param
    for host in ("host", "peer"):
        made.say(host)
    yield made
    connected.dispose()


def told(said: list[tuple[str, Task]], host: str) -> dict[str, Any]:
    """What a host hears of what it owns."""
    (word,) = [task.payload for name, task in said if (name, task.kind) == (host, OWN)]
    return word


def test_a_peer_gets_a_pool_with_servers_and_gives_it_back_when_nothing_is_done_to_them(
    control: Pools,
) -> None:
    uuid = pool.uuid_of("host")
    server = control.server("host", uuid)
    control.die("host")
    assert told(control.say("peer", wants=False), "peer")["granted"] == {uuid: 2}
    assert (control.owner("host"), control.host_of(server)) == ("peer", "peer")
    control.say("host")
    assert control.owner("host") == "peer", "an operation is at the server"
    control.rest()
    said = control.say("host")
    assert told(said, "host")["granted"] == {uuid: 3}
    assert told(said, "peer")["revoked"] == {uuid: 3}
    assert (control.owner("host"), control.host_of(server)) == ("host", "host")


def test_a_pool_without_servers_stays(control: Pools) -> None:
    control.die("host")
    control.say("peer", wants=False)
    assert control.owner("host") == "host"


def test_a_pool_through_which_a_machine_is_held_for_nobody_goes_to_a_peer_that_asks(control: Pools) -> None:
    uuid, held = pool.uuid_of("host"), HeldMachine(uuids.generate(), pool.uuid_of("host"))
    control.say("peer", wants=False, held_machines=[held])
    assert control.owner("host") == "host", "it lives, and looks after it itself"
    control.die("host")
    said = control.say("peer", wants=False, held_machines=[held])
    assert told(said, "peer")["granted"] == {uuid: 2}
    assert control.owner("host") == "peer"


@pytest.mark.parametrize(
    "terms", [{**TERMS, "shared": True}, {"key": "a", "shard": "", "peers": [], "pools": True}]
)
def test_a_pool_goes_to_a_peer_that_gets_machines_in_another_way(
    control: Pools, terms: dict[str, Any]
) -> None:
    server = control.server("host", pool.uuid_of("host"))
    control.say("peer", wants=False, partition=terms)
    control.die("host")
    assert control.hosts.has_live_peer("host")
    control.say("peer", wants=False, partition=terms)
    assert (control.owner("host"), control.host_of(server)) == ("peer", "peer")


@pytest.mark.parametrize(
    "facts",
    [
        {"failover_servers": False},
        {"partition": {**TERMS, "key": "b"}},
        {"partition": {"key": "a", "shard": "", "peers": []}},
    ],
)
def test_only_a_peer_that_can_and_will_gets_a_pool(control: Pools, facts: dict[str, Any]) -> None:
    server = control.server("host", pool.uuid_of("host"))
    control.say("peer", wants=False, **facts)
    control.die("host")
    control.say("peer", wants=False, **facts)
    assert (control.owner("host"), control.host_of(server)) == ("host", "host")
    assert not control.hosts.has_live_peer("host")


def test_each_pool_goes_to_one_of_several_peers(control: Pools) -> None:
    control.say("third")
    control.server("host", pool.uuid_of("host"))
    control.die("host")
    for host in ("peer", "third", "peer", "third"):
        control.say(host, wants=False)
    first = control.owner("host")
    assert first in ("peer", "third")
    control.die(first)
    other = ({"peer", "third"} - {first}).pop()
    control.say(other, wants=False)
    assert control.owner("host") == other, "the peer that looked after it has died, too"


def test_who_owns_a_machine_that_another_host_has_reserved_does_not_end_its_server(control: Pools) -> None:
    uuid = pool.uuid_of("host")
    server = control.server("host", uuid)
    sightings = {server: ObservedServer(RUNNING)}
    scheduled = {"partition": {"key": "a", "shard": "", "peers": []}}
    assert DISCARD not in kinds(control.beat("other", scheduled, observed=sightings))
    assert DISCARD in kinds(control.beat("peer", {"partition": TERMS}, observed=sightings))
    gone = sa.update(servers).values(deleted_at=utcnow())
    control.database.transact(lambda connection: connection.execute(gone))
    assert DISCARD in kinds(control.beat("other", scheduled, observed=sightings))


def kinds(said: list[tuple[str, Task]]) -> list[str]:
    return [task.kind for _, task in said]
