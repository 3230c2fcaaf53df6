"""The link to one Placement service: what it speaks, and requests at the newest version of both."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import Annotated, Any, TypeVar
from urllib.parse import urlencode

import msgspec

from moorage.core.microversions import Version, text
from moorage.placement.client.contract import (
    MICROVERSION,
    PlacementDeniedError,
    PlacementRefusedError,
    PlacementUnavailableError,
)
from moorage.placement.client.dialect import OLDEST, missing
from moorage.placement.client.transport import PatientTransport, Response
from moorage.placement.errors import NOT_OWN

LOG = logging.getLogger(__name__)
T = TypeVar("T")
AGGREGATES = "moorage-aggregates"
REPORT = "moorage-report"
WHY = "moorage-why"
COUNTERS = "moorage-counters"
"""The names of our own extensions."""
NOT_ACCEPTABLE = 406
DENIALS = (401, 403)


class PlacementTooOldError(PlacementUnavailableError):
    """It will do once it is upgraded."""

    def __init__(self, newest: Version) -> None:
        super().__init__(
            f"Placement speaks no version above {text(newest)}, at least {text(OLDEST)} is needed"
        )


class Link:
    def __init__(self, transport: PatientTransport) -> None:
        self._transport = transport
        self._known: tuple[Version, dict[str, str]] | None = None

    @property
    def version(self) -> Version:
        """The newest microversion that both sides speak."""
        return self._discovered()[0]

    def extension(self, name: str) -> str | None:
        """The path of an extension of ours, if the service has it."""
        return self._discovered()[1].get(name)

    def get(self, path: str, query: Sequence[tuple[str, str]] = ()) -> Response:
        return self.send("GET", f"{path}?{urlencode(query)}" if query else path)

    def send(self, method: str, path: str, body: Any = None) -> Response:
        version = self.version
        headers = {"OpenStack-API-Version": f"placement {text(version)}", "Accept": "application/json"}
        content = None
        if body is not None:
            headers["Content-Type"] = "application/json"
            content = msgspec.json.encode(body)
        answer = self._transport.send(method, path, content, headers)
        if answer.status in DENIALS and _problem(answer).code != NOT_OWN:
            raise PlacementDeniedError(
                f"Placement refuses our credentials with status {answer.status}: {_problem(answer).detail}"
            )
        if answer.status == NOT_ACCEPTABLE:
            # Replaced by an older one. The request was made for this version, so whoever sent it tries again.
            self._known = None
            raise PlacementUnavailableError(f"Placement does not speak version {text(version)} any more")
        return answer

    def _discovered(self) -> tuple[Version, dict[str, str]]:
        """From the version document, which is asked for once and needs no authentication."""
        if self._known is None:
            answer = self._transport.send("GET", "/", None, {"Accept": "application/json"})
            document = decoded(expect(answer, 200), _VersionDocument).versions[0]
            newest = document.newest()
            if newest < OLDEST:
                raise PlacementTooOldError(newest)
            paths = {entry.name: entry.href for entry in document.extensions}
            self._known = (min(MICROVERSION, newest), paths)
            _tell(*self._known)
        return self._known


def _tell(version: Version, paths: dict[str, str]) -> None:
    """One line about all that is different because the service is older than we are, or not ours."""
    lacks = missing(version)
    if REPORT not in paths:
        lacks.append("it has no bulk report, so each provider is reported by itself")
    if WHY not in paths:
        lacks.append("it can't tell why there are no candidates")
    if lacks:
        LOG.warning("Placement speaks version %s: %s", text(version), "; ".join(lacks))


class _Extension(msgspec.Struct):
    name: str
    href: str


class _ApiVersion(msgspec.Struct):
    max_version: Annotated[str, msgspec.Meta(pattern=r"^[0-9]+\.[0-9]+$")]
    extensions: list[_Extension] = []

    def newest(self) -> Version:
        major, minor = self.max_version.split(".")
        return int(major), int(minor)


class _VersionDocument(msgspec.Struct):
    versions: Annotated[list[_ApiVersion], msgspec.Meta(min_length=1)]


class _Problem(msgspec.Struct):
    detail: str = ""
    code: str = ""


class _Problems(msgspec.Struct):
    errors: list[_Problem] = []


CONCURRENT_UPDATE = "placement.concurrent_update"


def expect(answer: Response, *statuses: int) -> bytes:
    """The body of a good answer; anything else is a refusal."""
    if answer.status not in statuses:
        raise refusal(answer)
    return answer.body


def refusal(answer: Response) -> PlacementRefusedError:
    return PlacementRefusedError(answer.status, _problem(answer).detail)


def is_concurrent_update(answer: Response) -> bool:
    """Whether somebody else changed the provider or consumer since we looked."""
    return answer.status == 409 and _problem(answer).code == CONCURRENT_UPDATE


def _problem(answer: Response) -> _Problem:
    try:
        (problem, *_) = msgspec.json.decode(answer.body, type=_Problems).errors
    except (msgspec.MsgspecError, ValueError):
        return _Problem(answer.body.decode(errors="replace")[:500] or f"status {answer.status}")
    return problem


def decoded(body: bytes, kind: type[T]) -> T:
    try:
        return msgspec.json.decode(body, type=kind)
    except msgspec.MsgspecError as error:
        raise PlacementUnavailableError(f"Placement's answer makes no sense: {error}") from error
