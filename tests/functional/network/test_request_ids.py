"""One request, followed by its id: through the API, the ledger, a conductor and an agent to Neutron."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator

import pytest

from moorage.core import log
from moorage.core.context import WorkContext
from tests.functional.network.asking import boot
from tests.support.crossing import PROJECT, Crossing
from tests.support.processes import wait_until
from tests.support.stage_neutron import StageNeutron

GLOBAL = "req-11111111-2222-4333-8444-555555555555"


class Kept(logging.Handler):
    def __init__(self) -> None:
        super().__init__()
        self.records: list[logging.LogRecord] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.records.append(record)

    def about(self, server: str) -> list[tuple[str, WorkContext]]:
        found = [(record.getMessage(), _work(record)) for record in self.records]
        return [(message, work) for message, work in found if work.server == server]


def _work(record: logging.LogRecord) -> WorkContext:
    work: WorkContext = vars(record)["work"]
    return work


@pytest.fixture
def kept() -> Iterator[Kept]:
    """What is logged, with whose work it is."""
    handler, root = Kept(), logging.getLogger()
    handler.addFilter(log.ContextFilter())
    level = root.level
    root.addHandler(handler)
    root.setLevel(logging.INFO)
    yield handler
    root.removeHandler(handler)
    root.setLevel(level)


def test_every_process_knows_the_request_that_a_boot_goes_back_to(
    crossing: Callable[..., Crossing], neutron: StageNeutron, kept: Kept
) -> None:
    cloud = crossing()
    cloud.start_conductor()
    cloud.start_agent("one")
    uuid, own = boot(cloud, {"X-OpenStack-Request-Id": GLOBAL})
    assert cloud.settled(uuid)["status"] == "ACTIVE"
    told = kept.about(uuid)
    for message, work in told:
        if work.operation:  # not those of our own looking at it
            assert (work.global_request_id, work.request_id) == (GLOBAL, own), message
            assert work.project_id == PROJECT
    by_part = {work.operation.partition("-")[0] for _, work in told}
    assert {"build", "spawn"} <= by_part
    spawned = next((message, work) for message, work in told if message.startswith("spawn took"))
    assert spawned[1].host == "one"
    steps = [message for message, work in told if work.operation.startswith("build")]
    assert all(" took " in message for message in steps[:-1]), steps
    assert steps[-1].startswith("build is done after")
    assert len(steps) == len(set(steps))
    assert {given for _, given in neutron.request_ids} == {GLOBAL}
    assert {method for method, _ in neutron.request_ids} >= {"POST", "PUT"}


def test_ports_of_servers_that_are_made_together_go_by_the_request_of_each(
    crossing: Callable[..., Crossing], neutron: StageNeutron
) -> None:
    cloud = crossing()
    cloud.start_conductor()
    cloud.start_agent("one")
    assert cloud.conductor is not None
    cloud.conductor.stop()
    wanted = [boot(cloud, {}) for _ in range(3)]
    cloud.start_conductor()  # finds all three at once
    for uuid, _ in wanted:
        assert cloud.settled(uuid)["status"] == "ACTIVE"
    made = [given for method, given in neutron.request_ids if method == "POST"]
    assert sorted(made) == sorted(own for _, own in wanted)


def test_a_host_that_a_boot_leaves_knows_the_request_as_well(
    crossing: Callable[..., Crossing], kept: Kept
) -> None:
    cloud = crossing()
    cloud.start_conductor()
    cloud.start_agent("one", faults="fail")
    uuid, own = boot(cloud, {})
    assert cloud.settled(uuid)["status"] == "ERROR"
    wait_until(lambda: any("discard took" in message for message, _ in kept.about(uuid)), "the discard", 30)
    (work,) = [work for message, work in kept.about(uuid) if "discard took" in message]
    assert (work.request_id, work.project_id, work.host) == (own, PROJECT, "one")


def test_a_failure_leaves_its_reason_once(crossing: Callable[..., Crossing], kept: Kept) -> None:
    cloud = crossing()
    cloud.start_conductor()
    uuid, own = boot(cloud, {})
    assert cloud.settled(uuid)["status"] == "ERROR"
    failed = [(message, work) for message, work in kept.about(uuid) if "failed" in message]
    assert len(failed) == 1, failed
    assert "No valid host" in failed[0][0]
    assert failed[0][1].request_id == own
