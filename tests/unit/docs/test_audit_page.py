"""Each check of an audit is on its page, and has a test that plants what it finds."""

from __future__ import annotations

import re

from moorage.compute.audits.audit import CheckName
from moorage.conductor.auditing.register import CHECKS
from tests.unit.docs.pages import ROOT

PLACES = ("functional", "integration")


def test_each_check_is_on_the_page_in_the_order_in_which_it_is_made() -> None:
    page = (ROOT / "docs" / "operate" / "audit.md").read_text()
    told = re.findall(r"^\| `([a-z-]+)` \|", page.partition("## What is compared")[2], re.MULTILINE)
    assert told == [name.value for name in CheckName] == [check.name for check in CHECKS]


def test_for_each_check_something_is_planted() -> None:
    text = "\n".join(path.read_text() for place in PLACES for path in (ROOT / "tests" / place).rglob("*.py"))
    planted = {
        name
        for name in CheckName
        if re.search(rf"CheckName\.{name.name}\b", text) or f'audit("{name.value}")' in text
    }
    assert set(CheckName) - planted == set()
