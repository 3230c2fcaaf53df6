"""Audits that nobody asks for: one conductor makes each, and mends what it may."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import pytest
import sqlalchemy as sa
from prometheus_client import REGISTRY
from sqlalchemy.engine import Connection

from moorage.compute.audits.audit import Repair
from moorage.conductor.auditing import auditor
from moorage.conductor.chores import audit_chore
from moorage.conductor.chores.audit_chore import AuditChore
from moorage.db.tables.audits import audits
from moorage.db.tables.compute import quota_usage
from moorage.placement.client.contract import ConsumerClaim
from tests.functional.conductor.conftest import Yard
from tests.support.processes import wait_until

Make = Callable[..., Yard]
NOBODY = "99999999-9999-4999-8999-999999999999"


def differences(check: str) -> float | None:
    return REGISTRY.get_sample_value("moorage_audit_differences", {"check": check})


def write(cloud: Yard, statement: sa.Executable) -> None:
    def do(connection: Connection) -> None:
        connection.execute(statement)

    cloud.placement.database.transact(do)


def counted(cloud: Yard) -> int:
    with cloud.placement.database.read() as connection:
        return int(connection.execute(sa.select(quota_usage.c.cores)).scalar_one())


def plant(cloud: Yard) -> None:
    """Two kinds of drift: a repair of the first can't be wrong."""
    (uuid,) = cloud.boot()
    cloud.await_status([uuid], "ACTIVE")
    cloud.await_rest()
    write(cloud, sa.update(quota_usage).values(cores=quota_usage.c.cores + 3))
    node = cloud.get("/v2.1/os-hypervisors/detail")["hypervisors"][0]["id"]
    assert cloud.client.claim([ConsumerClaim(NOBODY, {node: {"VCPU": 1}}, "p", "u")]) == [None]


@pytest.mark.parametrize("repair", list(Repair)[:2])
def test_an_audit_is_made_by_itself_counts_and_mends_what_it_may(yard: Make, repair: Repair) -> None:
    options = {"conductor.audit_interval": 1, "conductor.audit_grace": 0, "conductor.repair": repair.value}
    cloud = yard(hosts=1, **options)
    plant(cloud)
    wait_until(lambda: differences("allocations") == 1, "what needs an operator to be told", 30)
    if repair is Repair.SAFE:
        wait_until(lambda: counted(cloud) == 1, "the quota to be mended", 30)
        wait_until(lambda: differences("quotas") == 0, "it to be counted", 30)
    else:
        wait_until(lambda: differences("quotas") == 1, "the quota to be told", 30)
        assert counted(cloud) == 4
    assert NOBODY in cloud.holders(), "this is left to an operator"


def test_two_conductors_make_one_audit_for_each_interval(yard: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    cloud = yard(hosts=0, **{"conductor.audit_interval": 0})
    monkeypatch.setattr(audit_chore, "_THOUGHT", 0.1)
    nothing: dict[str, Any] = {}
    both = [
        AuditChore(
            cloud.placement.database, nothing, lambda: None, interval=2, grace=0, repair=Repair.NOTHING
        )
        for _ in range(2)
    ]
    begun = time.monotonic()
    while time.monotonic() < begun + 7:
        for chore in both:
            chore.tick()
        time.sleep(0.1)
    with cloud.placement.database.read() as connection:
        made = connection.execute(sa.select(sa.func.count()).select_from(audits)).scalar_one()
    assert 1 <= made <= 4, "not one for each conductor"


def test_what_another_conductor_mended_is_told_no_more(yard: Make) -> None:
    cloud = yard(hosts=0, **{"conductor.audit_interval": 0})
    auditor.DIFFERENCES.labels("quotas").set(5)  # as this process saw it when it made an audit
    chores: dict[str, Any] = {"quotas": None}
    AuditChore(
        cloud.placement.database, chores, lambda: None, interval=0, grace=0, repair=Repair.NOTHING
    ).tick()
    assert differences("quotas") == 0
