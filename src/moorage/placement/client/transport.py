"""How requests get to a Placement service: over a plain session or a Keystone adapter, with patience."""

from __future__ import annotations

import logging
import random
import time
from collections.abc import Mapping
from typing import NamedTuple, Protocol

import requests
from keystoneauth1 import exceptions as keystone_errors
from keystoneauth1.adapter import Adapter
from prometheus_client import Counter

from moorage.core import context
from moorage.core.outage import Outage
from moorage.placement.client.contract import PlacementDeniedError, PlacementUnavailableError

LOG = logging.getLogger(__name__)
RETRIES = Counter("moorage_placement_client_retries_total", "Requests to Placement that were sent again.")

ATTEMPTS = 4
FIRST_PAUSE = 0.2
"""Seconds before the second attempt; each next pause is twice as long."""
TIMEOUT = 60.0


_DENIALS = (
    keystone_errors.AuthPluginException,
    keystone_errors.BadRequest,
    keystone_errors.CatalogException,
    keystone_errors.Forbidden,
    keystone_errors.NotFound,
    keystone_errors.Unauthorized,
)
"""What a Keystone that is there says to credentials, or to a wish, that are wrong."""


class NotReachedError(Exception):
    """No answer came, or only a part of one."""


class Response(NamedTuple):
    status: int
    body: bytes
    repeated: bool = False
    """Sent more than once: an earlier one may have come true though its answer was lost."""


class Transport(Protocol):
    def send(self, method: str, path: str, body: bytes | None, headers: Mapping[str, str]) -> Response:
        """One request, one answer, whatever its status.

        Raises `NotReachedError`, which another try may mend, or `PlacementUnavailableError`.
        """


class SessionTransport:
    """To a known address, with whatever authentication the session has."""

    def __init__(self, session: requests.Session, endpoint: str, timeout: float = TIMEOUT) -> None:
        self._session = session
        self._endpoint = endpoint.rstrip("/")
        self._timeout = timeout

    def send(self, method: str, path: str, body: bytes | None, headers: Mapping[str, str]) -> Response:
        try:
            reply = self._session.request(
                method, self._endpoint + path, data=body, headers=dict(headers), timeout=self._timeout
            )
        except requests.RequestException as error:
            raise NotReachedError(str(error)) from error
        return Response(reply.status_code, reply.content)


class AdapterTransport:
    """To the service that Keystone's catalogue names."""

    def __init__(self, adapter: Adapter, timeout: float = TIMEOUT) -> None:
        self._adapter = adapter
        self._timeout = timeout

    def send(self, method: str, path: str, body: bytes | None, headers: Mapping[str, str]) -> Response:
        try:
            reply = self._adapter.request(
                path,
                method,
                data=body,
                headers=dict(headers),
                raise_exc=False,
                timeout=self._timeout,
                connect_retries=0,
            )
        except _DENIALS as error:
            raise PlacementDeniedError(f"Keystone gives no access to Placement: {error}") from error
        except keystone_errors.ClientException as error:
            raise NotReachedError(str(error)) from error
        return Response(reply.status_code, reply.content)


class PatientTransport:
    """Sends again, a few times and ever more slowly, while the service is away or fails."""

    def __init__(
        self, transport: Transport, attempts: int = ATTEMPTS, first_pause: float = FIRST_PAUSE
    ) -> None:
        self._transport = transport
        self._attempts = attempts
        self._first_pause = first_pause
        self._outage = Outage()

    def send(self, method: str, path: str, body: bytes | None, headers: Mapping[str, str]) -> Response:
        """An answer below 500; raises `PlacementUnavailableError` when patience is at its end."""
        problem = ""
        headers = {**context.request_headers(), **headers}
        for attempt in range(self._attempts):
            if attempt:
                RETRIES.inc()
                time.sleep(self._first_pause * 2 ** (attempt - 1) * random.uniform(0.8, 1.2))
            try:
                answer = self._transport.send(method, path, body, headers)
            except NotReachedError as error:
                problem = str(error)
            else:
                if answer.status < 500:
                    if self._outage.ends():
                        LOG.info("Placement answers again")
                    return answer._replace(repeated=attempt > 0)
                problem = f"status {answer.status}"
            self._tell(method, path, problem)
        raise PlacementUnavailableError(f"Placement does not answer {method} {path}: {problem}")

    def _tell(self, method: str, path: str, problem: str) -> None:
        """Once for each outage, however long and however many ask; who has no patience tells by itself."""
        first = self._attempts > 1 and self._outage.begins()
        level = logging.WARNING if first else logging.DEBUG
        LOG.log(level, "Placement does not answer %s %s: %s", method, path, problem)
