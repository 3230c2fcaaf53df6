"""The register of operations: what each kind declares holds together, and is what the pages show."""

from __future__ import annotations

import inspect
from pathlib import Path

import msgspec
import pytest

from moorage.conductor.operations import graphs
from moorage.conductor.operations.build import Build
from moorage.conductor.operations.delete import Delete
from moorage.conductor.operations.kind import OperationKind
from moorage.conductor.operations.register import KINDS
from moorage.ledger.declared import UNSAID
from moorage.ledger.operation import FIRST_STEP

PAGES = Path(__file__).parents[3] / "docs" / "compute"
PAGE = PAGES / "operations.md"


def test_no_two_kinds_have_one_name() -> None:
    names = [kind.name for kind in KINDS]
    assert len(names) == len(set(names))


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
def test_every_step_is_a_method_and_can_be_reached(kind: type[OperationKind]) -> None:
    followers = {step.name: step.then for step in kind.steps}
    assert next(iter(followers)) == FIRST_STEP
    reached, ahead = set(), [FIRST_STEP]
    while ahead:
        step = ahead.pop()
        if step not in reached:
            reached.add(step)
            ahead += followers[step]
    assert reached == set(followers)
    assert all(callable(getattr(kind, step)) for step in reached)


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
def test_every_kind_says_what_it_remembers(kind: type[OperationKind]) -> None:
    assert issubclass(kind.state, msgspec.Struct)
    assert kind.give_up is not OperationKind.give_up


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
def test_every_step_says_where_a_cancel_leads(kind: type[OperationKind]) -> None:
    """And not to a step from which it would be cancelled again."""
    steps = {step.name: step for step in kind.steps}
    assert [step.name for step in kind.steps if step.cancel is UNSAID] == []
    back = {step.cancel.then for step in kind.steps if step.cancel.then is not None}
    assert [then for then in back if steps[then].cancel.now] == []


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
def test_every_step_that_reads_an_answer_says_that_it_waits(kind: type[OperationKind]) -> None:
    """Steps that may stand still without a lease, by what their code calls."""
    silent = [step.name for step in kind.steps if step.waits is None and _waits(kind, step.name)]
    assert silent == []


def _waits(kind: type[OperationKind], step: str) -> bool:
    code = inspect.getsource(getattr(kind, step))
    return any(call in code for call in (".answer()", ".answers(", "self.done(", "turns.take("))


def test_the_page_is_what_the_kinds_declare() -> None:
    assert PAGE.read_text() == graphs.page(), "`make graphs` draws it anew"


@pytest.mark.parametrize("kind", [Build, Delete], ids=lambda kind: kind.name)
def test_the_ledgers_page_names_every_step_of_a_build_and_of_a_delete(kind: type[OperationKind]) -> None:
    text = (PAGES / "ledger.md").read_text()
    assert [step.name for step in kind.steps if f"`{step.name}`" not in text] == []
