"""The licences of what comes along: all are listed, and all may come along."""

from __future__ import annotations

import re

import pytest

from packages import licences
from tests.support.manual import DOCS


def test_everything_that_is_needed_is_listed() -> None:
    listed = dict(
        re.findall(r"(?m)^\| \[([^\]]+)\]\(\S+\) \| ([^|]+) \|$", (DOCS / "licences.md").read_text())
    )
    assert listed == {one.name: one.licence for one in licences.runtime()}, "run `make licences`"


def test_everything_may_come_along_with_a_program_under_our_licence() -> None:
    told = [*licences.BUNDLED, *((one.name, one.licence) for one in licences.runtime())]
    assert [name for name, licence in told if not licences.is_compatible(licence)] == []


@pytest.mark.parametrize(
    ("licence", "compatible"),
    [
        ("MIT", True),
        ("GPL-3.0-only", False),
        ("GPL-3.0-only OR MIT", True),
        ("MIT AND GPL-2.0-only", False),
        ("unknown", False),
    ],
)
def test_what_may_come_along(licence: str, compatible: bool) -> None:
    assert licences.is_compatible(licence) is compatible
