"""Queues of hosts that are gone: the broker has them, an audit finds them and deletes them."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from typing import Any, cast

import pytest
import sqlalchemy as sa
from oslo_config import cfg
from prometheus_client import REGISTRY

from moorage.bus.contract import BusError, Heartbeat, Task
from moorage.bus.host_queues import Whose
from moorage.bus.messaging import MessagingAgentSide, MessagingConductorSide
from moorage.bus.messaging_queues import RabbitQueues
from moorage.bus.options import OPTIONS
from moorage.bus.oslo import set_defaults
from moorage.compute.audits import audit as audits
from moorage.compute.audits import findings
from moorage.compute.audits.audit import CheckName, Repair
from moorage.compute.audits.findings import Finding
from moorage.conductor.auditing.auditor import Auditor
from moorage.conductor.auditing.checks.queues import QueuesCheck
from moorage.conductor.auditing.contract import AuditTools
from moorage.conductor.chores.queue_watch import DEPTH, QueueWatch
from moorage.core import config, uuids
from moorage.core.clock import utcnow
from moorage.db import engine, migrate
from moorage.db.database import Database
from moorage.db.tables.compute import servers, services
from tests.support import debian, rabbitmq
from tests.support.processes import free_port, wait_until

GONE = "rack2-7.example.org"
NOT_OURS = "nobodys-host"
NAMES = [CheckName.QUEUES.value]


@pytest.fixture
def queues(conf: cfg.ConfigOpts) -> Iterator[RabbitQueues]:
    made = RabbitQueues(conf)
    yield made
    made.close()


@pytest.fixture
def database(sqlite_url: str) -> Iterator[Database]:
    connected = engine.connect(sqlite_url)
    migrate.sync(connected)
    yield Database(connected)
    connected.dispose()


def leave_queue(conf: cfg.ConfigOpts, host: str) -> None:
    """As a host does that somebody still told something: a task waits there."""
    side = MessagingConductorSide(conf)
    side.cast(host, [Task(1, "s", "say_again", 1, "")])
    side.close()


class Listening:
    """An agent at its queues."""

    def __init__(self, conf: cfg.ConfigOpts, queues: RabbitQueues, host: str) -> None:
        self._side = MessagingAgentSide(conf)
        self._side.receive(host, lambda _tasks: None)
        self._side.answer(host, cast(Any, None))
        wait_until(lambda: [one.consumers for one in queues.of_host(host)] == [1, 1, 1], "it listens", 30)

    def close(self) -> None:
        self._side.close()


def test_a_queue_that_somebody_listens_to_stays(conf: cfg.ConfigOpts, queues: RabbitQueues) -> None:
    assert queues.of_host(GONE) == []
    agent = Listening(conf, queues, GONE)
    for queue in queues.of_host(GONE):
        with pytest.raises(BusError):
            queues.remove(queue)
    agent.close()
    wait_until(lambda: not any(one.consumers for one in queues.of_host(GONE)), "nobody listens", 30)
    for queue in [*queues.of_host(GONE), *queues.of_host(GONE)]:
        queues.remove(queue)  # the second time nothing happens
    assert queues.of_host(GONE) == []


def depth(whose: Whose) -> float | None:
    return REGISTRY.get_sample_value("moorage_bus_queue_messages", {"queue": whose})


def consumers(queues: RabbitQueues) -> int | None:
    """Of the queue of conductors, if there is one."""
    found = queues._look(queues._names.conductors, "")
    return None if found is None else found.consumers


def test_messages_that_wait_for_conductors_are_counted_until_somebody_draws_them(
    conf: cfg.ConfigOpts, queues: RabbitQueues
) -> None:
    watch = QueueWatch(queues)
    conductor = MessagingConductorSide(conf)
    conductor.receive(lambda _results: None, lambda _heartbeat: None)
    wait_until(lambda: consumers(queues) == 1, "a conductor at its queue, which stays", 30)
    conductor.close()
    wait_until(lambda: consumers(queues) == 0, "nobody at the queue", 30)
    agent = MessagingAgentSide(conf)
    for number in range(3):
        agent.beat(Heartbeat(f"host-{number}", 1, {}))
    wait_until(lambda: queues.waiting() == {Whose.CONDUCTORS: 3}, "three messages", 30)
    watch.look()
    assert (depth(Whose.CONDUCTORS), depth(Whose.HOSTS)) == (3, None)
    heard: list[str] = []
    conductor = MessagingConductorSide(conf)
    conductor.receive(lambda _results: None, lambda heartbeat: heard.append(heartbeat.host))
    wait_until(lambda: len(heard) == 3, "a conductor to draw them", 30)
    wait_until(lambda: queues.waiting() == {Whose.CONDUCTORS: 0}, "none", 30)
    watch.look()
    assert depth(Whose.CONDUCTORS) == 0
    for side in (agent, conductor):
        side.close()


def test_what_waits_in_a_broker_that_is_away_is_not_told(conf: cfg.ConfigOpts) -> None:
    set_defaults(conf)
    conf.set_override("transport_url", "rabbit://guest:guest@127.0.0.1:1/")
    DEPTH.labels(Whose.CONDUCTORS).set(7)
    watch = QueueWatch(RabbitQueues(conf))
    watch._shown = {Whose.CONDUCTORS}
    watch.look()
    assert depth(Whose.CONDUCTORS) is None


def test_a_broker_that_is_away_is_told(conf: cfg.ConfigOpts) -> None:
    set_defaults(conf)
    conf.set_override("transport_url", "rabbit://guest:guest@127.0.0.1:1/")
    lost = RabbitQueues(conf)
    with pytest.raises(BusError):
        lost.of_host(GONE)


def audit(database: Database, queues: Any, repair: Repair = Repair.NOTHING) -> list[Finding]:
    """What is left, confirmed."""
    nothing = cast(Any, None)
    tools = AuditTools(database, nothing, nothing, nothing, nothing, nothing, nothing, queues)
    auditor = Auditor(database, {CheckName.QUEUES: QueuesCheck(tools)}, timedelta(0), lambda: None)
    database.transact(lambda connection: audits.ask(connection, [], repair))
    with database.read() as connection:
        asked = audits.next_one(connection)
    assert asked is not None
    auditor.make(asked)
    with database.read() as connection:
        made = audits.find(connection, asked.uuid)
        assert made is not None
        assert made.failures == {}
        return findings.open_ones(connection, NAMES, confirmed=True)


def remember(database: Database, host: str) -> None:
    """A server was there, and is deleted."""
    said = dict.fromkeys(("project_id", "user_id", "name", "hostname", "reservation_id", "flavorid"), "x")
    row = {
        "uuid": uuids.generate(),
        "host": host,
        "vm_state": "deleted",
        "deleted_at": utcnow(),
        "flavor": {},
    }
    database.transact(lambda connection: _execute(connection, sa.insert(servers).values(**said, **row)))


def _execute(connection: sa.Connection, statement: sa.Executable) -> None:
    connection.execute(statement)


def test_an_audit_finds_and_deletes_the_queue_of_a_host_that_is_gone(
    conf: cfg.ConfigOpts, queues: RabbitQueues, database: Database
) -> None:
    leave_queue(conf, GONE)
    remember(database, GONE)
    (found,) = audit(database, queues)
    assert (
        found.sentence
        == f"queue {conf.bus.exchange}.agent.{GONE}.info with 1 messages is for host {GONE}, which is gone"
    )
    assert (found.remedy, found.safe, found.host) == ("delete it", True, GONE)
    assert len(queues.of_host(GONE)) == 1, "a dry run changes nothing"
    assert audit(database, queues, Repair.SAFE) == []
    assert queues.of_host(GONE) == []
    assert audit(database, queues) == []


def test_the_queue_of_a_host_that_is_there_stays(
    conf: cfg.ConfigOpts, queues: RabbitQueues, database: Database
) -> None:
    """Whether it is known, though its agent is down, or listens, though nobody has heard of it yet."""
    leave_queue(conf, GONE)
    remember(database, GONE)
    agent = Listening(conf, queues, GONE)
    assert audit(database, queues, Repair.ALL) == []
    agent.close()
    known = {"uuid": uuids.generate(), "host": GONE, "binary": "nova-compute", "version": 1}
    database.transact(lambda connection: _execute(connection, sa.insert(services).values(known)))
    assert audit(database, queues, Repair.ALL) == []
    assert any(".agent." in one.name for one in queues.of_host(GONE))


def test_the_management_api_tells_of_hosts_that_nobody_remembers(
    conf: cfg.ConfigOpts, database: Database, tmp_path: Any
) -> None:
    port = free_port()
    configuration = f"{rabbitmq.CONFIGURATION}management.tcp.ip = 127.0.0.1\nmanagement.tcp.port = {port}\n"
    try:
        broker = rabbitmq.start(configuration, plugins=["rabbitmq_management"])
    except debian.Unavailable as error:
        pytest.skip(str(error))
    with broker:
        path = tmp_path / "managed.conf"
        path.write_text(
            f"[DEFAULT]\ntransport_url = {broker.url}\n"
            f"[bus]\nexchange = {conf.bus.exchange}\nmanagement_url = http://127.0.0.1:{port}\n"
        )
        managed = config.read([str(path)], [OPTIONS])
        leave_queue(managed, NOT_OURS)
        queues = RabbitQueues(managed)
        wait_until(lambda: queues.hosts() == {NOT_OURS}, "the management API knows the queue", 30)
        wait_until(lambda: queues.waiting()[Whose.HOSTS] == 1, "it has counted its messages", 30)
        (found,) = audit(database, queues, Repair.SAFE)
        assert (found.host, found.safe) == (NOT_OURS, False), "it may be another cloud's"
        assert audit(database, queues, Repair.ALL) == []
        assert audit(database, queues) == []
        queues.close()
        managed.set_override("management_url", "http://127.0.0.1:1", group="bus")
        with pytest.raises(BusError, match="does not list queues"):
            RabbitQueues(managed).hosts()
