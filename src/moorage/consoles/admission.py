"""Whether somebody may open a console, and the way to it."""

from __future__ import annotations

import logging
import socket
from collections.abc import Sequence
from urllib.parse import urlsplit

import msgspec

from moorage.bus.contract import AskingSide, NoAnswerError, Question, QuestionKind
from moorage.compute.consoles import tokens
from moorage.compute.consoles.tokens import ConsoleGrant
from moorage.consoles.settings import ConsoleSettings
from moorage.db.database import Database
from moorage.drivers.parts import ConsoleAddress

LOG = logging.getLogger(__name__)
_LONGEST_GREETING = 4096


class NotAdmittedError(Exception):
    """Told to the log, not to the caller: who guesses tokens learns nothing."""


class ConsoleUnreachableError(Exception):
    """The console itself does not answer."""


class Admission:
    def __init__(self, database: Database, agents: AskingSide, settings: ConsoleSettings) -> None:
        self._database = database
        self._agents = agents
        self._settings = settings

    def admit(self, token: str, origin: str | None, host: str, forwarded_scheme: str | None) -> ConsoleGrant:
        """What a token opens, for a page of `origin` that asked `host` for it."""
        with self._database.read() as connection:
            grant = tokens.find(connection, token) if token else None
        if grant is None:
            raise NotAdmittedError("the token is unknown, has expired, or its server is gone or elsewhere")
        _check_origin(grant, origin, {host, *self._settings.allowed_origins}, forwarded_scheme)
        self._check_address(grant)
        return grant

    def _check_address(self, grant: ConsoleGrant) -> None:
        """The server may have stopped, and its port be another server's by now: only its agent knows."""
        payload = {"type": grant.console_type}
        question = Question(grant.server_uuid, grant.node_uuid, QuestionKind.CONSOLE, payload)
        try:
            answer = self._agents.ask(grant.server_host, question, self._settings.question_timeout)
        except NoAnswerError as error:
            raise ConsoleUnreachableError(str(error)) from error
        if answer.refusal is not None:
            raise NotAdmittedError(f"the server has no such console now: {answer.error}")
        if msgspec.convert(answer.facts, ConsoleAddress) != grant.address:
            raise NotAdmittedError("the console is somewhere else by now")

    def connect(self, address: ConsoleAddress) -> socket.socket:
        """A connection to the console, which speaks as it likes from here on."""
        seconds = self._settings.connect_timeout
        try:
            connected = socket.create_connection((address.host, address.port), seconds)
        except OSError as error:
            raise ConsoleUnreachableError(f"{address.host}:{address.port}: {error}") from error
        try:
            if address.path:
                _ask_for(connected, address.path)
        except (OSError, ConsoleUnreachableError) as error:
            connected.close()
            raise ConsoleUnreachableError(f"{address.host}:{address.port}: {error}") from error
        return connected


def _check_origin(
    grant: ConsoleGrant, origin: str | None, expected: set[str], forwarded_scheme: str | None
) -> None:
    """A page of another site must not use a token that it got hold of. Who is no browser says no origin."""
    if origin is None:
        return
    page = urlsplit(origin)
    if not page.hostname or page.hostname not in expected:
        raise NotAdmittedError(f"pages of {origin!r} may not open consoles")
    scheme = forwarded_scheme or page.scheme
    if scheme != urlsplit(grant.base_url).scheme:
        raise NotAdmittedError(f"a page that came by {scheme!r} may not open consoles")


def _ask_for(connected: socket.socket, path: str) -> None:
    """Consoles behind a web server of their own: it is asked to step aside."""
    connected.sendall(f"CONNECT {path} HTTP/1.1\r\n\r\n".encode())
    told = b""
    while b"\r\n\r\n" not in told:
        if len(told) > _LONGEST_GREETING:
            raise ConsoleUnreachableError("it does not answer as a web server would")
        more = connected.recv(1)  # what follows the greeting is the console's
        if not more:
            raise ConsoleUnreachableError("it hung up")
        told += more
    status: Sequence[bytes] = told.split(b"\r\n", 1)[0].split()
    if len(status) < 2 or status[1] != b"200":
        raise ConsoleUnreachableError(f"it refused: {told[:80]!r}")
