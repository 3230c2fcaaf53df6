"""A Falcon application made from a table of routes."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from email.utils import format_datetime
from functools import lru_cache
from typing import Any, Generic, TypeVar

import falcon
import sqlalchemy as sa
from falcon.routing import CompiledRouter

from moorage.core import context
from moorage.core.microversions import Version
from moorage.core.nul import NUL
from moorage.core.numbers import whole
from moorage.http.call import Call
from moorage.http.errors import JSON, ErrorStyle, HttpError
from moorage.http.policy import Authorizer
from moorage.http.reply import Reply
from moorage.http.route import ROUTE, Endpoint, Route
from moorage.http.version import VersionRange

LOG = logging.getLogger(__name__)
S = TypeVar("S")


class Application(Generic[S]):
    """Serves `routes` with `service`; `caching_since` is the version that brought `last-modified`.

    `style` words refusals; `longest_body` is what a body may have in bytes; `translations` says how errors of
    the domain, which knows no HTTP, are answered.
    """

    def __init__(
        self,
        service: S,
        routes: tuple[Route[S], ...],
        versions: VersionRange,
        authorizer: Authorizer,
        *,
        style: ErrorStyle,
        longest_body: int,
        caching_since: Version | None = None,
        translations: Mapping[type[Exception], Callable[[Any], HttpError]] | None = None,
        lenient: bool = False,
    ) -> None:
        """A `lenient` API reads JSON whatever its type is said to be, and doesn't tell methods from paths: as
        the reference's Compute API."""
        self._service = service
        self._versions = versions
        self._authorizer = authorizer
        self._style = style
        self._longest_body = longest_body
        self._caching_since = caching_since
        self._lenient = lenient
        self.wsgi: falcon.App[falcon.Request, falcon.Response] = falcon.App(
            middleware=[_Entry(self), _Versioning(versions, lenient=lenient)],
            router=_router(routes, lenient=lenient),
        )
        self.wsgi.resp_options.default_media_type = None  # type: ignore[assignment]
        self.wsgi.add_error_handler(HttpError, self._refuse)
        self.wsgi.add_error_handler(falcon.HTTPError, self._refuse_falcon)
        self.wsgi.add_error_handler(Exception, self._fail)
        for kind, translate in (translations or {}).items():
            self.wsgi.add_error_handler(kind, self._translating(translate))

    def serve(
        self,
        path: str,
        endpoint: Endpoint[S],
        request: falcon.Request,
        response: falcon.Response,
        params: dict[str, str],
    ) -> None:
        """Answer a request that has come to an endpoint of the path."""
        request.env[ROUTE] = path
        call = Call(
            request,
            params,
            self._authorizer,
            endpoint.body,
            endpoint.query,
            self._longest_body,
            every_value=endpoint.every_value,
        )
        context.learn(project_id=call.caller.project_id or "", user_id=call.caller.user_id or "")
        self._admit(endpoint, call)
        reply = endpoint.handler(self._service, call)
        call.require_admitted()
        self._send(reply, call.version, response)

    def _admit(self, endpoint: Endpoint[S], call: Call) -> None:
        if "" in call.params.values():  # a slash too many is not the name of anything
            raise HttpError(404)
        if call.version < endpoint.since:
            raise HttpError(endpoint.before_that)
        if endpoint.dropped is not None and call.version >= endpoint.dropped:
            raise HttpError(404)
        if endpoint.reads_json and not self._lenient:
            call.require_json()
        if endpoint.gives_json and not call.request.client_accepts(JSON):
            raise HttpError(406, f"Only {JSON} is provided")
        strict = endpoint.no_query_since
        if strict is not None and call.version >= strict and endpoint.query is None:
            _require_no_query(call)
        if endpoint.policy is not None:
            call.expect(endpoint.policy)
            if endpoint.target is not None:
                call.admit(endpoint.target(call))

    def _send(self, reply: Reply, version: Version, response: falcon.Response) -> None:
        response.status = reply.status
        if reply.body is not None:
            response.data = reply.encoded()
            response.content_type = reply.content_type
        elif reply.stream is not None:
            response.set_stream(reply.stream, reply.length)
            response.content_type = reply.content_type
        since = self._caching_since
        if reply.last_modified is not None and since is not None and version >= since:
            response.set_header("last-modified", format_datetime(reply.last_modified, usegmt=True))
            response.set_header("cache-control", "no-cache")
        for name, value in reply.headers.items():
            response.set_header(name, value)

    def _refuse(
        self, request: falcon.Request, response: falcon.Response, error: HttpError, _params: dict[str, Any]
    ) -> None:
        response.status = error.status
        for name, value in error.headers.items():
            response.set_header(name, value)
        response.content_type, response.data = self._style.render(
            error, request.context.get("version"), context.current().request_id, request.client_accepts
        )

    def _translating(self, translate: Callable[[Any], HttpError]) -> Callable[..., None]:
        def handle(
            request: falcon.Request, response: falcon.Response, error: Exception, params: dict[str, Any]
        ) -> None:
            self._refuse(request, response, translate(error), params)

        return handle

    def _refuse_falcon(
        self,
        request: falcon.Request,
        response: falcon.Response,
        error: falcon.HTTPError,
        params: dict[str, Any],
    ) -> None:
        status = falcon.http_status_to_code(error.status)
        detail = "" if status == 404 else (error.description or error.title or "")
        self._refuse(request, response, HttpError(status, detail), params)

    def _fail(
        self, request: falcon.Request, response: falcon.Response, error: Exception, params: dict[str, Any]
    ) -> None:
        if isinstance(error, sa.exc.OperationalError | sa.exc.InterfaceError | sa.exc.TimeoutError):
            LOG.error("the database did not serve %s %s: %s", request.method, request.path, error)
            late = "The database took too long to answer."
            reason = late if is_overdue(error) else "The database can't be reached."
            refusal = HttpError(503, reason, headers={"retry-after": "1"})
            self._refuse(request, response, refusal, params)
            return
        if isinstance(error, sa.exc.DataError):  # a NUL in a text, a number out of range
            LOG.info("the database refused a value at %s %s: %s", request.method, request.path, error.orig)
            self._refuse(request, response, HttpError(400, "A value can't be stored or compared."), params)
            return
        LOG.exception("unexpected error at %s %s", request.method, request.path)
        self._refuse(request, response, HttpError(500, "An unexpected error; see the log."), params)


