"""Each API has one table of its microversions, and nothing else in it writes a version down as a number."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from moorage.compute_api import microversions as compute
from moorage.core.microversions import VersionTable
from moorage.placement import microversions as placement

TOP = Path(__file__).parents[3]
TABLES = [
    pytest.param(compute.Microversion, (2, 1), (2, 104), id="compute"),
    pytest.param(placement.Microversion, (1, 0), (1, 39), id="placement"),
]
SOURCES = [
    pytest.param(path, major, id=str(path.relative_to(TOP)))
    for package, major in (("compute_api", 2), ("placement", 1))
    for path in sorted((TOP / "src" / "moorage" / package).rglob("*.py"))
    if path.name != "microversions.py"
]


@pytest.mark.parametrize(("table", "lowest", "highest"), TABLES)
def test_a_table_has_each_version_once_in_order(
    table: type[VersionTable], lowest: tuple[int, int], highest: tuple[int, int]
) -> None:
    every = [(lowest[0], minor) for minor in range(lowest[1], highest[1] + 1)]
    assert table.lines() == every
    assert (table.lowest(), table.highest()) == (lowest, highest)


@pytest.mark.parametrize(("table", "lowest", "highest"), TABLES)
def test_no_two_versions_brought_the_same(
    table: type[VersionTable], lowest: tuple[int, int], highest: tuple[int, int]
) -> None:
    assert len({line.brought for line in table.lines()}) == len(table.lines())


@pytest.mark.parametrize(
    ("page", "table"),
    [
        (TOP / "docs" / "compute" / "microversions.md", compute.page()),
        (TOP / "docs" / "placement" / "microversions.md", placement.page()),
    ],
    ids=["compute", "placement"],
)
def test_the_page_is_what_the_table_says(page: Path, table: str) -> None:
    assert page.read_text() == table, "`make microversions` writes it anew"


@pytest.mark.parametrize(("path", "major"), SOURCES)
def test_versions_are_asked_for_by_name(path: Path, major: int) -> None:
    bare = [
        f"line {node.lineno}: {ast.unparse(node)}"
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Tuple) and _is_version(node, major)
    ]
    assert not bare, "a version has a name in microversions.py"


def _is_version(node: ast.Tuple, major: int) -> bool:
    numbers = [part.value for part in node.elts if isinstance(part, ast.Constant)]
    return len(node.elts) == 2 and [type(number) for number in numbers] == [int, int] and numbers[0] == major
