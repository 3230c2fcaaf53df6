"""Refusals in the Compute API's style: one key that names the fault, a code and a sentence."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec

from moorage.compute.errors import (
    ComputeError,
    ConflictError,
    ForbiddenError,
    NotFoundError,
    UnavailableError,
)
from moorage.core.microversions import Version
from moorage.http.errors import (
    EXPLANATIONS,
    JSON,
    TITLES,
    BodyTooLarge,
    HttpError,
    Rendered,
    SchemaError,
)

_FAULTS = {
    400: "badRequest",
    401: "unauthorized",
    403: "forbidden",
    404: "itemNotFound",
    405: "badMethod",
    409: "conflictingRequest",
    413: "overLimit",
    414: "requestUriTooLong",
    415: "badMediaType",
    501: "notImplemented",
    503: "serviceUnavailable",
}
_STATUS: tuple[tuple[type[ComputeError], int], ...] = (
    (NotFoundError, 404),
    (ConflictError, 409),
    (ForbiddenError, 403),
    (UnavailableError, 503),
)


class FaultStyle:
    """JSON whatever the client accepts: no client of this API ever got anything else."""

    def render(
        self, error: HttpError, version: Version | None, request_id: str, accepts: Callable[[str], bool]
    ) -> Rendered:
        if isinstance(error, BodyTooLarge):  # said by a layer above the reference's API, in words of its own
            title = TITLES[error.status]
            said = {"message": error.detail, "code": f"{error.status} {title}", "title": title}
            return Rendered(JSON, msgspec.json.encode(said))
        fault: dict[str, Any] = {"code": error.status, "message": _message(error)}
        if error.status == 413 and "retry-after" in error.headers:
            fault["retryAfter"] = error.headers["retry-after"]
        return Rendered(JSON, msgspec.json.encode({_FAULTS.get(error.status, "computeFault"): fault}))


def _message(error: HttpError) -> str:
    if not isinstance(error, SchemaError):
        return error.detail or EXPLANATIONS[error.status]
    if error.field is None:
        return error.reason
    return f"Invalid input for field/attribute {error.field}. Value: {error.value}. {error.reason}"


def answer(error: ComputeError) -> HttpError:
    """The status of an error that the domain raised."""
    status = next((status for kind, status in _STATUS if isinstance(error, kind)), 400)
    return HttpError(status, str(error))


STYLE = FaultStyle()
