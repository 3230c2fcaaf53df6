"""Taking over a Nova that runs: what it answered before, and what the command says that brings its cloud."""

from __future__ import annotations

import json
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.conformance import nova_answers, nova_commands
from tests.conformance.nova_answers import VERSION, Answers
from tests.conformance.nova_books import Auditor, Books
from tests.conformance.nova_commands import Shown
from tests.conformance.nova_furnishing import furnish
from tests.conformance.nova_scenario import Scenario
from tests.lab.openstack.service import OpenStack
from tests.support import moorage


@dataclass(frozen=True)
class Takeover:
    database_url: str
    """Ours, with the cloud in it."""
    answers: Answers
    """Of the Nova."""
    shown: Shown
    """By the official client, of the Nova."""
    shown_by_us: Shown
    user_id: str
    project_id: str
    quota_path: str
    auditor: Auditor
    """Of the Nova's Placement."""
    books: Books
    """What that held."""
    dry_run: Any
    report: Any
    again: subprocess.CompletedProcess[str]
    """A second import."""


def take_over(
    scenario: Scenario, lab: OpenStack, directory: Path, placement_url: str, database_url: str
) -> Takeover:
    """Into a database of ours, with what is in that of its Placement. Its API stays up, since nobody uses it
    meanwhile."""
    furnish(scenario, lab)
    nova, quotas = scenario.nova, f"/os-quota-sets/{lab.demo.project_id}?user_id=somebody"
    answers = nova_answers.read(lambda path: nova.api.get(path, microversion=VERSION).json(), quotas)
    config = moorage.configure(directory, database_url)
    urls = nova.url, scenario.auditor.url
    shown = nova_commands.client_of(directory / "nova-clouds.yaml", lab, *urls, "admin").read()
    moorage.sync_database(config)
    books = scenario.auditor.books()
    placement = _manage(config, "placement", "import", "--from", placement_url)
    command = ("compute", "import", "--nova-conf", str(nova.directory / "nova.conf"))
    dry_run, report, again = (_manage(config, *command, *more) for more in (("--dry-run",), (), ()))
    assert placement.returncode == 0, placement.stderr
    assert dry_run.returncode == 0, dry_run.stderr
    assert report.returncode == 0, report.stderr
    with nova_commands.client_of_ours(directory, lab, database_url) as ours:
        shown_by_us = ours.read()
    scenario.a_host_is_enabled()
    return Takeover(
        database_url,
        answers,
        shown,
        shown_by_us,
        str(nova.connection.current_user_id),
        str(nova.connection.current_project_id),
        quotas,
        scenario.auditor,
        books,
        json.loads(dry_run.stdout),
        json.loads(report.stdout),
        again,
    )


def _manage(config: Path, *words: str) -> subprocess.CompletedProcess[str]:
    command = [str(moorage.PROGRAMS / "moorage-manage"), "--config-file", str(config), *words, "--json"]
    return subprocess.run(command, capture_output=True, text=True, check=False)
