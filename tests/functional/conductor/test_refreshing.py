"""What servers' rows say of their ports follows the network: after events, and whenever somebody looks."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import msgspec
import sqlalchemy as sa

from moorage.compute.ports import changed_ports
from moorage.conductor.ports.refreshing import Refreshing
from moorage.db import engine, migrate
from moorage.db.database import Database
from moorage.db.tables import network as tables
from moorage.db.tables.compute import operations
from moorage.ledger import queue
from moorage.network.contract import PortRecord, ServerPorts
from moorage.network.pool import PoolNetwork, PoolSettings
from tests.functional.conductor.conftest import Yard
from tests.support.processes import wait_until

MakeYard = Callable[..., Yard]


class Renumbered(PoolNetwork):
    """A network that gave all its ports other addresses."""

    def look(self, holdings: Sequence[ServerPorts]) -> list[list[PortRecord]]:
        return [
            [msgspec.structs.replace(port, addresses=["10.99.0.1"]) for port in each.ports]
            for each in holdings
        ]


def waiting(cloud: Yard) -> list[str]:
    with cloud.placement.database.read() as connection:
        return list(connection.execute(sa.select(tables.changed_ports.c.server_uuid)).scalars())


def shown(cloud: Yard, uuid: str) -> list[str]:
    found = cloud.server(uuid)["addresses"]
    return [address["addr"] for addresses in found.values() for address in addresses]


def running(cloud: Yard) -> str:
    (uuid,) = cloud.boot()
    cloud.await_status([uuid], "ACTIVE")
    cloud.await_rest()
    return uuid


def renumber(cloud: Yard) -> Refreshing:
    database = cloud.placement.database
    return Refreshing(database, Renumbered(database, PoolSettings.from_conf(cloud.conf)), 0)


def test_addresses_become_what_the_network_says(yard: MakeYard) -> None:
    cloud = yard(hosts=1)
    uuid = running(cloud)
    renumber(cloud).refresh([uuid, "00000000-0000-4000-8000-000000000000"])
    assert shown(cloud, uuid) == ["10.99.0.1"]


def test_a_server_that_somebody_works_on_is_left_alone(yard: MakeYard) -> None:
    cloud = yard(hosts=1, **{"network.refresh_interval": 0})
    uuid = running(cloud)
    before = shown(cloud, uuid)
    database = cloud.placement.database
    with database.read() as connection:
        (server,) = changed_ports.servers_among(connection, [uuid])

    def begin_something(connection: sa.Connection) -> None:
        operation_id = queue.enqueue(connection, server.id, "stop", {})
        mine = sa.update(operations).where(operations.c.id == operation_id)
        connection.execute(mine.values(due_at=None))
        changed_ports.note(connection, [uuid])

    database.transact(begin_something)
    renumber(cloud).refresh([uuid])
    assert shown(cloud, uuid) == before
    with database.read() as connection:
        assert changed_ports.of_servers_at_rest(connection) == {}


def test_an_event_about_ports_is_kept_until_a_conductor_has_looked(yard: MakeYard) -> None:
    cloud = yard(hosts=1)
    uuid = running(cloud)
    event = {"name": "network-changed", "server_uuid": uuid, "tag": "some-port"}
    reply = cloud.api.simulate_post("/v2.1/os-server-external-events", json={"events": [event]})
    assert reply.status_code == 200, reply.text
    wait_until(lambda: waiting(cloud) == [], "the conductor to look", 30)


def test_a_later_event_is_not_forgotten_with_an_earlier_one(database_url: str) -> None:
    connected = engine.connect(database_url)
    migrate.sync(connected)
    database = Database(connected)
    database.transact(lambda connection: changed_ports.note(connection, ["a-server"]))
    with database.read() as connection:
        seen = changed_ports.of_servers_at_rest(connection)
    assert list(seen) == ["a-server"]
    database.transact(lambda connection: changed_ports.note(connection, ["a-server"]))
    database.transact(lambda connection: changed_ports.forget(connection, seen))
    with database.read() as connection:
        again = changed_ports.of_servers_at_rest(connection)
    assert list(again) == ["a-server"]
    database.transact(lambda connection: changed_ports.forget(connection, again))
    with database.read() as connection:
        assert changed_ports.of_servers_at_rest(connection) == {}
    connected.dispose()
