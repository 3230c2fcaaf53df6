"""Whoever has the files of one host's agent has that host, and nothing else: on RabbitMQ, and in Placement.

Each attempt is made twice: where hosts are kept apart it is refused, and told; where they are not it works,
or it would prove nothing.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from moorage.bus.contract import Heartbeat, Result
from moorage.placement.errors import TreeRefusal
from tests.integration.bus import fleet
from tests.integration.bus.attempts import ATTEMPTS
from tests.integration.bus.fleet import Fleet, task
from tests.support.processes import wait_until
from tests.support.rabbitmq import RabbitMQ

WORKED: dict[bool, dict[str, bool]] = {True: {}, False: {}}
TOLD: list[str] = []
"""By Placement, in its log."""


@pytest.fixture(scope="module", params=[True, False], ids=["isolated", "open"])
def hosts(
    request: pytest.FixtureRequest, broker: RabbitMQ, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Fleet]:
    made = fleet.new(broker, tmp_path_factory.mktemp("fleet"), isolated=request.param)
    made.open()
    yield made
    made.close()


def test_what_agents_have_to_do_works(hosts: Fleet) -> None:
    hosts.conductor.cast("host-2", [task(711)])
    wait_until(lambda: any(one.operation_id == 711 for one in hosts.tasks["host-2"]), "the task", 20)
    given = next(one for one in hosts.tasks["host-2"] if one.operation_id == 711)
    hosts.agents["host-2"].report([Result(711, given.server_uuid, 1, False, ticket=given.ticket)])
    hosts.agents["host-1"].beat(Heartbeat("host-1", 5))
    wait_until(lambda: bool(hosts.results and hosts.heartbeats), "both", 20)
    assert hosts.results == [Result(711, "server-711", 1, False)]
    assert hosts.heartbeats == [Heartbeat("host-1", 5)]
    hosts.results.clear()


@pytest.mark.parametrize("attempt", ATTEMPTS)
def test_attempts(hosts: Fleet, attempt: str, caplog: pytest.LogCaptureFixture) -> None:
    hosts.heard = len(hosts.questions)
    WORKED[hosts.isolated][attempt] = worked = ATTEMPTS[attempt](hosts)
    TOLD.extend(line for line in caplog.messages if line.startswith("refused (") and "agent 'host-1'" in line)
    assert worked is not hosts.isolated


def test_all_that_was_refused_is_told(broker: RabbitMQ, capsys: pytest.CaptureFixture[str]) -> None:
    with capsys.disabled():
        print(f"\n{'with the files of host-1':60} {'open':8} isolated")
        for attempt in ATTEMPTS:
            outcomes = [_word(WORKED[isolated].get(attempt)) for isolated in (False, True)]
            print(f"{attempt:60} {outcomes[0]:8} {outcomes[1]}")
    assert broker.log.count("access_refused") >= 10
    for reason in (TreeRefusal.NOT_OWN, TreeRefusal.OTHER_CONSUMER, TreeRefusal.SHARED_NAME):
        assert any(line.startswith(f"refused ({reason})") for line in TOLD), reason


def _word(worked: bool | None) -> str:
    return {None: "-", True: "works", False: "refused"}[worked]
