"""The flavors that the pages tell an operator to make: a project with the default quotas can boot them."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

from tests.functional.compute.servers.conftest import Cloud

ROOT = Path(__file__).parents[4]
_CREATE = re.compile(r"^openstack flavor create (.+)$", re.MULTILINE)
PAGES = (ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md")))
FLAVORS = [
    pytest.param(words, id=f"{page.stem}-{shlex.split(words)[-1]}")
    for page in PAGES
    for words in _CREATE.findall(page.read_text())
]


def test_there_are_some() -> None:
    assert len(FLAVORS) >= 3


@pytest.mark.parametrize("words", FLAVORS)
def test_one_server_of_it_is_within_the_default_quotas(cloud: Cloud, words: str) -> None:
    given = shlex.split(words)
    numbers = {name: int(given[given.index(f"--{name}") + 1]) for name in ("vcpus", "ram", "disk")}
    body = {"flavor": {"name": given[-1], "id": given[-1], **numbers}}
    made = cloud.admin.call("POST", "/flavors", body)
    assert made.status_code == 200, made.text
    answer = cloud.alice.boot(flavorRef=given[-1])
    assert answer.status_code == 202, answer.text
