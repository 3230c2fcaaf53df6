"""The same refusal in the two styles that services have."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from moorage.compute_api.errors import FaultStyle
from moorage.http.errors import ErrorStyle, GuidelineStyle, HttpError, SchemaError

GUIDELINE = GuidelineStyle(undefined_code="none.given", codes_since=(1, 23))


def told(style: ErrorStyle, error: HttpError, version: tuple[int, int] | None = None) -> Any:
    return msgspec.json.decode(style.render(error, version, "req-1", lambda _type: True).body)


def test_guideline_codes_come_with_their_version() -> None:
    (before,) = told(GUIDELINE, HttpError(404, "no such"), (1, 22))["errors"]
    (since,) = told(GUIDELINE, HttpError(404, "no such"), (1, 23))["errors"]
    (own,) = told(GUIDELINE, HttpError(404, "no such", code="mine"), (1, 23))["errors"]
    assert "code" not in before
    assert (since["code"], own["code"]) == ("none.given", "mine")
    assert before["detail"] == "The resource could not be found.\n\n no such  "
    assert before["request_id"] == "req-1"


def test_a_reason_is_on_the_last_line_whole() -> None:
    """The official client shows the last line of a detail, and nothing else."""
    (error,) = told(GUIDELINE, HttpError(400, "a name\r\nwith lines"))["errors"]
    assert error["detail"].split("\n")[-1].strip() == "a name with lines"


@pytest.mark.parametrize(("accepted", "begins"), [("text/html", b"<html>"), ("text/plain", b"404 Not Found")])
def test_guideline_style_speaks_without_json(accepted: str, begins: bytes) -> None:
    rendered = GUIDELINE.render(HttpError(404, "<b>"), None, "", lambda kind: kind == accepted)
    assert rendered.content_type.startswith(accepted)
    assert rendered.body.startswith(begins)
    assert (b"&lt;b&gt;" in rendered.body) == (accepted == "text/html")


@pytest.mark.parametrize(
    ("status", "key"),
    [
        (400, "badRequest"),
        (401, "unauthorized"),
        (403, "forbidden"),
        (404, "itemNotFound"),
        (405, "badMethod"),
        (406, "computeFault"),
        (409, "conflictingRequest"),
        (410, "computeFault"),
        (413, "overLimit"),
        (415, "badMediaType"),
        (500, "computeFault"),
        (501, "notImplemented"),
        (503, "serviceUnavailable"),
    ],
)
def test_faults_by_status(status: int, key: str) -> None:
    assert told(FaultStyle(), HttpError(status, "why")) == {key: {"code": status, "message": "why"}}


def test_a_fault_always_has_a_sentence() -> None:
    assert told(FaultStyle(), HttpError(404))["itemNotFound"]["message"] == "The resource could not be found."


def test_a_fault_names_the_field_that_a_schema_refused() -> None:
    whole = SchemaError("long text", None, {}, "'name' is a required property")
    field = SchemaError("long text", "name", "", "'' is too short")
    assert told(FaultStyle(), whole)["badRequest"]["message"] == "'name' is a required property"
    assert told(FaultStyle(), field)["badRequest"]["message"] == (
        "Invalid input for field/attribute name. Value: . '' is too short"
    )
    assert told(GUIDELINE, field)["errors"][0]["detail"].endswith("\n\n long text  ")
