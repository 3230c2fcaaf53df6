"""One request, as a handler sees it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from urllib.parse import parse_qsl

import falcon

from moorage.core.microversions import Version
from moorage.core.nul import NUL, REFUSAL
from moorage.http import concurrency
from moorage.http.caller import Caller
from moorage.http.errors import JSON, BodyTooLarge, HttpError
from moorage.http.policy import Authorizer, Target
from moorage.http.schema import AnySchema

LONGEST_QUERY = 128 * 1024
"""Room for thousands of UUIDs; what a server takes as a whole, with all headers, is a little more."""


class Query:
    """The query string: repeated parameters kept in order, the last one winning where one is wanted."""

    def __init__(self, text: str) -> None:
        if len(text) > LONGEST_QUERY:
            raise HttpError(414, f"The query string has {len(text)} bytes; {LONGEST_QUERY} are taken.")
        try:
            self.pairs = parse_qsl(text, keep_blank_values=True, errors="strict")
        except (UnicodeDecodeError, ValueError) as error:
            raise HttpError(400, f"Invalid query string parameters: {error}") from error
        if any(NUL in name or NUL in value for name, value in self.pairs):
            raise HttpError(400, REFUSAL)
        self.last = dict(self.pairs)

    def get(self, name: str) -> str | None:
        return self.last.get(name)

    def all(self, name: str) -> list[str]:
        return [value for key, value in self.pairs if key == name]

    def overruled(self) -> list[tuple[str, str]]:
        """Values of parameters that are given again later; each once."""
        left = dict(self.last)
        found = [(name, value) for name, value in reversed(self.pairs) if left.pop(name, None) is None]
        return list(dict.fromkeys(found))

    def __contains__(self, name: str) -> bool:
        return name in self.last


class Call:
    __slots__ = (
        "_admitted",
        "_authorizer",
        "_body_schema",
        "_every_value",
        "_longest_body",
        "_query",
        "_query_schema",
        "_rule",
        "caller",
        "params",
        "request",
        "version",
    )

    def __init__(
        self,
        request: falcon.Request,
        params: dict[str, str],
        authorizer: Authorizer,
        body_schema: AnySchema | None = None,
        query_schema: AnySchema | None = None,
        longest_body: int = 0,
        *,
        every_value: bool = False,
    ) -> None:
        self.request = request
        self.params = params
        self.version: Version = request.context.version
        self.caller = Caller.from_environ(request.env)
        self._authorizer = authorizer
        self._body_schema = body_schema
        self._query_schema = query_schema
        self._longest_body = longest_body
        self._every_value = every_value
        self._query: Query | None = None
        self._rule: str | None = None
        self._admitted = False

    @property
    def query(self) -> Query:
        if self._query is None:
            self._query = Query(self.request.query_string)
        return self._query

    def expect(self, rule: str) -> None:
        """This rule holds for the request; whose thing it is about has yet to be found out."""
        self._rule = rule

    def admit(self, owner: Target) -> None:
        """Whose thing it is, is known: a 403 unless the caller may do to it what the request asks for."""
        self._admitted = True
        if self._rule is not None:
            self._authorizer.check(self._rule, self.caller, owner)

    def require_admitted(self) -> None:
        """No answer leaves the service that its rule was not asked about."""
        if self._rule is not None and not self._admitted:
            raise RuntimeError(f"{self._rule} was never checked: the handler told nobody whose thing it is")

    def authorize(self, rule: str, target: Target) -> None:
        """For a further rule, which depends on what the handler found: a 403 unless the caller passes."""
        self._authorizer.check(rule, self.caller, target)

    def allows(self, rule: str, target: Target) -> bool:
        """Whether the caller passes a rule that only decides how much is shown."""
        return self._authorizer.allows(rule, self.caller, target)

    def require_json(self) -> None:
        given = (self.request.content_type or "None").split(";")[0].strip()
        if given != JSON:
            raise HttpError(415, f"The media type {given} is not supported, use {JSON}")

    def body(self) -> bytes:
        """Read after the caller was let in, so that strangers can't make us read."""
        length, most = self.request.content_length, self._longest_body
        if length is None and self.request.env.get("wsgi.input_terminated"):  # it comes in chunks
            with concurrency.waiting(self.request.env):
                data = self.request.stream.read(most + 1)
            length = len(data)
        elif length is None or length <= most:
            with concurrency.waiting(self.request.env):
                data = self.request.bounded_stream.read()
        else:
            data = b""
        if length is not None and length > most:
            raise BodyTooLarge(most)
        return data

    def stream(self) -> tuple[Callable[[int], bytes], int | None]:
        """For a body of any length: what reads up to so many bytes of it, and its length if it is known."""
        length = left = self.request.content_length
        if length is None and not self.request.env.get("wsgi.input_terminated"):
            raise HttpError(411, "The length of the body is needed.")

        def read(most: int) -> bytes:
            nonlocal left
            try:
                data: bytes = self.request.stream.read(most if left is None else min(most, left))
            except OSError as error:
                raise HttpError(400, "The body broke off.") from error
            left = None if left is None else left - len(data)
            return data

        return read, length

    def json(self) -> Any:
        """The body, decoded and checked against the route's schema at this version."""
        assert self._body_schema is not None, "the route names no schema for its body"
        return self._body_schema.at(self.version).load(self.body())

    def checked_query(self) -> Query:
        """The query string, after a look whether the route takes these parameters at this version."""
        assert self._query_schema is not None, "the route names no schema for its query string"
        schema, last = self._query_schema.at(self.version), self.query.last
        schema.check_query(last)
        if self._every_value:
            for name, value in self.query.overruled():
                if name in schema.single:
                    raise HttpError(400, f"Invalid query parameter: {name} may be given once.")
                schema.check_query({**last, name: value})
        return self.query

    def url(self, path: str) -> str:
        """`path` below the point where the service is mounted."""
        return f"{self.request.root_path}{path}"

    def location(self, path: str) -> dict[str, str]:
        """The header that says where a new thing is: an absolute URL."""
        return {"location": f"{self.request.prefix}{path}"}
