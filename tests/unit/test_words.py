"""One word, one meaning: a name that two classes share would have to be looked up each time it is read."""

from __future__ import annotations

import ast
from collections import defaultdict
from functools import cache
from pathlib import Path

import moorage

SHARED = {
    "ConflictError": "what both APIs answer with 409; each has its own hierarchy of errors",
    "NotFoundError": "what both APIs answer with 404; each has its own hierarchy of errors",
    "Inventory": "Placement's word: what a driver reports is what the store keeps",
    "Microversion": "each API's table of its own versions",
    "NearMiss": "a trace records what Placement's search found, in a form that stays readable",
    "RequestGroup": "what the scheduler writes into a query is what Placement reads out of it",
}
"""Names that stand for the same thing in two layers which don't import each other, each with its reason."""


@cache
def classes() -> dict[str, list[str]]:
    """Where each public class is defined, by its name."""
    root = Path(moorage.__file__).parent
    found = defaultdict(list)
    for path in sorted(root.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                found[node.name].append(f"{path.relative_to(root)}:{node.lineno}")
    return found


def test_no_class_name_has_two_meanings() -> None:
    twice = {name: places for name, places in classes().items() if len(places) > 1}
    assert {name: places for name, places in twice.items() if name not in SHARED} == {}


def test_every_exception_is_still_needed() -> None:
    found = classes()
    assert [name for name in SHARED if len(found[name]) < 2] == []
