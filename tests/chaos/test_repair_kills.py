"""A conductor dies in the middle of a repair: the next audit is clean, and nothing else was harmed.

What a repair does by an operation of a server is struck in `test_step_kills.py`; these are those that the
auditor does itself, and a server that was deleted by somebody's hand, whose repair is all of them. `make
step-kills` strikes all points, else one of each is struck (`MOORAGE_STEP_KILLS`, `CHAOS_SEED`).
"""

from __future__ import annotations

import os
import random
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa

from moorage.core import uuids
from moorage.core.clock import utcnow
from moorage.db.tables.compute import operations, quota_usage, servers
from moorage.db.tables.moves import migrations
from moorage.db.tables.placement import inventories
from tests.chaos.steps.books import Books
from tests.chaos.steps.clouds import CLOUDS
from tests.chaos.steps.user import User
from tests.support.processes import wait_until

KILLS = os.environ.get("MOORAGE_STEP_KILLS", "1")
SEED = os.environ.get("CHAOS_SEED", "1")
Plant = Callable[[User], str]
"""Puts something wrong; the server that must be unharmed, or that has to be gone."""


@pytest.fixture(scope="module")
def user(tmp_path_factory: pytest.TempPathFactory) -> Iterator[User]:
    directory: Path = tmp_path_factory.mktemp("repairs")
    with CLOUDS["sqlite"](directory) as cloud:
        made = User(cloud)
        yield made
        made.close()


def _write(user: User, statement: sa.Executable) -> None:
    with user.writing() as connection:
        connection.execute(statement)


def _quota(user: User) -> str:
    uuid = user.running()
    _write(user, sa.update(quota_usage).values(cores=quota_usage.c.cores + 3))
    return uuid


def _counter(user: User) -> str:
    uuid = user.running()
    _write(user, sa.update(inventories).values(used=inventories.c.used + 1))
    return uuid


def _lost_port(user: User) -> str:
    uuid = user.running()
    (port,) = user.cloud.neutron.ports_of(uuid)
    del user.cloud.neutron.ports[port["id"]]
    return uuid


def _gone(user: User) -> Any:
    """The row of a deleted server."""
    uuid = user.running()
    user.act(uuid, {"forceDelete": None})
    user.await_rest()
    return user.row(uuid)


def _operation(user: User) -> str:
    """One that nobody will look at."""
    lost = {"kind": "give_back", "step": "begin", "attempt": 99, "data": {}, "due_at": None}
    row, uuid = _gone(user), user.running()
    _write(user, sa.insert(operations).values(server_id=row.id, **lost))
    return uuid


def _move(user: User) -> str:
    """One that goes on, of a server that is gone."""
    row, uuid = _gone(user), user.running()
    said = {name: getattr(row, name) for name in ("user_id", "project_id")}
    place = {"source_host": row.host, "source_node": row.node, "source_node_uuid": row.node_uuid}
    flavors = {"old_flavor": row.flavor, "new_flavor": row.flavor}
    moved = {"uuid": uuids.generate(), "server_id": row.id, "server_uuid": row.uuid, "old_state": "active"}
    state = {"kind": "migration", "status": "running", "active": True}
    _write(user, sa.insert(migrations).values(**said, **place, **flavors, **moved, **state))
    return uuid


def _deleted_by_hand(user: User) -> str:
    """Its host, Placement, Neutron and the quota still have it."""
    uuid = user.running()
    _write(user, sa.update(servers).where(servers.c.uuid == uuid).values(deleted_at=utcnow()))
    return uuid


PLANTS: dict[str, tuple[Plant, tuple[str, ...]]] = {
    "quota": (_quota, ("quotas",)),
    "counter": (_counter, ("counters",)),
    "lost port": (_lost_port, ("lost-ports",)),
    "operation": (_operation, ("ledger",)),
    "move": (_move, ("moves",)),
    "server": (_deleted_by_hand, ("allocations", "quotas", "ports", "host-servers")),
}


def audit(user: User, checks: tuple[str, ...], repair: str) -> Any:
    """Made to its end, whoever dies meanwhile."""
    body = {"audit": {"only": list(checks), "repair": repair}}
    answer = user.call("POST", "/v2.1/moorage-audits", body)
    user.accept(answer)

    def at_rest() -> bool:
        user.revive()
        return not user.unfinished()

    wait_until(at_rest, "the end of the audit", 60)
    return user.get(f"/v2.1/moorage-audits/{answer.json()['audit']['id']}")


def left(shown: Any) -> list[str]:
    return [one["sentence"] for one in shown["findings"] if not one["repaired"]]


def balanced(user: User, uuid: str) -> None:
    home = user.row(uuid).host if uuid in user.there() else None
    wait_until(lambda: not Books(user, uuid, home).differences(), "the books to balance", 30)


@pytest.mark.timeout(1800)
@pytest.mark.parametrize("name", PLANTS)
def test_a_repair_that_is_cut_off_is_made_again_and_harms_nothing(user: User, name: str) -> None:
    plant, checks = PLANTS[name]
    uuid = plant(user)
    user.cloud.points.trace()
    assert audit(user, checks, "nothing")["findings"], "it is found"
    assert left(audit(user, checks, "all")) == []
    points = [point for point in user.cloud.points.seen() if point.startswith("audit, ")]
    balanced(user, uuid)
    user.clear()
    assert {point.rpartition(": ")[2] for point in points} >= {"begins", "is done", "is told"}, points
    chance = random.Random(f"{name} {SEED}")
    chosen = points if KILLS == "all" else chance.sample(points, min(int(KILLS), len(points)))
    for point in chosen:
        strike(user, plant, checks, point)


def strike(user: User, plant: Plant, checks: tuple[str, ...], point: str) -> None:
    uuid, deaths = plant(user), user.deaths
    alive = uuid in user.there()
    user.cloud.points.arm(point)
    assert left(audit(user, checks, "all")) == []
    assert user.deaths == deaths + 1, point
    assert left(audit(user, (), "nothing")) == [], f"the second run is not clean after a kill at {point}"
    balanced(user, uuid)
    assert (uuid in user.there()) is alive, point
    print(f"killed at {point}: mended, and nothing harmed", flush=True)
    user.clear()
