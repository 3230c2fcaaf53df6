"""`moorage-manage placement sync_aggregates`, run as an operator or a cron job runs it."""

from __future__ import annotations

import json
import os
import pty
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from moorage.cli.manage.sync_aggregates import exit_code
from moorage.compute.aggregates.reconciliation import Findings, MembershipChange
from tests.functional.mirror.site import Site, site_on, uuid_of
from tests.support.faulty_proxy import ERROR, HUNG_UP
from tests.support.stage import Stage, moorage_stage

MANAGE = Path(sys.executable).parent / "moorage-manage"


@dataclass
class Operator:
    site: Site
    config: Path

    def run(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(self.command(*arguments), capture_output=True, text=True, check=False)

    def command(self, *arguments: str) -> list[str]:
        return [str(MANAGE), "--config-file", str(self.config), "placement", "sync_aggregates", *arguments]


@pytest.fixture(scope="module")
def stage(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:
    with moorage_stage(tmp_path_factory.mktemp("placement")) as running:
        yield running


@pytest.fixture
def operator(stage: Stage, database_url: str, tmp_path: Path) -> Iterator[Operator]:
    with site_on(database_url, stage.fresh()) as site:
        config = tmp_path / "moorage.conf"
        config.write_text(
            f"[database]\nconnection = {database_url}\n"
            f"[placement_client]\nauth_type = none\nendpoint = http://127.0.0.1:{site.proxy.port}\n"
        )
        site.add("h", "n", "m")
        site.aggregate("rack", "h")
        yield Operator(site, config)


def test_it_puts_right_and_then_has_nothing_to_do(operator: Operator) -> None:
    operator.site.put("n", "theirs")
    first = operator.run("--verbose")
    assert first.returncode == 0, first.stderr
    assert first.stdout.splitlines() == [
        f"h {uuid_of('n')}: +rack",
        "added: 1, removed: 0, unchanged: 1",
    ]
    operator.site.proxy.requests.clear()
    second = operator.run()
    assert (second.returncode, second.stdout) == (0, "added: 0, removed: 0, unchanged: 2\n")
    assert operator.site.proxy.writes == []


def test_a_dry_run_tells_by_its_exit_code(operator: Operator) -> None:
    operator.site.put("n")
    dry = operator.run("--dry-run", "--json", "--verbose")
    assert dry.returncode == 7
    told = json.loads(dry.stdout)
    assert (told["dry_run"], told["added"], told["removed"], told["unchanged"]) == (True, 1, 0, 1)
    assert told["changes"] == [{"host": "h", "provider": uuid_of("n"), "added": ["rack"], "removed": []}]
    assert operator.site.says("n") == {"n": set()}
    operator.run()
    assert operator.run("--dry-run").returncode == 0


def test_what_is_not_found_is_told(operator: Operator) -> None:
    operator.site.beat("empty")
    empty = operator.site.aggregate("other", "empty")
    ran = operator.run()
    assert ran.returncode == 5
    assert "host empty has no nodes" in ran.stdout
    operator.site.beat("empty", "unreported")
    ran = operator.run("--json")
    assert ran.returncode == 6
    told = json.loads(ran.stdout)
    assert told["missing_providers"] == [{"host": "empty", "provider": uuid_of("unreported")}]
    assert empty


def test_an_outage_is_told_in_a_sentence(operator: Operator) -> None:
    operator.site.put("n")
    operator.site.proxy.fail(HUNG_UP)
    ran = operator.run()
    assert ran.returncode == 3
    assert ran.stderr.startswith("error: Placement does not answer")
    assert "Traceback" not in ran.stderr
    operator.site.proxy.fail(replace(ERROR, method="PUT"))
    ran = operator.run()
    assert ran.returncode == 3
    assert "host h failed: " in ran.stdout


def test_scripts_get_json_and_counts_of_an_outage(operator: Operator) -> None:
    operator.site.put("n")
    operator.site.proxy.fail(HUNG_UP)
    ran = operator.run("--json")
    assert ran.returncode == 3
    told = json.loads(ran.stdout)
    assert told["error"].startswith("Placement does not answer")
    assert (told["added"], told["removed"], told["unchanged"]) == (0, 0, 0)
    operator.site.proxy.fail(replace(ERROR, method="PUT"))
    ran = operator.run("--json", "--verbose")
    assert ran.returncode == 3
    told = json.loads(ran.stdout)
    assert (told["error"], told["added"], told["unchanged"], told["changes"]) == (None, 0, 1, [])
    assert [failed["host"] for failed in told["failed_hosts"]] == ["h"]
    operator.site.proxy.fail(None)
    told = json.loads(operator.run("--json").stdout)
    assert (told["error"], told["added"], told["failed_hosts"]) == (None, 1, [])


@pytest.mark.parametrize(
    ("config", "words"),
    [
        (None, "none.conf"),
        ("[database]\nconnection = nonsense\n", "[database] connection"),
        ("[database]\nconnection = sqlite:///DIRECTORY/empty.sqlite\n", "moorage-manage db sync"),
        (
            "[database]\nwait_seconds = 0\nconnection = postgresql+psycopg://nobody@127.0.0.1:1/none\n",
            "the database can't be reached",
        ),
    ],
    ids=["no file", "no database", "no schema", "database away"],
)
def test_scripts_get_json_when_the_command_can_not_run(
    tmp_path: Path, config: str | None, words: str
) -> None:
    path = tmp_path / "none.conf"
    if config is not None:
        path.write_text(config.replace("DIRECTORY", str(tmp_path)))
    command = [str(MANAGE), "--config-file", str(path), "placement", "sync_aggregates", "--json", "--dry-run"]
    ran = subprocess.run(command, capture_output=True, text=True, check=False)
    assert ran.returncode == 1
    told = json.loads(ran.stdout)
    assert words in told["error"]
    assert (told["dry_run"], told["added"], told["failed_hosts"]) == (True, 0, [])
    assert words in ran.stderr
    assert "Traceback" not in ran.stderr


def test_a_terminal_gets_a_progress_bar(operator: Operator) -> None:
    operator.site.put("n")
    ours, theirs = pty.openpty()
    ran = subprocess.run(
        operator.command(),
        stdout=subprocess.PIPE,
        stderr=theirs,
        env={**os.environ, "TERM": "xterm", "COLUMNS": "100"},
        check=True,
    )
    os.close(theirs)
    shown = os.read(ours, 100_000).decode()
    os.close(ours)
    assert "2/2" in shown
    assert ran.stdout == b"added: 1, removed: 0, unchanged: 1\n"


def test_placement_in_the_same_database_needs_no_address(sqlite_url: str, tmp_path: Path) -> None:
    with site_on(sqlite_url, 0) as site:
        site.add("h", "n")
        site.aggregate("rack", "h")
        site.put("n")
        config = tmp_path / "moorage.conf"
        config.write_text(f"[database]\nconnection = {sqlite_url}\n")
        ran = Operator(site, config).run()
        assert (ran.returncode, ran.stdout) == (0, "added: 1, removed: 0, unchanged: 0\n")
        assert site.says("n") == {"n": {"rack"}}


def test_a_wrong_configuration_is_told_in_a_sentence(tmp_path: Path) -> None:
    command = [str(MANAGE), "--config-file", str(tmp_path / "none.conf"), "placement", "sync_aggregates"]
    ran = subprocess.run(command, capture_output=True, text=True, check=False)
    assert ran.returncode == 1
    assert "Traceback" not in ran.stderr


def test_the_worst_of_several_decides() -> None:
    found = Findings(changes=[MembershipChange("h", "p", frozenset({"a"}), frozenset())])
    codes = [exit_code(found, dry_run=False), exit_code(found, dry_run=True)]
    found.hosts_without_nodes.append("h")
    codes.append(exit_code(found, dry_run=True))
    found.missing_providers["p"] = "h"
    codes.append(exit_code(found, dry_run=True))
    found.failed_hosts["h"] = "away"
    codes.append(exit_code(found, dry_run=True))
    assert codes == [0, 7, 5, 6, 3]
