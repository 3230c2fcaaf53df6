"""Every action in every state of a server, by the reference's table: what fits is taken, else it is a 409.

Whether a host's driver can do it is found out later, or is a 501, but only where the state fits.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec
import pytest
import sqlalchemy as sa

from moorage.compute.servers.states import PowerNumber, TaskState, VmState
from moorage.compute_api.servers.server_actions import ACTIONS, GONE
from moorage.core.clock import utcnow
from moorage.db.tables import compute as tables
from moorage.db.tables.moves import migrations
from moorage.drivers.capabilities import CAPABILITIES, Capabilities
from tests.functional.compute.servers.conftest import ABSENT, IMAGE, Cloud, cloud_on

NODE = "cccccccc-0000-4000-8000-000000000001"
PLACE = {"host": "host1", "node": "host1-node", "node_uuid": NODE}
STATES = [state for state in VmState if state is not VmState.DELETED]
ACTIVE, STOPPED, PAUSED, SUSPENDED = VmState.ACTIVE, VmState.STOPPED, VmState.PAUSED, VmState.SUSPENDED
ANY = frozenset(STATES)
SNAPPABLE = frozenset({ACTIVE, STOPPED, PAUSED, SUSPENDED})
MOVABLE = frozenset({ACTIVE, STOPPED})
ON_A_HOST = ANY - {VmState.BUILDING, VmState.SHELVED_OFFLOADED}


@dataclass(frozen=True)
class Rule:
    argument: Any
    states: frozenset[VmState]
    busy: frozenset[TaskState] | None = frozenset()
    """What may be going on meanwhile; None for anything."""
    version: str = "2.104"
    answers: frozenset[int] = frozenset({200, 202, 204})
    """What it is answered with in a state that fits: some ask a host that is not there, or up when it must
    not be."""


PLUGGING = frozenset({TaskState.ATTACHING_INTERFACE, TaskState.DETACHING_INTERFACE})
ASKING: dict[str, Any] = {"busy": None, "answers": frozenset({501, 503})}
RULES: dict[str, Rule] = {
    "os-start": Rule(None, frozenset({STOPPED})),
    "os-stop": Rule(None, frozenset({ACTIVE, VmState.ERROR})),
    "pause": Rule(None, frozenset({ACTIVE})),
    "unpause": Rule(None, frozenset({PAUSED})),
    "suspend": Rule(None, frozenset({ACTIVE})),
    "resume": Rule(None, frozenset({SUSPENDED})),
    "rescue": Rule(None, frozenset({ACTIVE, STOPPED, VmState.ERROR})),
    "unrescue": Rule(None, frozenset({VmState.RESCUED})),
    "createImage": Rule({"name": "i"}, SNAPPABLE),
    "createBackup": Rule({"name": "b", "backup_type": "daily", "rotation": 1}, SNAPPABLE),
    "shelve": Rule(None, SNAPPABLE),
    "shelveOffload": Rule(None, frozenset({VmState.SHELVED})),
    "unshelve": Rule(None, frozenset({VmState.SHELVED, VmState.SHELVED_OFFLOADED})),
    "trigger_crash_dump": Rule(
        None, frozenset({ACTIVE, PAUSED, VmState.RESCUED, VmState.RESIZED, VmState.ERROR})
    ),
    "changePassword": Rule({"adminPass": "s"}, frozenset({ACTIVE}), answers=frozenset({501, 503})),
    "restore": Rule(None, frozenset({VmState.SOFT_DELETED})),
    "injectNetworkInfo": Rule(None, ANY, None),
    "addSecurityGroup": Rule({"name": "web"}, ANY, None, answers=frozenset({202, 400, 404})),
    "removeSecurityGroup": Rule({"name": "web"}, ANY, None, answers=frozenset({202, 400, 404})),
    "reboot": Rule(
        {"type": "HARD"},
        frozenset({ACTIVE, STOPPED, PAUSED, SUSPENDED, VmState.ERROR}),
        frozenset(
            {
                *(TaskState.REBOOTING, TaskState.REBOOTING_HARD, TaskState.PAUSING, TaskState.UNPAUSING),
                *(TaskState.SUSPENDING, TaskState.RESUMING),
            }
        ),
    ),
    "lock": Rule(None, ANY, None),
    "unlock": Rule(None, ANY, None),
    "os-resetState": Rule({"state": "active"}, ANY, None),
    "rebuild": Rule({"imageRef": IMAGE}, frozenset({ACTIVE, STOPPED, VmState.ERROR})),
    "resize": Rule({"flavorRef": "big"}, MOVABLE),
    "confirmResize": Rule(None, frozenset({VmState.RESIZED})),
    "revertResize": Rule(None, frozenset({VmState.RESIZED})),
    "migrate": Rule(None, MOVABLE),
    "os-migrateLive": Rule({"host": None, "block_migration": "auto"}, frozenset({ACTIVE, PAUSED})),
    "evacuate": Rule({}, MOVABLE | {VmState.ERROR}, answers=frozenset({400})),
    "addFixedIp": Rule(
        {"networkId": ABSENT}, SNAPPABLE - {SUSPENDED}, PLUGGING, "2.43", frozenset({202, 400})
    ),
    "removeFixedIp": Rule(
        {"address": "10.0.0.1"}, SNAPPABLE - {SUSPENDED}, PLUGGING, "2.43", frozenset({202, 400})
    ),
    "addFloatingIp": Rule({"address": "192.0.2.1"}, ANY, None, "2.43", frozenset({400, 404})),
    "removeFloatingIp": Rule({"address": "192.0.2.1"}, ANY, None, "2.43", frozenset({404})),
    "os-getConsoleOutput": Rule({}, ON_A_HOST, **ASKING),
    "os-getVNCConsole": Rule({"type": "novnc"}, ON_A_HOST, version="2.5", **ASKING),
    "os-getSerialConsole": Rule({"type": "serial"}, ON_A_HOST, version="2.5", **ASKING),
    "os-getSPICEConsole": Rule(
        {"type": "spice-html5"}, ON_A_HOST, None, version="2.5", answers=frozenset({400})
    ),
    "forceDelete": Rule(None, ANY, None),
}


class Pier:
    """A cloud with one server, which a test puts into any state it likes."""

    def __init__(self, cloud: Cloud) -> None:
        self.cloud = cloud
        self.cloud.limit("red", instances=-1, cores=-1, ram=-1)
        self.uuid = cloud.alice.booted()
        server = cloud.server(self.uuid)
        self._request = server.request
        self._migration = {
            "uuid": ABSENT,
            "server_id": server.id,
            "server_uuid": server.uuid,
            "user_id": "alice",
            "project_id": "red",
            "kind": "migration",
            "status": "finished",
            "source_host": "host1",
            "source_node": "host1-node",
            "source_node_uuid": NODE,
            "dest_host": "host2",
            "dest_node": "host2-node",
            "dest_node_uuid": NODE,
            "old_flavor": server.flavor,
            "new_flavor": server.flavor,
            "old_state": "active",
        }

    def put(self, state: VmState, task: TaskState | None, able: Capabilities | None = None) -> None:
        """As if nothing had ever been asked of it."""
        on_host = state not in (VmState.SHELVED_OFFLOADED, VmState.BUILDING)
        columns = {
            "vm_state": state,
            "task_state": task,
            "power_state": PowerNumber.RUNNING if state is ACTIVE else PowerNumber.SHUT_DOWN,
            "launched_at": None if state is VmState.BUILDING else utcnow(),
            "locked_by": None,
            "request": {**self._request, "shelved_image": {"id": IMAGE}},
            **(PLACE if on_host else dict.fromkeys(PLACE)),
        }
        facts = {} if able is None else {CAPABILITIES: msgspec.to_builtins(able)}
        with self.cloud.database.write() as connection:
            for table in (tables.operations, migrations):
                connection.execute(sa.delete(table))
            connection.execute(sa.update(tables.servers).values(columns))
            connection.execute(sa.update(tables.nodes).values(facts=facts))
            if state is VmState.RESIZED:
                connection.execute(sa.insert(migrations).values(self._migration))

    def asked(self, name: str, rule: Rule) -> int:
        path = f"/servers/{self.uuid}/action"
        answer = self.cloud.admin.call("POST", path, {name: rule.argument}, version=rule.version)
        return int(answer.status_code)


@pytest.fixture(scope="module")
def pier(tmp_path_factory: pytest.TempPathFactory, sqlite_template: Path) -> Iterator[Pier]:
    """The databases have no part in this."""
    copied = shutil.copy(sqlite_template, tmp_path_factory.mktemp("states") / "moorage.sqlite")
    with cloud_on(f"sqlite:///{copied}") as cloud:
        yield Pier(cloud)


def test_the_table_has_every_action() -> None:
    assert set(RULES) == set(ACTIONS)
    assert all(rule.version < "2.6" or rule.version == "2.43" for name, rule in RULES.items() if name in GONE)


@pytest.mark.parametrize("name", RULES)
def test_in_a_state_that_does_not_fit_it_is_a_conflict(pier: Pier, name: str) -> None:
    rule = RULES[name]
    found = {}
    for state in STATES:
        pier.put(state, None)
        found[state] = pier.asked(name, rule)
    wrong = {state: status for state, status in found.items() if state not in rule.states and status != 409}
    assert not wrong
    refused = {
        state: status
        for state, status in found.items()
        if state in rule.states and status not in rule.answers
    }
    assert not refused


@pytest.mark.parametrize("name", RULES)
def test_while_something_else_is_done_it_is_a_conflict(pier: Pier, name: str) -> None:
    rule = RULES[name]
    state = next(state for state in STATES if state in rule.states)
    wrong = {}
    for task in {*SOME_TASKS, *(rule.busy or ())}:
        pier.put(state, task)
        status = pier.asked(name, rule)
        fits = rule.busy is None or task in rule.busy
        if (status in rule.answers) != fits and not (fits and name in _NOT_WHILE.get(task, ())):
            wrong[task] = status
    assert not wrong


SOME_TASKS = (TaskState.POWERING_OFF, TaskState.RESIZE_PREP, TaskState.DELETING, TaskState.MIGRATING)
_NOT_WHILE = {
    TaskState.DELETING: ("os-getVNCConsole", "os-getSerialConsole"),
    TaskState.MIGRATING: ("os-getVNCConsole", "os-getSerialConsole"),
}
"""Consoles of servers that are about to be elsewhere, or nowhere."""

UNABLE = Capabilities()


@pytest.mark.parametrize("name", RULES)
def test_what_a_driver_can_t_do_is_refused_after_what_the_state_does_not_allow(pier: Pier, name: str) -> None:
    """As the reference's drivers without it: 501 if the request waits for the host, else its action fails."""
    rule = RULES[name]
    waits = name in ("changePassword", "os-getConsoleOutput", "os-getVNCConsole", "os-getSerialConsole")
    for state in STATES:
        pier.put(state, None, UNABLE)
        status = pier.asked(name, rule)
        if state not in rule.states:
            assert status == 409, state
        elif waits:
            assert status == 501, state
        elif name in ("resize", "migrate", "os-migrateLive"):  # nobody has to wait to hear that it can't
            assert status == 400, state
        else:
            assert status in rule.answers, state


def test_diagnostics_of_a_server_that_does_not_run_are_a_conflict_with_every_driver(pier: Pier) -> None:
    for state, able in ((STOPPED, UNABLE), (VmState.BUILDING, UNABLE), (VmState.SHELVED_OFFLOADED, UNABLE)):
        pier.put(state, None, able)
        answer = pier.cloud.admin.call("GET", f"/servers/{pier.uuid}/diagnostics")
        assert answer.status_code == 409, state
    pier.put(ACTIVE, None, UNABLE)
    assert pier.cloud.admin.call("GET", f"/servers/{pier.uuid}/diagnostics").status_code == 501
