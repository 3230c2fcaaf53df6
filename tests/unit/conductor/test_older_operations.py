"""What earlier releases wrote of operations is still read: an upgrade finds them at any step.

`samples/untyped.json` is by a release that had no types for them; the other files have what came later, as
the first release wrote it that knew it. Together they have one of each kind and step.
"""

from __future__ import annotations

from datetime import datetime
from pathlib import Path
from typing import Any

import msgspec
import pytest

from moorage.conductor.operations.register import KINDS

SAMPLES = [
    sample
    for file in sorted((Path(__file__).parent / "samples").glob("*.json"))
    for sample in msgspec.json.decode(file.read_bytes())
]
BY_NAME = {kind.name: kind for kind in KINDS}
SINCE: set[tuple[str, str]] = {
    ("build", "unpause"),
    ("build", "unpaused"),
    ("evacuate", "plugged"),
    ("evacuate", "unpause"),
    ("evacuate", "unpaused"),
    ("live_migrate", "look"),
    ("live_migrate", "looked"),
    ("unshelve", "unpause"),
    ("unshelve", "unpaused"),
}
"""Steps that came later, and have no sample yet."""


def test_there_is_a_sample_of_each_kind_and_step() -> None:
    known = {(kind.name, step.name) for kind in KINDS for step in kind.steps} - SINCE
    assert {(sample["kind"], sample["step"]) for sample in SAMPLES} == known


@pytest.mark.parametrize("sample", SAMPLES, ids=lambda sample: f"{sample['kind']}-{sample['step']}")
def test_nothing_of_it_is_lost(sample: dict[str, Any]) -> None:
    read = msgspec.convert(sample["data"], BY_NAME[sample["kind"]].state)
    kept = msgspec.to_builtins(read)
    again = msgspec.convert(kept, BY_NAME[sample["kind"]].state)
    assert again == read
    for name, value in sample["data"].items():
        assert _has(getattr(read, name), value), name


def _has(read: Any, written: Any) -> bool:
    """Whether what was written is there; what is new since then has its default."""
    if isinstance(read, datetime):
        return read == datetime.fromisoformat(written)
    found = msgspec.to_builtins(read)
    if isinstance(written, dict) and isinstance(read, msgspec.Struct):
        return all(_has(getattr(read, name), value) for name, value in written.items())
    if isinstance(written, list):
        pairs = zip(read, written, strict=True)
        return all(_has(one, other) for one, other in pairs)
    return bool(found == written)
