"""Random sequences of writes: each has the reference's outcome, and all of them leave the same state.

MOORAGE_SEED=123 MOORAGE_SEQUENCES=500 pytest tests/conformance/test_same_writes.py
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing

import pytest
from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st

from tests.conformance.answers import error_differences, header_differences, normal, unequal
from tests.conformance.seeds import SEED
from tests.conformance.writes import CONSUMERS, PROVIDERS, Write, any_write, prelude
from tests.support.examples import examples
from tests.support.stage import SqliteCopies, Stage
from tests.support.wire import Reply, Wire

SEQUENCES = int(os.environ.get("MOORAGE_SEQUENCES") or examples(30))


@pytest.mark.timeout(900)
def test_same_writes(reference_service: Stage, moorage_service: Stage) -> None:
    print(f"MOORAGE_SEED={SEED} repeats this run")
    failed: list[list[Write]] = []

    def played(writes: list[Write]) -> list[str]:
        """What differs, with both services new."""
        with Wire(reference_service.fresh()) as reference, Wire(moorage_service.fresh()) as ours:
            assert isinstance(reference_service.databases, SqliteCopies)
            with closing(sqlite3.connect(str(reference_service.databases.latest))) as tables:
                return first_differences(writes, reference, ours, tables)

    @seed(SEED)
    @settings(
        max_examples=SEQUENCES,
        database=None,
        deadline=None,
        phases=(Phase.generate,),
        suppress_health_check=list(HealthCheck),
    )
    @given(st.lists(any_write(), min_size=15, max_size=45))
    def play(writes: list[Write]) -> None:
        if not failed and played(writes):
            failed.append(writes)

    play()
    if failed:
        writes = shortest(failed[0], lambda writes: bool(played(writes)))
        pytest.fail("\n  ".join([*map(repr, writes), *played(writes)]), pytrace=False)


def shortest(writes: list[Write], fails: Callable[[list[Write]], bool]) -> list[Write]:
    """Leave out whatever can be left out: halves, quarters, …, single writes. Each try is a new start."""
    size = len(writes) // 2
    while size:
        at = 0
        while at < len(writes):
            fewer = writes[:at] + writes[at + size :]
            if fails(fewer):
                writes = fewer
            else:
                at += size
        size //= 2
    return writes


def first_differences(
    writes: list[Write], reference: Wire, ours: Wire, tables: sqlite3.Connection
) -> list[str]:
    for write in [*prelude(), *writes]:
        differing = outcome_differences(write, reference, ours)
        if differing:
            return [f"{write.method} {write.path} at 1.{write.version}", *differing]
        if write.names_consumers:
            forget_empty_consumers(tables)
    return list(state_differences(reference, ours))


def forget_empty_consumers(tables: sqlite3.Connection) -> None:
    """Mend a defect of the reference: see docs/decisions/0003-reference-differences.md.

    It leaves a record of a consumer behind that has no allocations (a claim on an unknown provider, or for
    nothing at all), and from then on calls a claim that says "new" a conflict.
    """
    with tables:
        tables.execute("DELETE FROM consumers WHERE uuid NOT IN (SELECT consumer_id FROM allocations)")


def outcome_differences(write: Write, reference: Wire, ours: Wire) -> list[str]:
    body, version = write.resolved(reference), f"1.{write.version}"
    expected = reference.request(write.method, write.path, body, version=version)
    found = ours.request(write.method, write.path, body, version=version)
    if found.status != expected.status:
        return [
            f"status {found.status} instead of {expected.status}",
            *map(repr, (body, found.body, expected.body)),
        ]
    if expected.status >= 400:
        return error_differences(found, expected)
    return header_differences(found, expected) + unequal(
        "body", *(_content(reply) for reply in (found, expected))
    )


def state_differences(reference: Wire, ours: Wire) -> Iterator[str]:
    paths = ["/resource_providers", "/resource_classes", "/traits?name=startswith:CUSTOM_"]
    paths += [f"/usages?project_id={project}" for project in ("project-a", "project-b")]
    paths += [f"/allocations/{consumer}" for consumer in CONSUMERS]
    for provider in PROVIDERS:
        for part in ("inventories", "usages", "traits", "aggregates", "allocations"):
            paths.append(f"/resource_providers/{provider}/{part}")
    for path in paths:
        expected, found = reference.get(path), ours.get(path)
        yield from unequal(f"status of {path}", found.status, expected.status)
        if expected.status == 200:
            yield from unequal(path, _content(found), _content(expected))


def _content(reply: Reply) -> object:
    return normal(reply.json()) if reply.body else None
