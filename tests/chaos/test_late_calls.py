"""Each single call to Ironic comes late in turn: its host has lost the node by then, the server is deleted,
and another tenant's server is there, or about to be. In the end only that one is there, as it should be.

`CHAOS_SCHEDULES` asks for more calls, as `make chaos` does; `CHAOS_SEED` repeats a choice.
"""

from __future__ import annotations

import os
import random
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

import msgspec
import pytest

from moorage.core import uuids
from moorage.drivers.contract import RUNNING, DriverError, NoRoomError, ServerSpec
from tests.integration.ironic.late import (
    MODES,
    SETTINGS,
    Driver,
    at_work,
    empty,
    keeper,
    rebuilt,
    secret_on,
    spec,
    wait_until_free,
)
from tests.integration.ironic.lines import port_of
from tests.lab.ironic import service as ironic
from tests.lab.ironic.nodes import Nodes
from tests.support import faulty_proxy
from tests.support.faulty_proxy import Fault, FaultyProxy
from tests.support.postgres import Postgres
from tests.support.processes import wait_until

SCHEDULES = int(os.environ.get("CHAOS_SCHEDULES", "3"))
SEED = int(os.environ.get("CHAOS_SEED", random.SystemRandom().randrange(10**6)))
HASTY = replace(SETTINGS, ownership_patience=0.2)
MOMENTS = ("before the next server comes", "while it is prepared", "when it runs")
PATIENCE = 240.0
"""Seconds: more than it takes even where much else is running."""
_LOCKED = 409
"""What Ironic says while it does something else with a node; the change is asked for again."""
_READS = ("/validate", "/vifs", "instance_uuid=", "/allocations/")


@pytest.fixture(scope="module")
def metal(tmp_path_factory: pytest.TempPathFactory, postgres: Postgres) -> Iterator[Nodes]:
    with ironic.running(tmp_path_factory.mktemp("ironic"), postgres, ("a",), deploy_delay=0) as nodes:
        nodes.enrol("a-1", "a")
        yield nodes
        postgres.drop_database("ironic")


@contextmanager
def lines(metal: Nodes) -> Iterator[tuple[FaultyProxy, FaultyProxy]]:
    """To Ironic: that of the host whose call comes late, and that of its heir."""
    port = port_of(metal)
    with faulty_proxy.in_front_of(port) as first, faulty_proxy.in_front_of(port) as second:
        yield first, second


def live(driver: Driver, server: ServerSpec, over: threading.Event | None = None) -> None:
    """All that is done to a server, one after the other."""
    driver.spawn(server)
    driver.stop(server.uuid, server.node_uuid)
    driver.start(server.uuid, server.node_uuid)
    driver.attach_interface(server.uuid, server.node_uuid, {"id": uuids.generate()})
    driver.rebuild(rebuilt(server, server.name, "2"))
    driver.destroy(server.uuid, server.node_uuid)
    if over is not None:
        over.set()


def calls_of_a_life(metal: Nodes, mode: str, node: str) -> list[Fault]:
    """What a calm life consists of: each change by its place among them, each kind of question once."""
    with lines(metal) as (line, _):
        server = with_port(spec(metal, mode, node, "calm"))
        live(keeper(mode, line.port, HASTY), server)
        wait_until_free(metal, node)
        changes = changes_of(line)
        print(f"{mode}: a calm life changes {changes}")
        reads = [kind for kind in _READS if any(kind in path for _, path in line.requests)]
    return [
        *(Fault(works=True, times=1, after=place, changes_only=True) for place in range(len(changes))),
        *(Fault(works=True, times=1, method="GET", path=kind) for kind in reads),
    ]


def changes_of(line: FaultyProxy) -> list[str]:
    return [
        f"{method} {path.rpartition('/')[2]}"
        for method, path, status in line.answered
        if method != "GET" and status != _LOCKED
    ]


def with_port(server: ServerSpec) -> ServerSpec:
    port = {"id": uuids.generate(), "mac": "fa:16:3e:00:00:01", "addresses": ["10.0.0.5"]}
    return msgspec.structs.replace(server, network=[port])