@lru_cache(maxsize=16)
def _router(routes: tuple[Route[Any], ...], *, lenient: bool) -> CompiledRouter:
    """It follows from the table alone, and takes longer to make than all else of an application: so those of
    one table share it, and a request says which of them has it."""
    made = CompiledRouter()
    for route in routes:
        made.add_route(route.path, _resource(route, lenient=lenient))
    return made


def _resource(route: Route[Any], *, lenient: bool) -> object:
    resource = _Resource()
    missing = _not_found if lenient else _not_allowed(", ".join(route.methods))
    for method in falcon.HTTP_METHODS:
        endpoint = route.methods.get(method)
        responder = _responder(route.path, endpoint) if endpoint else missing
        setattr(resource, f"on_{method.lower()}", responder)
    return resource


def _responder(path: str, endpoint: Endpoint[Any]) -> Callable[..., None]:
    def respond(request: falcon.Request, response: falcon.Response, **params: str) -> None:
        request.context.application.serve(path, endpoint, request, response, params)

    return respond


class _Resource:
    """Carries the responders of one path for Falcon."""


class _Entry:
    """Tells responders, which applications of one table share, whose request it is."""

    def __init__(self, application: Application[Any]) -> None:
        self._application = application

    def process_request(self, request: falcon.Request, _response: falcon.Response) -> None:
        request.context.application = self._application


class _Versioning:
    """Finds the microversion before anything else, and names it in whatever is answered."""

    def __init__(self, versions: VersionRange, *, lenient: bool) -> None:
        self._versions = versions
        self._lenient = lenient

    def process_request(self, request: falcon.Request, _response: falcon.Response) -> None:
        request.context.version = self._versions.requested(request.get_header)
        if NUL in request.path:
            raise HttpError(404)
        length = request.env.get("CONTENT_LENGTH")
        if not length:
            return
        size = whole(length)
        if size is None:
            raise HttpError(400, "content-length header must be an integer")
        if size > 0 and not request.env.get("CONTENT_TYPE") and not self._lenient:
            raise HttpError(400, "content-type header required when content-length > 0")

    def process_response(
        self, request: falcon.Request, response: falcon.Response, _resource: object, _succeeded: bool
    ) -> None:
        version = request.context.get("version")
        if version is not None:
            for name, value in self._versions.headers(version).items():
                response.set_header(name, value)
                response.append_header("vary", name)


def is_overdue(error: Exception) -> bool:
    """Whether a database, PostgreSQL or SQLite, gave up on a statement because it took too long."""
    orig = getattr(error, "orig", None)
    return (
        getattr(orig, "sqlstate", None) == "57014"
        or getattr(orig, "sqlite_errorname", None) == "SQLITE_INTERRUPT"
    )


def _require_no_query(call: Call) -> None:
    if call.request.method == "GET" and call.query.pairs:
        named = ", ".join(repr(name) for name in call.query.last)
        raise HttpError(400, f"Additional properties are not allowed ({named} unexpected)")


def _not_found(_request: falcon.Request, _response: falcon.Response, **_params: str) -> None:
    raise HttpError(404)


def _not_allowed(allowed: str) -> Callable[..., None]:
    def respond(request: falcon.Request, _response: falcon.Response, **_params: str) -> None:
        detail = f"The method {request.method} is not allowed for this resource."
        raise HttpError(405, detail, headers={"allow": allowed})

    return respond
