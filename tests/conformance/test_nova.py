"""An unmodified Nova on our Placement: it does all that it does on the reference, and leaves the same books.

Two Novas live through the same scenario at the same time, one on each Placement.
"""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.conformance.nova_books import UUID, Auditor
from tests.conformance.nova_scenario import HOSTS, STEPS, Scenario
from tests.lab.nova import service as nova_service
from tests.lab.openstack import service as openstack
from tests.lab.openstack.service import OpenStack
from tests.lab.pristine import KIND
from tests.support import debian, moorage, reference
from tests.support import postgres as postgres_server
from tests.support.faulty_proxy import FaultyProxy
from tests.support.postgres import Postgres
from tests.support.processes import Service

pytestmark = pytest.mark.timeout(900)
NO_ANSWER = 599


class Witness(FaultyProxy):
    """Never fails; remembers how each request was answered."""

    def __init__(self, target: int) -> None:
        super().__init__(target)
        self.answers: list[tuple[int, str, str]] = []

    def _pass_on(
        self, method: str, path: str, headers: dict[str, str], body: bytes
    ) -> tuple[int, dict[str, str], bytes]:
        try:
            answer = super()._pass_on(method, path, headers, body)
        except OSError:
            self.answers.append((NO_ANSWER, method, path))
            raise
        self.answers.append((answer[0], method, path))
        return answer

    def refusals(self) -> set[tuple[int, str, str]]:
        """Whatever was refused, but for conflicts: whether two writers meet is a matter of chance."""
        return {
            (status, method, UUID.sub("UUID", path))
            for status, method, path in self.answers
            if 400 <= status < 500 and status != 409
        }


@dataclass
class Run:
    scenario: Scenario
    witness: Witness


@dataclass
class Runs:
    ours: Run
    reference: Run


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory, postgres: Postgres) -> Iterator[Runs]:
    """The kind database is for the foreign services; ours has what all our tests have."""
    directory = tmp_path_factory.mktemp("nova")
    with ExitStack() as stack:
        kind = stack.enter_context(postgres_server.start(KIND))
        lab = stack.enter_context(openstack.start(directory, {}))
        image = lab.connect(lab.moorage).image.create_image(
            name="tiny", data=b"0" * 1024, disk_format="raw", container_format="bare", visibility="public"
        )
        pool = stack.enter_context(ThreadPoolExecutor())
        ours, theirs = (
            pool.submit(_run, placement, directory / name, kind, lab, image.id)
            for name, placement in (
                ("ours", _moorage(directory / "our-placement", postgres)),
                ("reference", _reference(directory / "reference-placement", kind)),
            )
        )
        try:
            both = Runs(ours.result(), theirs.result())
        except debian.Unavailable as error:
            pytest.skip(str(error))
        yield both


@pytest.mark.parametrize("step", STEPS)
def test_the_books_are_the_same(runs: Runs, step: str) -> None:
    assert runs.ours.scenario.books[step] == runs.reference.scenario.books[step]


def test_nova_manage_says_the_same(runs: Runs) -> None:
    for command, said in runs.ours.scenario.said.items():
        assert said == runs.reference.scenario.said[command]
    exits = {command: status for command, (status, _) in runs.ours.scenario.said.items()}
    assert exits == {
        "audit --verbose": 3,
        "audit --verbose --delete": 4,
        "heal_allocations --verbose": 0,
        "sync_aggregates --verbose": 0,
    }


def test_no_request_fails(runs: Runs) -> None:
    answers = runs.ours.witness.answers
    assert len(answers) > 100
    assert [answer for answer in answers if answer[0] >= 500] == []


def test_the_same_is_refused(runs: Runs) -> None:
    assert runs.ours.witness.refusals() == runs.reference.witness.refusals()


def test_the_scenario_is_not_empty(runs: Runs) -> None:
    """What the reference holds is what was meant to happen."""
    books = runs.reference.scenario.books
    assert set(books["servers_boot"]["consumers"]) == {"confirmed", "reverted", "zoned"}
    assert set(books["servers_resize"]["consumers"]) == {
        *("confirmed", "reverted", "zoned", "move of confirmed", "move of reverted")
    }
    assert books["hosts_are_grouped"]["providers"]["left"]["aggregates"] == ["zone-left"]
    assert "left" in books["a_host_is_disabled"]["consumers"]["steered"]["allocations"]
    assert books["allocations_are_healed"] == books["an_audit_deletes_it"]
    assert books["aggregates_are_synced"] == books["allocations_are_healed"]


def _run(
    placement: AbstractContextManager[Service],
    directory: Path,
    database: Postgres,
    lab: OpenStack,
    image_id: str,
) -> Run:
    with ExitStack() as stack:
        placed = stack.enter_context(placement)
        witness = Witness(placed.port)
        witness.start()
        stack.callback(witness.stop)
        url = f"http://127.0.0.1:{witness.port}"
        nova = stack.enter_context(nova_service.running(directory, database, lab, url, HOSTS))
        scenario = Scenario(nova, Auditor(placed.url), image_id)
        scenario.play()
        return Run(scenario, witness)


@contextmanager
def _moorage(directory: Path, database: Postgres) -> Iterator[Service]:
    config = moorage.configure(directory, database.create_database("placement_ours"))
    moorage.sync_database(config)
    with moorage.start(config) as service:
        yield service


@contextmanager
def _reference(directory: Path, database: Postgres) -> Iterator[Service]:
    directory.mkdir()
    reference.configure(directory, database.create_database("placement_reference"))
    reference.sync_database(directory)
    with reference.start(directory) as service:
        yield service
