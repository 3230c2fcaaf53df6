"""Who watches goes on over a restart of the API; who acts is told at once."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from typer.testing import CliRunner

from moorage.cli import main, service
from moorage.cli.commands import ops
from moorage.cli.errors import CommandError
from moorage.cli.service import AwayError

EMPTY = b'{"operations": [], "count": 0, "stuck": 0, "complete": true}'


@pytest.fixture
def answers(monkeypatch: pytest.MonkeyPatch) -> list[bytes | BaseException]:
    """One by one; then somebody types Control-C."""
    prepared: list[bytes | BaseException] = []
    coming: Iterator[bytes | BaseException] | None = None

    def ask(*_: object) -> bytes:
        nonlocal coming
        coming = coming or iter(prepared)
        answer = next(coming, KeyboardInterrupt())
        if isinstance(answer, BaseException):
            raise answer
        return answer

    monkeypatch.setattr(service, "ask", ask)
    monkeypatch.setattr(service, "_PAUSE", 0.0)
    monkeypatch.setattr("time.sleep", lambda _seconds: None)
    return prepared


def test_a_watch_in_json_waits_for_who_is_away(answers: list[bytes | BaseException]) -> None:
    answers += [EMPTY, AwayError("Compute answered 503"), AwayError("Compute can't be reached"), EMPTY]
    said = CliRunner().invoke(main.commands, ["ops", "list", "--watch", "--json"])
    assert said.output.count('"operations"') == 2


def test_a_watch_shows_who_is_away_below_what_it_saw_last(answers: list[bytes | BaseException]) -> None:
    answers += [EMPTY, AwayError("Compute can't be reached: refused")]
    said = CliRunner().invoke(main.commands, ["ops", "list", "--watch"])
    assert "0 operations, 0 of them stuck" in said.output
    assert "Compute can't be reached: refused" in said.output


def test_what_is_refused_ends_a_watch(answers: list[bytes | BaseException]) -> None:
    answers += [EMPTY, CommandError("Compute answered 403: no")]
    said = CliRunner().invoke(main.commands, ["ops", "list", "--watch"])
    assert str(said.exception) == "Compute answered 403: no"


def test_nobody_waits_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    def away() -> bytes:
        raise AwayError("Compute can't be reached")

    monkeypatch.setattr(service, "_PAUSE", 0.01)
    monkeypatch.setattr(service, "_PATIENCE", 0.05)
    with pytest.raises(AwayError):
        service.patiently(away)


def test_who_chooses_more_than_are_listed_is_told(
    answers: list[bytes | BaseException], monkeypatch: pytest.MonkeyPatch
) -> None:
    answers += [b'{"operations": [], "count": 2000, "stuck": 0, "complete": false}']
    said = CliRunner().invoke(ops.ops, ["retry", "--kind", "build"])
    assert "0 of 2000 operations are chosen: ask again for the others" in said.output
