"""Random sequences of writes: each has the reference's outcome, and all of them leave the same state.

MOORAGE_SEED=123 MOORAGE_SEQUENCES=500 pytest tests/conformance/test_same_writes.py
"""

from __future__ import annotations

import os
import random
from collections.abc import Iterator

from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st

from tests.conformance.answers import error_differences, header_differences, normal, unequal
from tests.conformance.writes import CONSUMERS, PROVIDERS, Write, any_write, prelude
from tests.support.stage import Stage
from tests.support.wire import Reply, Wire

SEED = int(os.environ.get("MOORAGE_SEED") or random.SystemRandom().getrandbits(32))
SEQUENCES = int(os.environ.get("MOORAGE_SEQUENCES") or 30)


def test_same_writes(reference_service: Stage, moorage_service: Stage) -> None:
    print(f"MOORAGE_SEED={SEED} repeats this run")

    @seed(SEED)
    @settings(
        max_examples=SEQUENCES,
        database=None,
        deadline=None,
        phases=(Phase.generate, Phase.shrink),
        suppress_health_check=list(HealthCheck),
    )
    @given(sequences())
    def play(writes: list[Write]) -> None:
        with Wire(reference_service.fresh()) as reference, Wire(moorage_service.fresh()) as ours:
            for write in [*prelude(), *writes]:
                if write.empties_nobody(reference):
                    continue
                differing = outcome_differences(write, reference, ours)
                assert not differing, "\n  ".join(
                    [f"{write.method} {write.path} at 1.{write.version}", *differing]
                )
            left = list(state_differences(reference, ours))
            assert not left, "\n  ".join(["afterwards", *left])

    play()


def sequences() -> st.SearchStrategy[list[Write]]:
    """Some thirty writes; in parts, so that a failing sequence can shrink to any part of it."""
    part = st.lists(any_write(), max_size=12)
    return st.tuples(part, part, part, part, part).map(
        lambda parts: [write for part in parts for write in part]
    )


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
