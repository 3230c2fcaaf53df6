"""Kill the service in the middle of its work; what it had promised is there when it is back."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path

from tests.chaos.books import check, make_providers
from tests.chaos.claimants import Claimants, Ledger
from tests.support import moorage, postgres
from tests.support.processes import Service, wait_until

ROOM = 2000
CLIENTS = 8
ROUNDS = 3


def test_killed_during_claims(database_url: str, tmp_path: Path) -> None:
    """Every process at once, several times over, as a power cut does."""
    config = moorage.configure(tmp_path / "service", database_url)
    moorage.sync_database(config)
    ledger, providers = Ledger(), list[str]()
    for number in range(ROUNDS):
        service = moorage.start(config)
        try:
            providers = providers or make_providers(service.port, 4, ROOM)
            claimants = Claimants(service.port, providers, CLIENTS, seed=number)
            wait_until(lambda claimants=claimants: claimants.promised() > 50, "some claims")  # type: ignore[misc]
            time.sleep(0.3)
        finally:
            service.kill()
        ledger.absorb(claimants.stop())
    with moorage.start(config) as service:
        check(service.port, database_url, ledger, providers, ROOM)


def test_one_worker_killed(database_url: str, tmp_path: Path) -> None:
    """The others go on, a new one takes its place, and it knows what happened before."""
    config = moorage.configure(tmp_path / "service", database_url)
    moorage.sync_database(config)
    with moorage.start(config, workers=2) as service:
        providers = make_providers(service.port, 4, ROOM)
        claimants = Claimants(service.port, providers, CLIENTS, seed=0)
        wait_until(lambda: claimants.promised() > 50, "some claims")
        before = workers_of(service)
        os.kill(before[0], signal.SIGKILL)
        wait_until(lambda: len(set(workers_of(service)) - {before[0]}) == len(before), "a new worker")
        promised = claimants.promised()
        wait_until(lambda: claimants.promised() > promised + 50, "more claims")
        check(service.port, database_url, claimants.stop(), providers, ROOM)


def test_database_killed_during_claims(tmp_path: Path) -> None:
    """The service says 503 as long as it must, loses nothing that it promised, and goes on by itself."""
    with postgres.start() as server:
        database_url = server.create_database("moorage")
        config = moorage.configure(tmp_path / "service", database_url)
        moorage.sync_database(config)
        with moorage.start(config, workers=2) as service:
            providers = make_providers(service.port, 4, ROOM)
            claimants = Claimants(service.port, providers, CLIENTS, seed=0, database_may_be_away=True)
            for _ in range(ROUNDS):
                promised = claimants.promised()
                wait_until(lambda least=promised + 50: claimants.promised() > least, "claims")  # type: ignore[misc]
                server.crash_and_restart()
            promised = claimants.promised()
            wait_until(lambda: claimants.promised() > promised + 50, "claims after the last restart")
            check(service.port, database_url, claimants.stop(), providers, ROOM)


def workers_of(service: Service) -> list[int]:
    return sorted(pid for pid in service.pids() if pid != service.pid)
