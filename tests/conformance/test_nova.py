"""An unmodified Nova on our Placement: it does all that it does on the reference, and leaves the same books.

Two Novas live through the same scenario at the same time, one on each Placement.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from falcon import testing

from moorage.core import config
from moorage.placement import wsgi
from moorage.placement.service import PlacementService
from tests.conformance import nova_answers, nova_commands
from tests.conformance.nova_answers import comparable
from tests.conformance.nova_books import UUID, VERSION, Auditor
from tests.conformance.nova_scenario import HOSTS, STEPS, Scenario
from tests.conformance.nova_takeover import Takeover, take_over
from tests.lab.nova import service as nova_service
from tests.lab.openstack import service as openstack
from tests.lab.openstack.service import OpenStack
from tests.lab.pristine import KIND
from tests.support import debian, moorage, reference
from tests.support import postgres as postgres_server
from tests.support.compute import User, cloud_on
from tests.support.faulty_proxy import FaultyProxy
from tests.support.postgres import Postgres
from tests.support.processes import Service

pytestmark = pytest.mark.timeout(900)
NO_ANSWER = 599
BUSY = "servers_resize"
"""The step after which most is held: by servers, and by their migrations."""


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
    takeover: Takeover | None = None


@dataclass
class Runs:
    ours: Run
    reference: Run
    busy_url: str
    """Our database, with what came over from the reference Placement amid resizes."""

    @property
    def takeover(self) -> Takeover:
        assert self.reference.takeover is not None
        return self.reference.takeover


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
        taken_over = postgres.create_database("taken_over")
        theirs_url = kind.create_database("placement_reference")
        busy_url = f"sqlite:///{directory / 'busy' / 'moorage.sqlite'}"
        busy = moorage.configure(directory / "busy", busy_url)

        def import_placement(step: str) -> None:
            if step == BUSY:
                moorage.sync_database(busy)
                moorage.manage(busy, "placement", "import", "--from", theirs_url)

        ours, theirs = (
            pool.submit(_run, placement, directory / name, kind, lab, image.id, into, watch)
            for name, placement, into, watch in (
                ("ours", _moorage(directory / "our-placement", postgres), "", lambda _: None),
                (
                    *("reference", _reference(directory / "reference-placement", theirs_url)),
                    *(taken_over, import_placement),
                ),
            )
        )
        try:
            both = Runs(ours.result(), theirs.result(), busy_url)
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


def test_a_cloud_that_was_taken_over_answers_the_same(runs: Runs) -> None:
    takeover = runs.takeover
    limits: dict[str, object] = {
        f"quota.{name}": -1 for name in ("instances", "cores", "ram")
    }  # as that Nova is configured
    with cloud_on(takeover.database_url, limits) as cloud:
        admin = User(cloud.client, takeover.user_id, takeover.project_id, version=nova_answers.VERSION)
        ours = nova_answers.read(lambda path: admin.get(path).json, takeover.quota_path)
    assert set(ours) == set(takeover.answers)
    for path, answer in takeover.answers.items():
        assert comparable(ours[path]) == comparable(answer), path


def test_the_official_client_shows_a_cloud_that_was_taken_over_the_same(runs: Runs) -> None:
    takeover = runs.takeover
    assert set(takeover.shown_by_us) == set(takeover.shown)
    for command, shown in takeover.shown.items():
        ours = takeover.shown_by_us[command]
        assert nova_commands.comparable(command, ours) == nova_commands.comparable(command, shown), command


def test_the_take_over_has_counted_and_compared(runs: Runs) -> None:
    takeover = runs.takeover
    servers = takeover.answers["/servers/detail?all_tenants=1"]["servers"]
    assert takeover.dry_run["counts"]["servers"] == len(servers) == 8
    assert {remainder["kind"] for remainder in takeover.dry_run["remainders"]} == {"processes"}
    assert takeover.report["counts"] == takeover.dry_run["counts"]
    assert takeover.report["differences"] == []
    assert takeover.again.returncode == 1
    assert "8 servers, 5 flavors" in takeover.again.stderr


def test_placement_has_the_same_books_after_the_take_over(runs: Runs) -> None:
    """And what hangs together does so still: hypervisors are providers, and servers consumers."""
    takeover = runs.takeover
    with _our_placement(takeover.database_url, takeover.auditor) as ours:
        assert ours.books() == takeover.books
        nodes = takeover.answers["/os-hypervisors/detail"]["hypervisors"]
        assert {node["hypervisor_hostname"]: node["id"] for node in nodes} == ours.providers()
        shown = takeover.answers["/servers/detail?all_tenants=1"]["servers"]
        on_hosts = {server["name"] for server in shown if server["OS-EXT-SRV-ATTR:host"]}
        assert ours.consumers() == on_hosts


def test_placement_has_the_same_books_after_coming_over_amid_resizes(runs: Runs) -> None:
    scenario = runs.reference.scenario
    with _our_placement(runs.busy_url, scenario.auditor) as ours:
        assert ours.books() == scenario.books[BUSY]


class _InProcess(Auditor):
    """Of a Placement in this process."""

    def __init__(self, client: testing.TestClient) -> None:
        super().__init__("")
        self._client = client

    def ask(self, method: str, path: str, body: Any = None) -> Any:
        headers = {"X-Auth-Token": "admin", "OpenStack-API-Version": f"placement {VERSION}"}
        answer = self._client.simulate_request(method, path, headers=headers)
        assert answer.status_code == 200, f"{method} {path}: {answer.text}"
        return answer.json


@contextmanager
def _our_placement(database_url: str, told: Auditor) -> Iterator[Auditor]:
    """With the names that another auditor has been told."""
    overrides = {"database.connection": database_url, "auth.strategy": "none"}
    conf = config.read([], wsgi.OPTIONS, overrides)
    service = PlacementService.from_conf(conf)
    service.start()
    auditor = _InProcess(testing.TestClient(wsgi.build(conf, service)))
    auditor.names = told.names
    yield auditor
    service.stop()


def _run(
    placement: AbstractContextManager[Service],
    directory: Path,
    database: Postgres,
    lab: OpenStack,
    image_id: str,
    into: str,
    watch: Callable[[str], None],
) -> Run:
    """`into` is a database of ours that takes the cloud over, when there is most in it; empty for none."""
    with ExitStack() as stack:
        placed = stack.enter_context(placement)
        witness = Witness(placed.port)
        witness.start()
        stack.callback(witness.stop)
        url = f"http://127.0.0.1:{witness.port}"
        nova = stack.enter_context(nova_service.running(directory, database, lab, url, HOSTS))
        scenario = Scenario(nova, Auditor(placed.url), image_id)
        run = Run(scenario, witness)

        def take_it_over(scenario: Scenario) -> None:
            placement_url = database.database_url("placement_reference")
            run.takeover = take_over(scenario, lab, directory / "taken-over", placement_url, into)

        if into:
            scenario.in_its_prime = take_it_over
        scenario.play(watch)
        return run


@contextmanager
def _moorage(directory: Path, database: Postgres) -> Iterator[Service]:
    config = moorage.configure(directory, database.create_database("placement_ours"))
    moorage.sync_database(config)
    with moorage.start(config) as service:
        yield service


@contextmanager
def _reference(directory: Path, database_url: str) -> Iterator[Service]:
    directory.mkdir()
    reference.configure(directory, database_url)
    reference.sync_database(directory)
    with reference.start(directory) as service:
        yield service
