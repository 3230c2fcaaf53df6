"""Do the books balance? Through the API, and in the tables below it."""

from __future__ import annotations

import uuid

import sqlalchemy as sa

from moorage.db import engine
from moorage.db.tables import placement as tables
from tests.chaos.claimants import Ledger
from tests.support.wire import Wire


def make_providers(port: int, count: int, total: int) -> list[str]:
    """Roots with one inventory of VCPU each."""
    made = []
    with Wire(port) as wire:
        for _ in range(count):
            provider = str(uuid.uuid4())
            assert wire.post("/resource_providers", {"uuid": provider, "name": provider}).status == 200
            body = {"resource_provider_generation": 0, "inventories": {"VCPU": {"total": total}}}
            assert wire.put(f"/resource_providers/{provider}/inventories", body).status == 200
            made.append(provider)
    return made


def check(port: int, database_url: str, ledger: Ledger, providers: list[str], total: int) -> None:
    """Every promise is kept, nothing is there that nobody asked for, and every sum is right."""
    assert not ledger.surprises, ledger.surprises[:3]
    with Wire(port) as wire:
        recorded = _allocations(wire, providers)
        usages = {
            one: wire.get(f"/resource_providers/{one}/usages").json()["usages"]["VCPU"] for one in providers
        }
    broken = {
        consumer: (amounts, recorded.get(consumer))
        for consumer, amounts in ledger.promised.items()
        if recorded.get(consumer) != amounts
    }
    assert not broken, f"promised, but not there: {broken}"
    strangers = set(recorded) - set(ledger.promised) - ledger.doubtful
    assert not strangers, f"there, but never asked for or released again: {strangers}"
    sums = {one: sum(amounts.get(one, 0) for amounts in recorded.values()) for one in providers}
    assert usages == sums
    assert all(used <= total for used in usages.values()), f"overcommitted: {usages}"
    check_counters(database_url)


def _allocations(wire: Wire, providers: list[str]) -> dict[str, dict[str, int]]:
    """Consumer to amounts by provider, as the service tells it."""
    recorded: dict[str, dict[str, int]] = {}
    for provider in providers:
        answer = wire.get(f"/resource_providers/{provider}/allocations").json()["allocations"]
        for consumer, allocation in answer.items():
            recorded.setdefault(consumer, {})[provider] = allocation["resources"]["VCPU"]
    return recorded


def check_counters(database_url: str) -> None:
    """`inventories.used` is a counter that claims keep; it must equal the sum that it stands for."""
    used = tables.allocations.c.used
    summed = (
        sa.select(
            tables.inventories.c.provider_id,
            tables.inventories.c.used,
            sa.func.coalesce(sa.func.sum(used), 0).label("total"),
        )
        .outerjoin(
            tables.allocations,
            sa.and_(
                tables.allocations.c.provider_id == tables.inventories.c.provider_id,
                tables.allocations.c.class_id == tables.inventories.c.class_id,
            ),
        )
        .group_by(tables.inventories.c.provider_id, tables.inventories.c.class_id, tables.inventories.c.used)
    )
    connected = engine.connect(database_url)
    try:
        with connected.connect() as connection:
            rows = connection.execute(summed).all()
    finally:
        connected.dispose()
    assert rows
    assert [row for row in rows if row.used != row.total] == []
