"""Random fleets, random questions: our answers are the reference's.

MOORAGE_SEED=123 pytest tests/conformance/test_same_answers.py     # repeat a run
MOORAGE_QUERIES=100000 pytest tests/conformance/test_same_answers.py
"""

from __future__ import annotations

import os
import random

import pytest
from hypothesis import HealthCheck, Phase, given, seed, settings

from tests.conformance.answers import differences
from tests.conformance.fleets import make_fleet
from tests.conformance.queries import Query, any_query
from tests.conformance.seeds import SEED
from tests.support.examples import examples
from tests.support.stage import Stage
from tests.support.wire import Wire

QUERIES = int(os.environ.get("MOORAGE_QUERIES") or examples(5400))
QUERIES_A_FLEET = 54


@pytest.mark.parametrize("number", range(QUERIES // QUERIES_A_FLEET))
def test_same_answers(number: int, reference_service: Stage, moorage_on_sqlite: Stage) -> None:
    print(f"MOORAGE_SEED={SEED} repeats this run")
    fleet = make_fleet(random.Random(f"{SEED}/{number}"))
    with Wire(reference_service.fresh()) as reference, Wire(moorage_on_sqlite.fresh()) as ours:
        assert fleet.build(ours) == fleet.build(reference), "the claims that made the fleet"

        @seed(SEED + number)
        @settings(
            max_examples=QUERIES_A_FLEET,
            database=None,
            deadline=None,
            phases=(Phase.generate, Phase.shrink),
            suppress_health_check=list(HealthCheck),
        )
        @given(any_query(fleet))
        def ask(query: Query) -> None:
            differing = differences(query, reference, ours)
            assert not differing, "\n  ".join([f"GET {query.target} at {query.version}", *differing])

        ask()
