"""Whether somebody may open a console."""

from __future__ import annotations

import logging
from urllib.parse import urlsplit

import msgspec

from moorage.bus.contract import AskingSide, NoAnswerError, Question, QuestionKind
from moorage.compute.consoles import tokens
from moorage.compute.consoles.tokens import ConsoleGrant
from moorage.consoles.errors import ConsoleUnreachableError, NotAdmittedError
from moorage.consoles.settings import ConsoleSettings
from moorage.db.database import Database
from moorage.drivers.parts import ConsoleAddress

LOG = logging.getLogger(__name__)


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
        return msgspec.structs.replace(grant, address=self._present_address(grant))

    def _present_address(self, grant: ConsoleGrant) -> ConsoleAddress:
        """The server may have stopped, and its port be another server's by now: only its agent knows."""
        payload = {"type": grant.console_type}
        question = Question(grant.server_uuid, grant.node_uuid, QuestionKind.CONSOLE, payload)
        try:
            answer = self._agents.ask(grant.server_host, question, self._settings.question_timeout)
        except NoAnswerError as error:
            raise ConsoleUnreachableError(str(error)) from error
        if answer.refusal is not None:
            raise NotAdmittedError(f"the server has no such console now: {answer.error}")
        present = msgspec.convert(answer.facts, ConsoleAddress)
        if _place(present) != _place(grant.address):
            raise NotAdmittedError("the console is somewhere else by now")
        return present


def _place(address: ConsoleAddress) -> tuple[str, int, str]:
    """Without how it speaks, which only its agent knows, and which is written down nowhere."""
    return address.host, address.port, address.path


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
