"""Metrics, files and links that the pages name: they are there; and every metric is on some page."""

from __future__ import annotations

import re

import pytest

from tests.unit.docs.pages import ROOT, Page, pages

SOURCE = ROOT / "src" / "moorage"
_METRIC = re.compile(r"\bmoorage_[a-z_]+")
_SERIES = re.compile(r"_(?:bucket|count|sum)$")
_LINK = re.compile(r"\]\((?!https?:|#)([^)#]+)")
_OWN_TOPS = {"src", "tests", "bench", "docs", "releasenotes", "requirements", "monitoring"}


def metrics() -> set[str]:
    made = re.compile(r'\b(?:Counter|Gauge|Histogram)\(\s*"(moorage_[a-z_]+)"')
    return {name for path in SOURCE.rglob("*.py") for name in made.findall(path.read_text())}


def test_metrics_on_pages_are_counted() -> None:
    known = metrics()
    named = {
        (page.name, name)
        for page in pages()
        for code in (*page.inline(), *page.blocks("promql", "console", "sh", "yaml", "text"))
        for name in _METRIC.findall(code)
    }
    assert len(named) > 30
    assert {(page, name) for page, name in named if not {name, _SERIES.sub("", name)} & known} == set()


def test_every_metric_is_told_on_some_page() -> None:
    text = "\n".join(page.text for page in pages())
    assert {name for name in metrics() if name not in text} == set()


@pytest.mark.parametrize("page", pages(), ids=lambda page: page.name)
def test_files_that_a_page_names_are_there(page: Page) -> None:
    """From the top of the tree, or from `src/moorage`, as the map of the code names them."""
    missing = []
    for code in page.inline():
        first = code.partition("/")[0]
        if not re.fullmatch(r"\w[\w.-]*/[\w./-]*", code):
            continue
        if first in _OWN_TOPS:
            missing += [] if (ROOT / code).exists() else [code]
        elif (SOURCE / first).is_dir():
            missing += [] if (SOURCE / code).exists() else [code]
    assert missing == []


@pytest.mark.parametrize("name", ["README.md", "CONTRIBUTING.md"])
def test_links_of_pages_outside_the_documentation_lead_somewhere(name: str) -> None:
    """`make docs` follows the others."""
    (page,) = [page for page in pages() if page.name == name]
    assert [target for target in _LINK.findall(page.text) if not (ROOT / target).exists()] == []


def test_every_directory_of_tests_has_its_role_on_a_page() -> None:
    contributing = (ROOT / "CONTRIBUTING.md").read_text()
    directories = [path.name for path in (ROOT / "tests").iterdir() if any(path.glob("**/*.py"))]
    assert len(directories) > 5
    assert [name for name in directories if f"| `tests/{name}` |" not in contributing] == []


def test_every_package_and_every_room_of_the_conductor_is_on_the_map() -> None:
    text = (ROOT / "docs" / "architecture.md").read_text()
    packages = [path.parent.name for path in SOURCE.glob("*/__init__.py")]
    rooms = [path.parent.name for path in (SOURCE / "conductor").glob("*/__init__.py")]
    assert len(packages) + len(rooms) > 20
    assert [name for name in packages if not re.search(rf"^\|.*`{name}[`.].*\|", text, re.MULTILINE)] == []
    assert [name for name in rooms if f"\n| `{name}` |" not in text] == []


def test_each_decision_has_a_number_of_its_own() -> None:
    numbers = [path.name[:4] for path in (ROOT / "docs" / "decisions").glob("0*.md")]
    assert len(numbers) > 40
    assert sorted(numbers) == sorted(set(numbers))
