"""What is stuck, by the ledger's own reckoning, and the sentence that says what an operation waits for."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec
import pytest

from moorage.compute.operations.recorded import RecordedOperation
from moorage.compute.operations.standing import Onlooker, State, Stuck
from moorage.conductor.operations.register import DECLARED

NOW = datetime(2026, 1, 1, 12, tzinfo=UTC)
SOON, JUST, LONG = timedelta(seconds=9), timedelta(seconds=5), timedelta(hours=2)
BUILD = RecordedOperation(
    id=7,
    kind="build",
    step="spawned",
    attempt=1,
    tries=0,
    data={},
    answered=False,
    due_at=NOW + SOON,
    lease=None,
    leased_until=None,
    created_at=NOW - JUST,
    step_since=NOW - JUST,
    trouble=None,
    cancel_reason=None,
    finished_at=None,
    outcome=None,
    error=None,
    server_id=1,
    server_uuid="u",
    server_name="web",
    project_id="p",
    host="compute-7",
    request_id="req-1",
)
MOVE = {
    "move": {
        "migration_id": 1,
        "migration_uuid": "m",
        "kind": "migration",
        "source": {"host": "old", "node": "old", "node_uuid": "n"},
        "flavor": {},
        "old_flavor": {},
        "old_state": "active",
        "reserved": {},
    },
    "placed": {"host": "new", "node": "new", "node_uuid": "n"},
}


def look(**columns: Any) -> tuple[State, Stuck | None, str]:
    standing = Onlooker(DECLARED, 30).look(msgspec.structs.replace(BUILD, **columns), NOW)
    return standing.state, standing.stuck, standing.sentence


@pytest.mark.parametrize(
    ("columns", "state", "stuck", "words"),
    [
        ({}, State.WAITING, None, "waits for the agent of compute-7 to answer"),
        ({"tries": 2}, State.WAITING, None, "2 tries in a row came to nothing"),
        ({"tries": 3}, State.WAITING, Stuck.FAILING, "waits for the agent of compute-7 to answer; 3 tries"),
        ({"step_since": NOW - LONG}, State.WAITING, Stuck.SLOW, "waits for the agent of compute-7"),
        ({"due_at": NOW - JUST}, State.DUE, None, "is taken by a conductor next"),
        (
            {"due_at": NOW - LONG},
            State.DUE,
            Stuck.UNATTENDED,
            "waits for a conductor, since 2026-01-01 10:00",
        ),
        (
            {"due_at": NOW - LONG, "lease": "c", "leased_until": NOW - JUST},
            State.DUE,
            None,
            "is taken by a conductor next",
        ),
        (
            {"due_at": NOW - LONG, "kind": "teleport"},
            State.DUE,
            Stuck.UNATTENDED,
            "a release that knows teleport at spawned",
        ),
        (
            {"due_at": NOW - LONG, "lease": "c", "leased_until": NOW + SOON},
            State.WORKING,
            None,
            "conductor c is",
        ),
        ({"step": "begin", "step_since": None}, State.PLANNED, None, "begins at 2026-01-01 12:00:09"),
        (
            {"step": "schedule", "tries": 4, "trouble": "PlacementUnavailableError: refused"},
            State.WAITING,
            Stuck.FAILING,
            "4 tries in a row came to nothing: PlacementUnavailableError: refused",
        ),
        (
            {"step": "schedule", "trouble": "No room."},
            State.WAITING,
            None,
            "a host with room for it: No room.",
        ),
        ({"cancel_reason": "enough"}, State.WAITING, None, "; it is to be cancelled"),
        (
            {"finished_at": NOW, "due_at": None, "outcome": "failed", "error": "enough", "tries": 9},
            State.ENDED,
            None,
            "failed: enough",
        ),
        (
            {"kind": "cold_move", "step": "handed_over", "data": MOVE},
            State.WAITING,
            None,
            "the agent of old to",
        ),
        (
            {"kind": "cold_move", "step": "taken_over", "data": MOVE},
            State.WAITING,
            None,
            "the agent of new to",
        ),
        (
            {"kind": "cold_move", "step": "taken_over", "data": {"x": 1}},
            State.WAITING,
            None,
            "of compute-7 to",
        ),
        (
            {"kind": "delete", "step": "destroyed", "data": {"ends": [["far", "n"]]}},
            State.WAITING,
            None,
            "of far to",
        ),
    ],
)
def test_how_an_operation_stands(
    columns: dict[str, Any], state: State, stuck: Stuck | None, words: str
) -> None:
    found = look(**columns)
    assert found[:2] == (state, stuck)
    assert words in found[2]
