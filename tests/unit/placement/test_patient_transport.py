"""A Placement that is away for long: told once when it goes, once when it is back."""

from __future__ import annotations

import logging
from collections.abc import Mapping

import pytest

from moorage.placement.client.contract import PlacementUnavailableError
from moorage.placement.client.transport import NotReachedError, PatientTransport, Response


class Line:
    """There, or not."""

    def __init__(self) -> None:
        self.cut = True

    def send(self, method: str, path: str, body: bytes | None, headers: Mapping[str, str]) -> Response:
        if self.cut:
            raise NotReachedError("connection refused")
        return Response(200, b"")


def told(caplog: pytest.LogCaptureFixture) -> list[tuple[str, str]]:
    return [(record.levelname, record.message) for record in caplog.records if record.levelno > logging.DEBUG]


def test_an_outage_is_told_once_and_so_is_its_end(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    line = Line()
    transport = PatientTransport(line, attempts=2, first_pause=0.0)
    for _ in range(3):
        with pytest.raises(PlacementUnavailableError):
            transport.send("GET", "/x", None, {})
    assert told(caplog) == [("WARNING", "Placement does not answer GET /x: connection refused")]
    line.cut = False
    for _ in range(2):
        transport.send("GET", "/x", None, {})
    assert told(caplog)[1:] == [("INFO", "Placement answers again")]
    line.cut = True
    with pytest.raises(PlacementUnavailableError):
        transport.send("GET", "/x", None, {})
    assert len(told(caplog)) == 3


def test_who_has_no_patience_tells_by_itself(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    with pytest.raises(PlacementUnavailableError, match="connection refused"):
        PatientTransport(Line(), attempts=1).send("GET", "/x", None, {})
    assert told(caplog) == []
