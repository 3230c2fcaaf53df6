"""What an agent sees is believed, and what should not be there is removed."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa

from moorage.bus.contract import Heartbeat, ObservedServer, Task
from moorage.compute.aggregates.known_aggregates import KnownAggregates
from moorage.conductor.agents.inbox import Inbox
from moorage.core import uuids
from moorage.core.clock import utcnow
from moorage.db import engine, migrate
from moorage.db.database import Database
from moorage.db.tables.compute import operations, servers, services
from moorage.drivers.contract import RUNNING, SHUT_DOWN, ServerSpec
from moorage.ledger import queue
from tests.unit.agent.stand import Stand


class Control:
    """The conductor's inbox on a real database, and an agent's executor that does what it orders."""

    def __init__(self, url: str, directory: Path) -> None:
        connected = engine.connect(url)
        migrate.sync(connected)
        self.database = Database(connected)
        self.stand = Stand(directory)
        self.orders: list[Task] = []
        self.inbox = Inbox(self.database, KnownAggregates(self.database), lambda: None, self._cast)
        self.inbox.on_heartbeat(Heartbeat("host-1", 1, nodes=[]))

    def _cast(self, host: str, tasks: list[Task]) -> None:
        assert host == "host-1"
        self.orders.extend(tasks)

    def server(self, **columns: Any) -> str:
        """A server that this host runs, and that the books describe as given."""
        uuid = uuids.generate()
        row: dict[str, Any] = {
            "uuid": uuid,
            "project_id": "p",
            "user_id": "u",
            "name": "s",
            "hostname": "s",
            "reservation_id": "r",
            "flavor": {},
            "flavorid": "1",
            "vm_state": "active",
            "power_state": RUNNING,
            "host": "host-1",
            **columns,
        }
        with self.database.write() as connection:
            made = connection.execute(sa.insert(servers).values(row).returning(servers.c.id)).scalar_one()
            operation = queue.enqueue(connection, made, "build", {})
        node = self.stand.driver.nodes()[0].uuid
        self.stand.driver.spawn(ServerSpec(uuid, "s", "p", "u", node, {}))
        self.stand.journal.accept([Task(operation, uuid, "spawn", 1, node)])
        return uuid

    def move(self, uuid: str, tasks: dict[str, int]) -> int:
        """An operation that moved the server, and told these hosts to do something at these attempts."""
        with self.database.write() as connection:
            server_id = sa.select(servers.c.id).where(servers.c.uuid == uuid)
            found = connection.execute(server_id).scalar_one()
            return queue.enqueue(connection, found, "cold_move", {"move": {}, "tasks": tasks})

    def told(self, uuid: str, operation: int, attempt: int) -> None:
        """The agent has heard of this."""
        self.stand.journal.accept([Task(operation, uuid, "start", attempt, "")])

    def attempt(self, uuid: str, attempt: int) -> None:
        with self.database.write() as connection:
            server_id = sa.select(servers.c.id).where(servers.c.uuid == uuid).scalar_subquery()
            change = sa.update(operations).where(operations.c.server_id == server_id)
            connection.execute(change.values(attempt=attempt))

    def see(self, power: dict[str, int] | None = None, *, disabled: bool = False) -> list[Task]:
        self.orders.clear()
        known = self.stand.journal.newest()
        found = self.stand.driver.servers() if power is None else power
        seen = {uuid: ObservedServer(number, *known.get(uuid, (0, 0))) for uuid, number in found.items()}
        self.inbox.on_heartbeat(Heartbeat("host-1", 1, {"disabled": disabled}, observed=seen))
        return list(self.orders)

    def shown(self, uuid: str) -> tuple[str, int]:
        query = sa.select(servers.c.vm_state, servers.c.power_state).where(servers.c.uuid == uuid)
        with self.database.read() as connection:
            row = connection.execute(query).one()
            return row.vm_state, row.power_state


@pytest.fixture
def control(database_url: str, tmp_path: Path) -> Iterator[Control]:
    made = Control(database_url, tmp_path / "agent")
    yield made
    made.stand.end()
    made.database.engine.dispose()


def test_what_is_in_order_is_left_alone(control: Control) -> None:
    uuid = control.server()
    assert control.see() == []
    assert control.shown(uuid) == ("active", RUNNING)


def test_the_state_follows_the_machine(control: Control) -> None:
    uuid = control.server()
    control.see({uuid: SHUT_DOWN})
    assert control.shown(uuid) == ("stopped", SHUT_DOWN)
    control.see({uuid: RUNNING})
    assert control.shown(uuid) == ("active", RUNNING)
    control.see({uuid: 0})
    assert control.shown(uuid) == ("active", 0)


def test_a_server_that_is_being_worked_on_is_left_alone(control: Control) -> None:
    uuid = control.server(task_state="powering-on")
    control.see({uuid: SHUT_DOWN})
    assert control.shown(uuid) == ("active", RUNNING)


def test_what_was_seen_before_the_last_operation_is_no_news(control: Control) -> None:
    uuid = control.server()
    with control.database.write() as connection:
        server_id = connection.execute(sa.select(servers.c.id).where(servers.c.uuid == uuid)).scalar_one()
        queue.enqueue(connection, server_id, "start", {})
    control.see({uuid: SHUT_DOWN})
    assert control.shown(uuid) == ("active", RUNNING)


@pytest.mark.parametrize("columns", [{"host": "host-2"}, {"host": None}, {"deleted_at": utcnow()}])
def test_a_server_that_belongs_elsewhere_or_nowhere_goes(control: Control, columns: dict[str, Any]) -> None:
    uuid = control.server(**columns)
    control.attempt(uuid, 2)
    right = control.server()
    orders = control.see()
    assert [order.server_uuid for order in orders] == [uuid]
    control.stand.do(*orders)
    control.stand.wait_idle()
    assert set(control.stand.driver.servers()) == {right}
    assert control.stand.results == []


def test_a_build_may_still_come_back_to_the_host(control: Control) -> None:
    uuid = control.server(host=None)
    control.attempt(uuid, 2)
    (order,) = control.see()
    control.stand.do(order)
    control.stand.wait_idle()
    again = control.stand.task("spawn", uuid, operation=order.operation_id, attempt=2)
    control.stand.do(again)
    assert control.stand.wait_for(1)[0].ok
    control.stand.do(order)
    control.stand.wait_idle()
    assert uuid in control.stand.driver.servers()


def test_a_server_that_nobody_knows_is_not_ours_to_end(control: Control) -> None:
    assert control.see({uuids.generate(): RUNNING}) == []


def test_a_host_hears_that_it_is_disabled_until_it_has_understood(control: Control) -> None:
    control.see()
    with control.database.write() as connection:
        connection.execute(sa.update(services).values(disabled=True))
    (order,) = control.see()
    assert order.payload == {"disabled": True}
    assert control.see(disabled=True) == []
    with control.database.write() as connection:
        connection.execute(sa.update(services).values(disabled=False))
    (order,) = control.see(disabled=True)
    assert order.payload == {"disabled": False}


def test_what_was_seen_before_the_last_task_of_a_move_is_no_news(control: Control) -> None:
    uuid = control.server()
    moved = control.move(uuid, {"host-1": 7})
    control.told(uuid, moved, 6)
    control.see({uuid: SHUT_DOWN})
    assert control.shown(uuid) == ("active", RUNNING)
    control.told(uuid, moved, 7)
    control.see({uuid: SHUT_DOWN})
    assert control.shown(uuid) == ("stopped", SHUT_DOWN)


def test_an_operation_that_ended_before_it_told_anybody_blinds_nobody(control: Control) -> None:
    uuid = control.server()
    with control.database.write() as connection:
        server_id = connection.execute(sa.select(servers.c.id).where(servers.c.uuid == uuid)).scalar_one()
        discard = queue.enqueue(connection, server_id, "discard_image", {})
        ended = sa.update(operations).where(operations.c.id == discard)
        connection.execute(ended.values(finished_at=utcnow(), outcome="done"))
    control.see({uuid: SHUT_DOWN})
    assert control.shown(uuid) == ("stopped", SHUT_DOWN)


def test_a_move_that_told_this_host_nothing_blinds_nobody(control: Control) -> None:
    uuid = control.server()
    control.move(uuid, {"host-2": 9})
    control.move(uuid, {})
    control.see({uuid: SHUT_DOWN})
    assert control.shown(uuid) == ("stopped", SHUT_DOWN)
