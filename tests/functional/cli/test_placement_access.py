"""Services that need Placement: with wrong or missing credentials they say so, and start only if they may."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest
import requests
from oslo_upgradecheck.upgradecheck import Code

from moorage.cli import settings
from moorage.cli.embedded import credentials
from moorage.cli.errors import CommandError
from moorage.cli.processes.placement_access import require_placement
from moorage.cli.status import Checks
from moorage.placement.client.connect import connect
from moorage.placement.client.contract import PlacementUnavailableError
from moorage.placement.client.probe import PlacementHealth, probe
from moorage.placement.client.transport import SessionTransport
from tests.support.http_front import serving
from tests.support.older import OlderService
from tests.support.processes import Service, free_port, start_service
from tests.support.profiles import ini
from tests.support.stage import Stage, moorage_stage

PROGRAMS = Path(sys.executable).parent
Section = Mapping[str, str]


@pytest.fixture(scope="module")
def stage(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:
    with moorage_stage(tmp_path_factory.mktemp("placement")) as started:
        yield started


@dataclass(frozen=True)
class Site:
    """A configuration, whose Placement is ours behind a password."""

    directory: Path
    database_url: str
    placement: str
    password: str

    def credentials(self, password: str | None = None, endpoint: str | None = None) -> Section:
        return {
            "auth_type": "http_basic",
            "endpoint": endpoint or self.placement,
            "username": "admin",
            "password": password or self.password,
        }

    def config(self, client: Section | None, *, required: bool = True) -> Path:
        path = self.directory / "moorage.conf"
        sections: dict[str, dict[str, str]] = {
            "DEFAULT": {"transport_url": "memory://"},
            "database": {"connection": self.database_url},
            "auth": {"strategy": "none"},
            "compute": {"workers": "1"},
            "agent": {"state_directory": str(self.directory / "agent")},
            "placement": {"required": str(required).lower()},
        }
        if client is not None:
            sections["placement_client"] = dict(client)
        path.write_text(ini(sections))
        return path


@pytest.fixture
def site(stage: Stage, tmp_path: Path, sqlite_url: str) -> Site:
    known = credentials.of_directory(tmp_path)
    extra = {"auth": {"strategy": "basic", "basic_auth_file": str(known.password_file)}}
    port = stage.fresh(extra=extra)
    return Site(tmp_path, sqlite_url, f"http://127.0.0.1:{port}", known.password)


def run(program: str, config: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [str(PROGRAMS / program), "--config-file", str(config), *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)


def start_api(config: Path) -> Service:
    port = free_port()

    def answers() -> bool:
        try:
            return requests.get(f"http://127.0.0.1:{port}/healthz", timeout=5).status_code == 200
        except requests.ConnectionError:
            return False

    command: list[str | Path] = [PROGRAMS / "moorage-api", "--config-file", config, "--port", str(port)]
    return start_service(command, port, config.with_name("api.log"), ready=answers)


def check(config: Path) -> tuple[Code, str]:
    """What the upgrade check finds about Placement."""
    found = Checks(settings.read([config])).placement()
    return found.code, found.details or ""


@pytest.mark.parametrize("program", ["moorage-api", "moorage-conductor", "moorage-agent"])
def test_without_credentials_nothing_starts_that_needs_placement(site: Site, program: str) -> None:
    ran = run(program, site.config(None))
    assert ran.returncode == 1
    (sentence,) = [line for line in ran.stderr.splitlines() if line.startswith("error: ")]
    assert "[placement_client] does not say how to reach Placement" in sentence
    assert "[placement] required = false" in sentence
    assert "Traceback" not in ran.stderr


def test_with_a_wrong_password_the_api_does_not_start(site: Site) -> None:
    ran = run("moorage-api", site.config(site.credentials("wrong")))
    assert ran.returncode == 1
    assert "Placement refuses our credentials with status 401" in ran.stderr
    status = run("moorage-status", site.config(site.credentials("wrong")), "upgrade", "check")
    assert status.returncode == 2
    assert "Placement refuses our credentials" in status.stdout


@pytest.mark.parametrize("client", [None, "wrong"])
def test_the_api_starts_with_a_warning_if_it_may(site: Site, client: str | None) -> None:
    section = None if client is None else site.credentials(client)
    config = site.config(section, required=False)
    with start_api(config) as api:
        listed = requests.get(f"{api.url}/v2.1/flavors", headers={"X-Auth-Token": "admin"}, timeout=30)
        assert listed.status_code == 200
        assert "starting without Placement: " in api.log_tail()
    code, sentence = check(config)
    assert code is Code.WARNING
    assert "Placement" in sentence


def test_a_placement_that_is_away_keeps_nobody_from_starting(site: Site) -> None:
    config = site.config(site.credentials(endpoint=f"http://127.0.0.1:{free_port()}"))
    with start_api(config) as api:
        assert "starting without Placement: Placement does not answer" in api.log_tail()
    assert check(config)[0] is Code.FAILURE


def test_good_credentials_are_checked_in_silence(site: Site) -> None:
    config = site.config(site.credentials())
    with start_api(config) as api:
        assert "Placement" not in api.log_tail()
    assert check(config) == (Code.SUCCESS, "")


def test_a_deployment_in_one_process_needs_no_credentials(site: Site) -> None:
    config = site.config(None)
    config.write_text(config.read_text().replace("transport_url", "#transport_url"))
    assert check(config) == (Code.SUCCESS, "[placement_client] is not set: right for `moorage up` only.")


@contextmanager
def of_version(site: Site, newest: tuple[int, int]) -> Iterator[Path]:
    with requests.Session() as session:
        session.trust_env = False
        older = OlderService(SessionTransport(session, site.placement), newest)
        with serving(older) as url:
            yield site.config(site.credentials(endpoint=url))


def test_a_placement_that_is_too_old_is_found_before_it_matters(site: Site) -> None:
    with of_version(site, (1, 29)) as config:
        found = probe(settings.read([config]))
        assert (found.health, "at least 1.30 is needed" in found.sentence) == (PlacementHealth.TOO_OLD, True)
        with pytest.raises(CommandError, match=r"no version above 1\.29"):
            require_placement(settings.read([config]))
        code, sentence = check(config)
        assert (code, "at least 1.30" in sentence) == (Code.FAILURE, True)
    with of_version(site, (1, 30)) as config:
        assert probe(settings.read([config])).health is PlacementHealth.READY
        assert check(config) == (
            Code.FAILURE,
            "Placement speaks version 1.30, this release needs 1.31: upgrade Placement first.",
        )
    with of_version(site, (1, 31)) as config:
        assert check(config) == (Code.SUCCESS, "")


def test_without_credentials_each_use_of_placement_fails_with_the_reason(site: Site) -> None:
    client = connect(settings.read([site.config(None, required=False)]))
    with pytest.raises(PlacementUnavailableError, match="does not say how to reach Placement"):
        client.candidates([("limit", "1"), ("resources", "VCPU:1")])


def test_a_section_that_makes_no_sense_is_a_mistake_of_the_configuration(site: Site) -> None:
    found = probe(settings.read([site.config({"auth_type": "by_telepathy"})]))
    assert found.health is PlacementHealth.MISCONFIGURED
    assert "by_telepathy" in found.sentence
