"""Refusals, and the styles in which services tell them."""

from __future__ import annotations

import html
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

import msgspec

from moorage.core.microversions import Version

JSON = "application/json"

EXPLANATIONS = {
    400: "The server could not comply with the request since it is either malformed or otherwise incorrect.",
    401: "This server could not verify that you are authorized to access the document you requested.",
    403: "Access was denied to this resource.",
    404: "The resource could not be found.",
    405: "The method specified is not allowed for this resource.",
    406: "The resource could not be generated that was acceptable to your browser (content type).",
    409: "There was a conflict when trying to complete your request.",
    410: "This resource is no longer available. No forwarding address is given.",
    411: "The server needs to know how long the request body is.",
    413: "The request body is too large for this server.",
    414: "The request URI was too long for this server.",
    415: "The request media type is not supported by this server.",
    416: "The requested range is not satisfiable.",
    500: "The server has either erred or is incapable of performing the requested operation.",
    501: "The server does not support the functionality required to fulfill the request.",
    503: "The server is currently unavailable. Please try again at a later time.",
}

TITLES = {
    400: "Bad Request",
    401: "Unauthorized",
    403: "Forbidden",
    404: "Not Found",
    405: "Method Not Allowed",
    406: "Not Acceptable",
    409: "Conflict",
    410: "Gone",
    411: "Length Required",
    413: "Request Entity Too Large",
    414: "Request URI Too Long",
    415: "Unsupported Media Type",
    416: "Range Not Satisfiable",
    500: "Internal Server Error",
    501: "Not Implemented",
    503: "Service Unavailable",
}


class HttpError(Exception):
    """An answer that refuses: raised anywhere below a handler, told to the client as it stands."""

    def __init__(
        self,
        status: int,
        detail: str = "",
        *,
        code: str | None = None,
        headers: Mapping[str, str] | None = None,
        extra: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(detail)
        self.status = status
        self.detail = detail
        self.code = code
        self.headers = dict(headers or {})
        self.extra = dict(extra or {})


class BodyTooLarge(HttpError):
    def __init__(self, most: int) -> None:
        super().__init__(413, f"Request is too large. Larger than max_request_body_size ({most}).")


class SchemaError(HttpError):
    """A body or query string that its schema refuses; `field` is None for the whole of it."""

    def __init__(self, detail: str, field: str | None, value: Any, reason: str) -> None:
        super().__init__(400, detail)
        self.field = field
        self.value = value
        self.reason = reason


class Rendered(NamedTuple):
    content_type: str
    body: bytes


class ErrorStyle(Protocol):
    """How a service words its refusals."""

    def render(
        self, error: HttpError, version: Version | None, request_id: str, accepts: Callable[[str], bool]
    ) -> Rendered:
        """The body; `version` is None if the request's could not be told, `accepts` asks for a media type."""


@dataclass(frozen=True)
class GuidelineStyle:
    """An `errors` document, as the OpenStack API guidelines want it; text for who takes no JSON."""

    undefined_code: str
    codes_since: Version

    def render(
        self, error: HttpError, version: Version | None, request_id: str, accepts: Callable[[str], bool]
    ) -> Rendered:
        if accepts(JSON):
            return Rendered(JSON, msgspec.json.encode({"errors": [self._record(error, version, request_id)]}))
        title = f"{error.status} {TITLES[error.status]}"
        if accepts("text/html"):
            page = (
                f"<html>\n <head>\n  <title>{title}</title>\n </head>\n <body>\n  <h1>{title}</h1>\n"
                f"  {html.escape(_sentence(error))}\n </body>\n</html>"
            )
            return Rendered("text/html; charset=UTF-8", page.encode())
        return Rendered("text/plain; charset=UTF-8", f"{title}\n\n{_sentence(error)}".encode())

    def _record(self, error: HttpError, version: Version | None, request_id: str) -> dict[str, Any]:
        record: dict[str, Any] = {
            "status": error.status,
            "title": TITLES[error.status],
            "detail": _sentence(error),
            **error.extra,
        }
        if version is not None and version >= self.codes_since:
            record["code"] = error.code or self.undefined_code
        if request_id:
            record["request_id"] = request_id
        return record


def _sentence(error: HttpError) -> str:
    """What happened in general, then in particular, laid out as WebOb-based services send it: the official
    client shows the last line alone, so the whole reason has to be on it, however many lines it had."""
    reason = error.detail.replace("\r", "").replace("\n", " ")
    return f"{EXPLANATIONS[error.status]}\n\n {reason}  "
