"""Operations that a release without types left at some step: a conductor of this one ends them.

`tests/unit/conductor` reads a sample of every kind and step. Here are those that need nothing but a server
that runs: what a move or an attached port had changed elsewhere by then is not in its sample.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest
import sqlalchemy as sa

from moorage.core.clock import utcnow
from moorage.db.tables.compute import operations, servers
from tests.functional.conductor.conftest import Yard
from tests.support.processes import wait_until

FILE = Path(__file__).parents[2] / "unit" / "conductor" / "samples" / "untyped.json"
BEFORE = {
    "start": ("stopped", "powering-on"),
    "stop": ("active", "powering-off"),
    "reboot": ("active", "rebooting_hard"),
    "powered_on": ("stopped", "powering-on"),
    "powered_off": ("active", "powering-off"),
    "delete": ("active", "deleting"),
}
"""What the API had made of the server, by kind."""
AFTER = {
    "start": "ACTIVE",
    "stop": "SHUTOFF",
    "reboot": "ACTIVE",
    "powered_on": "ACTIVE",
    "powered_off": "SHUTOFF",
}
BY_AGENTS = {("delete", "let_go"), ("delete", "gone")}
"""Steps of a cloud whose conductors have no credentials for its network, so that agents release the ports."""
SAMPLES = [
    sample
    for sample in msgspec.json.decode(FILE.read_bytes())
    if sample["kind"] in BEFORE and (sample["kind"], sample["step"]) not in BY_AGENTS
]


@pytest.fixture
def cloud(yard: Callable[..., Yard]) -> Yard:
    return yard(hosts=2, **{"conductor.ask_again_seconds": 1})


def plant(cloud: Yard, uuid: str, sample: dict[str, Any]) -> int:
    """As the conductor that wrote it left it when it died."""
    vm_state, task_state = BEFORE[sample["kind"]]

    def write(connection: sa.Connection) -> int:
        changed = sa.update(servers).where(servers.c.uuid == uuid)
        connection.execute(changed.values(vm_state=vm_state, task_state=task_state))
        server_id = connection.execute(sa.select(servers.c.id).where(servers.c.uuid == uuid)).scalar_one()
        row = {**sample, "server_id": server_id, "attempt": 1, "due_at": utcnow()}
        made = sa.insert(operations).values(row).returning(operations.c.id)
        return int(connection.execute(made).scalar_one())

    return cloud.placement.database.transact(write)


def outcome(cloud: Yard, operation_id: int) -> str | None:
    query = sa.select(operations.c.outcome).where(operations.c.id == operation_id)
    with cloud.placement.database.read() as connection:
        found: str | None = connection.execute(query).scalar_one()
        return found


@pytest.mark.parametrize("sample", SAMPLES, ids=lambda sample: f"{sample['kind']}-{sample['step']}")
def test_what_an_older_release_began_is_ended(cloud: Yard, sample: dict[str, Any]) -> None:
    (uuid,) = cloud.boot()
    cloud.await_status([uuid], "ACTIVE")
    cloud.await_rest()
    if sample["kind"] == "powered_off":  # it only looks: somebody has pressed the button
        cloud.cloud.agents[cloud.server(uuid)["OS-EXT-SRV-ATTR:host"]]._driver.stop(uuid, "")
    planted = plant(cloud, uuid, sample)
    wait_until(lambda: outcome(cloud, planted) is not None, "the operation to end", 30)
    assert outcome(cloud, planted) == "done"
    if sample["kind"] == "delete":
        cloud.await_gone([uuid])
        assert (cloud.holders(), cloud.addressed()) == (set(), set())
    else:
        (server,) = cloud.await_status([uuid], AFTER[sample["kind"]])
        assert server["OS-EXT-STS:task_state"] is None
