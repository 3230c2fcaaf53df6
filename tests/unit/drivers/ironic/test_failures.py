"""When a machine in quarantine has been in an operator's hands."""

from __future__ import annotations

import time

import pytest

from moorage.drivers.ironic.api.record import NodeRecord
from moorage.drivers.ironic.nodes.failures import FailureLog
from moorage.drivers.ironic.nodes.known_nodes import KnownNodes
from moorage.drivers.ironic.settings import IronicSettings
from moorage.drivers.machine_failures import AvoidedMachines

MACHINE = "11111111-2222-4333-8444-555555555555"
KEPT_OUT = AvoidedMachines(frozenset({MACHINE}), {MACHINE: 3})


class Watch:
    """Looks at the one machine, which is in the given state."""

    def __init__(self) -> None:
        self.fleet = KnownNodes()
        self.log = FailureLog(self.fleet, IronicSettings(), lambda uuid: None)

    def look(self, state: str, server: str | None = None) -> None:
        record = NodeRecord(uuid=MACHINE, provision_state=state, instance_uuid=server)
        self.fleet.replace([record], time.monotonic())
        self.log.look(self.fleet.listed())

    @property
    def mended(self) -> bool:
        return MACHINE in self.log.mended()


@pytest.fixture
def watch() -> Watch:
    return Watch()


@pytest.mark.parametrize(
    ("before", "after"),
    [("clean failed", "available"), ("clean failed", "cleaning"), ("available", "cleaning")],
)
def test_what_only_an_operator_does_is_seen_between_two_looks(watch: Watch, before: str, after: str) -> None:
    watch.log.avoid(KEPT_OUT)
    watch.look(before)
    assert not watch.mended
    watch.look(after)
    assert watch.mended
    watch.look("available")
    assert watch.mended, "until a conductor has heard of it"
    watch.log.avoid(AvoidedMachines())
    watch.log.avoid(KEPT_OUT)
    assert not watch.mended, "it failed again since"


@pytest.mark.parametrize(
    ("before", "after"),
    [("clean failed", "clean failed"), ("deploy failed", "cleaning"), ("cleaning", "available")],
)
def test_what_ironic_does_by_itself_ends_no_quarantine(watch: Watch, before: str, after: str) -> None:
    watch.log.avoid(KEPT_OUT)
    watch.look(before)
    watch.look(after)
    assert not watch.mended


def test_what_was_seen_before_the_quarantine_does_not_count(watch: Watch) -> None:
    watch.look("clean failed")
    watch.log.avoid(KEPT_OUT)
    watch.look("cleaning")
    assert not watch.mended


def test_the_end_of_a_server_that_came_before_does_not_count(watch: Watch) -> None:
    watch.log.avoid(KEPT_OUT)
    watch.look("available", server="its")
    watch.look("cleaning")
    assert not watch.mended
