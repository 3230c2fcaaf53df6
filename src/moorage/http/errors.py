"""Errors as the OpenStack API guidelines want them told."""

from __future__ import annotations

import html
from collections.abc import Mapping
from typing import Any

_EXPLANATIONS = {
    400: "The server could not comply with the request since it is either malformed or otherwise incorrect.",
    401: "This server could not verify that you are authorized to access the document you requested.",
    403: "Access was denied to this resource.",
    404: "The resource could not be found.",
    405: "The method specified is not allowed for this resource.",
    406: "The resource could not be generated that was acceptable to your browser (content type).",
    409: "There was a conflict when trying to complete your request.",
    413: "The request body is too large for this server.",
    415: "The request media type is not supported by this server.",
    500: "The server has either erred or is incapable of performing the requested operation.",
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
    413: "Content Too Large",
    415: "Unsupported Media Type",
    500: "Internal Server Error",
    503: "Service Unavailable",
}

UNDEFINED_CODE = "placement.undefined_code"


class HttpError(Exception):
    """An answer that refuses: raised anywhere below a handler, told to the client as it stands."""

    def __init__(
        self,
        status: int,
        detail: str = "",
        *,
        code: str = UNDEFINED_CODE,
        headers: Mapping[str, str] | None = None,
        extra: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(detail)
        self.status = status
        self.detail = detail
        self.code = code
        self.headers = dict(headers or {})
        self.extra = dict(extra or {})

    def body(self, *, with_code: bool, request_id: str | None) -> dict[str, Any]:
        error: dict[str, Any] = {
            "status": self.status,
            "title": TITLES[self.status],
            "detail": self.sentence(),
            **self.extra,
        }
        if with_code:
            error["code"] = self.code
        if request_id:
            error["request_id"] = request_id
        return {"errors": [error]}

    def sentence(self) -> str:
        """What happened in general, then in particular: two paragraphs, as WebOb-based services send them."""
        return f"{_EXPLANATIONS[self.status]}\n\n{self.detail}\n\n"

    def html(self) -> str:
        title = f"{self.status} {TITLES[self.status]}"
        return (
            f"<html>\n <head>\n  <title>{title}</title>\n </head>\n <body>\n  <h1>{title}</h1>\n"
            f"  {html.escape(self.sentence())}\n </body>\n</html>"
        )

    def plain(self) -> str:
        return f"{self.status} {TITLES[self.status]}\n\n{self.sentence()}"
