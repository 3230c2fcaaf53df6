"""Many clients, little room: nobody is refused without need, and nothing is sold twice."""

from __future__ import annotations

import uuid
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from tests.chaos.books import check, make_providers
from tests.chaos.claimants import Claimants, Ledger, claim_body
from tests.support import moorage
from tests.support.postgres import Postgres
from tests.support.processes import wait_until
from tests.support.wire import Reply, Wire

CLIENTS = 16
PROMISES = 200
REFUSALS = 200


def claim_one_by_one(port: int, provider: str, times: int) -> Ledger:
    """One client that asks for one unit again and again."""
    ledger = Ledger()
    with Wire(port) as wire:
        for _ in range(times):
            consumer = str(uuid.uuid4())
            reply = wire.put(f"/allocations/{consumer}", claim_body({provider: 1}))
            if reply.status == 204:
                ledger.promised[consumer] = {provider: 1}
            elif reply.status == 409:
                ledger.refused.append(reply)
            else:
                ledger.surprises.append(reply)
    return ledger


def test_hot_provider_is_sold_exactly(database_url: str, tmp_path: Path) -> None:
    """480 claims for 400 units: 400 get one, and only the 80 for whom there is none are refused."""
    config = moorage.configure(tmp_path / "service", database_url)
    moorage.sync_database(config)
    with moorage.start(config) as service:
        (provider,) = make_providers(service.port, 1, 400)
        ledger = Ledger()
        with ThreadPoolExecutor(CLIENTS) as pool:
            for one in pool.map(lambda _: claim_one_by_one(service.port, provider, 30), range(CLIENTS)):
                ledger.absorb(one)
        check(service.port, database_url, ledger, [provider], 400)
    assert len(ledger.promised) == 400
    assert len(ledger.refused) == 80


def test_no_refusal_while_there_is_room(database_url: str, tmp_path: Path) -> None:
    """Claims over several providers at once, in any order: no deadlock, no false conflict."""
    config = moorage.configure(tmp_path / "service", database_url)
    moorage.sync_database(config)
    with moorage.start(config) as service:
        providers = make_providers(service.port, 3, 10_000_000)
        claimants = Claimants(service.port, providers, CLIENTS, seed=1, release=0.4)
        wait_until(lambda: claimants.promised() > PROMISES, "many claims", 120)
        ledger = claimants.stop()
        check(service.port, database_url, ledger, providers, 10_000_000)
    assert ledger.refused == []


def test_never_more_than_there_is(database_url: str, tmp_path: Path) -> None:
    """Odd amounts on providers that are full most of the time."""
    config = moorage.configure(tmp_path / "service", database_url)
    moorage.sync_database(config)
    with moorage.start(config) as service:
        providers = make_providers(service.port, 3, 25)
        claimants = Claimants(service.port, providers, CLIENTS, seed=2, release=0.3)
        wait_until(lambda: claimants.refused() > REFUSALS, "many refusals", 120)
        ledger = claimants.stop()
        check(service.port, database_url, ledger, providers, 25)


def test_servers_see_each_other(postgres: Postgres, postgres_url: str, tmp_path: Path) -> None:
    """What one server has acknowledged, the next request to any other server knows."""
    config = moorage.configure(tmp_path / "one", postgres_url)
    moorage.sync_database(config)
    other = moorage.configure(tmp_path / "other", postgres_url)
    with moorage.start(config, workers=1) as one, moorage.start(other, workers=1) as two:
        (provider,) = make_providers(one.port, 1, 200)
        noise = Claimants(one.port, make_providers(one.port, 2, 10_000_000), 4, seed=3)
        with Wire(one.port) as here, Wire(two.port) as there:
            for number in range(1, 101):
                writer, reader = (here, there) if number % 2 else (there, here)
                body = claim_body({provider: 2})
                assert writer.put(f"/allocations/{uuid.uuid4()}", body).status == 204
                assert room_left(reader, provider) == 200 - 2 * number
        ledger = noise.stop()
    assert ledger.refused == []
    assert ledger.surprises == []


def room_left(wire: Wire, provider: str) -> int:
    """As a search sees it, which is answered from memory and not from the tables."""
    summary = candidates(wire, provider).json()["provider_summaries"].get(provider)
    if summary is None:
        return 0
    room = summary["resources"]["VCPU"]
    left: int = room["capacity"] - room["used"]
    return left


def candidates(wire: Wire, provider: str) -> Reply:
    return wire.get(f"/allocation_candidates?resources=VCPU:1&in_tree={provider}")
