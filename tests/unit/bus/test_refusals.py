"""Refusals fill no log, whatever somebody calls themselves."""

from __future__ import annotations

import pytest

from moorage.bus.refusals import REFUSED, RefusalReason, Refusals, RefusedError


def test_each_is_counted_and_few_are_told(caplog: pytest.LogCaptureFixture) -> None:
    now = 0.0
    refusals = Refusals(lambda: now)
    before = REFUSED.labels("tasks", "forged")._value.get()
    for number in range(50):
        refusals.refuse("tasks", RefusedError(RefusalReason.FORGED, f"made-up-{number}\n", "wrong"))
    assert REFUSED.labels("tasks", "forged")._value.get() == before + 50
    assert len(caplog.records) == 1
    now = 10.0
    refusals.refuse("tasks", RefusedError(RefusalReason.FORGED, "x", "wrong"))
    assert "49 more" in caplog.records[1].getMessage()
    assert "\n" not in caplog.records[0].getMessage()


def test_hosts_that_are_known_are_told_of_one_by_one(caplog: pytest.LogCaptureFixture) -> None:
    refusals = Refusals(lambda: 0.0)
    for host in ("host-1", "host-2", "host-1"):
        refusals.refuse("results", RefusedError(RefusalReason.NOT_ASKED, host, "it was not asked"))
    assert len(caplog.records) == 2