@pytest.mark.timeout(1800)
@pytest.mark.parametrize("mode", MODES)
def test_no_call_does_harm_when_it_comes_late(metal: Nodes, postgres: Postgres, mode: str) -> None:
    print(f"CHAOS_SEED={SEED}")
    chance = random.Random(SEED)
    (node,) = metal.all()
    calls = calls_of_a_life(metal, mode, node)
    assert len(calls) >= 12, calls
    schedules = [(call, moment) for call in calls for moment in MOMENTS]
    for call, moment in chance.sample(schedules, min(len(schedules), 2 * SCHEDULES)):
        kind = f"change {call.after}" if call.changes_only else f"question {call.path}"
        print(f"{mode}: {kind} comes late, {moment}")
        late = Lateness(metal, postgres, mode, node, call, moment)
        try:
            late.happen()
        finally:
            empty(metal, node)


class Lateness:
    def __init__(
        self, metal: Nodes, postgres: Postgres, mode: str, node: str, call: Fault, moment: str
    ) -> None:
        self.metal = metal
        self.postgres = postgres
        self.mode = mode
        self.node = node
        self.call = call
        self.moment = moment
        self.left = with_port(spec(metal, mode, node, "left"))
        self.next = with_port(spec(metal, mode, node, "next"))

    def happen(self) -> None:
        with lines(self.metal) as (line, other):
            first = keeper(self.mode, line.port, HASTY)
            heir = keeper(self.mode, other.port, HASTY)
            late = threading.Event()
            line.fail(replace(self.call, until=late))
            over = threading.Event()
            with at_work(lambda: live(first, self.left, over)):
                wait_until(lambda: line.struck == 1 or over.is_set(), "the call that comes late", PATIENCE)
                if line.struck == 0:
                    print(f"a life without that call: {changes_of(line)}")
                    wait_until_free(self.metal, self.node)
                    return
                first.extend_lease(0.0)  # as one that was stopped: it relies on nothing any more
                heir.look()
                heir.destroy(self.left.uuid, self.left.node_uuid)
                self.bring_next(heir, other, late)
                late.set()
            self.sweep(heir)
            self.check(heir)
            heir.destroy(self.next.uuid, self.next.node_uuid)
            self.sweep(heir)
            wait_until_free(self.metal, self.node)

    def bring_next(self, heir: Driver, line: FaultyProxy, late: threading.Event) -> None:
        if self.moment == MOMENTS[0]:
            late.set()
            self.spawn(heir)
        elif self.moment == MOMENTS[1]:
            wait_until_free(self.metal, self.node)
            prepared = threading.Event()
            line.fail(Fault(works=True, times=1, method="GET", path="/validate", until=prepared))
            with at_work(lambda: self.spawn(heir)) as failures:
                wait_until(lambda: line.struck == 1, "the next server to be prepared", PATIENCE)
                late.set()
                prepared.set()
            assert failures == []
        else:
            self.spawn(heir)

    def spawn(self, heir: Driver) -> None:
        """As conductors do: if it comes to nothing, in another attempt, once the node is free."""
        for attempt in range(1, 6):
            self.sweep(heir)
            try:
                self.next = msgspec.structs.replace(self.next, work=f"1-{attempt}")
                assert heir.spawn(self.next) == RUNNING
                return
            except NoRoomError:
                continue
            except DriverError as error:
                print(f"the next server needs another attempt: {error}")
                heir.destroy(self.next.uuid, self.next.node_uuid)
        raise AssertionError("the next server can't come")

    def sweep(self, heir: Driver) -> None:
        """What is held for the server that is gone, until the node is free or the next one's."""

        def swept() -> bool:
            heir.look()
            for held in heir.held():
                if held.server_uuid == self.left.uuid:
                    heir.sweep(held)
            shown = self.metal.show(self.node)
            free = shown["provision_state"] == "available" and shown["instance_uuid"] is None
            return free or shown["instance_uuid"] == self.next.uuid

        wait_until(swept, "what was left to be swept", PATIENCE)

    def check(self, heir: Driver) -> None:
        shown = self.metal.show(self.node)
        assert (shown["provision_state"], shown["instance_uuid"]) == ("active", self.next.uuid), shown
        assert shown["protected"]
        wait_until(lambda: self.metal.show(self.node)["power_state"] == "power on", "it to run", 30)
        assert secret_on(self.postgres, self.node) == "the secret of next"
        reserved = [one["uuid"] for one in self.metal.ask("GET", "allocations")["allocations"]]
        assert reserved == ([self.next.uuid] if self.mode == "reservation" else [])
