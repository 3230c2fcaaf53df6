"""Lines for people and for machines."""

from __future__ import annotations

import json
import logging
import re
from collections.abc import Iterator

import pytest

from moorage.core import context, log
from moorage.core.context import WorkContext

LOG = logging.getLogger("moorage.somewhere")
WORK = WorkContext("req-1", "req-0", "ann", "shop", "s-1", "rack-7", "build-3-1")


@pytest.fixture(autouse=True)
def root() -> Iterator[logging.Logger]:
    """As it was, afterwards."""
    found = logging.getLogger()
    handlers, level = found.handlers[:], found.level
    yield found
    found.handlers[:], found.level = handlers, level


def test_a_line_for_people_says_whose_work_it_is(capsys: pytest.CaptureFixture[str]) -> None:
    log.set_up()
    with context.working(WORK):
        LOG.info("half way")
    LOG.info("idle")
    first, second = capsys.readouterr().err.splitlines()
    whose = "[req-0 req-1 project=shop server=s-1 host=rack-7 operation=build-3-1]"
    assert first.endswith(f"INFO moorage.somewhere {whose} half way")
    assert second.endswith("INFO moorage.somewhere [-] idle")


def test_what_a_process_of_one_host_says_is_of_that_host(capsys: pytest.CaptureFixture[str]) -> None:
    log.set_up(host="rack-8")
    LOG.info("idle")
    with context.working(WORK):
        LOG.info("half way")
    first, second = capsys.readouterr().err.splitlines()
    assert "[host=rack-8]" in first
    assert "host=rack-7" in second


def test_a_line_for_machines_has_the_names_of_oslo_log(capsys: pytest.CaptureFixture[str]) -> None:
    log.set_up("WARNING", "json")
    with context.working(WORK):
        LOG.info("too quiet")
        try:
            raise ValueError("a\nb")
        except ValueError:
            LOG.exception("it broke at %d", 7)
    (line,) = capsys.readouterr().err.splitlines()
    told = json.loads(line)
    assert (told["message"], told["levelname"], told["name"]) == (
        "it broke at 7",
        "ERROR",
        "moorage.somewhere",
    )
    assert told["error_summary"] == "ValueError: a\nb"
    assert told["traceback"][0] == "Traceback (most recent call last):"
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}", told["asctime"])
    assert told["context"] == {
        "request_id": "req-1",
        "global_request_id": "req-0",
        "user_id": "ann",
        "project_id": "shop",
        "resource_uuid": "s-1",
        "host": "rack-7",
        "operation": "build-3-1",
    }
