"""`/moorage-adoptions`: a server becomes known that a host has, and the database does not know there."""

from __future__ import annotations

import logging

import msgspec

from moorage.bus.contract import NoAnswerError, Question, QuestionKind, Refusal
from moorage.compute.errors import ConflictError, UnavailableError
from moorage.compute.servers import adoption
from moorage.compute.servers.adoption import AdoptionTerms, SeenServer
from moorage.compute_api import schema_types as types
from moorage.compute_api.servers.servers import origin_of
from moorage.compute_api.service import ComputeService
from moorage.http import concurrency
from moorage.http.call import Call
from moorage.http.errors import HttpError
from moorage.http.reply import Reply
from moorage.http.schema import Schema
from moorage.network.contract import AddressKeeping, NetworkError

LOG = logging.getLogger(__name__)

_UUID = {"type": "string", "format": "uuid"}
CREATE = Schema(
    types.wrapped(
        "adoption",
        types.closed(
            {
                "server_id": _UUID,
                "host": types.HOST,
                "node_id": _UUID,
                "project_id": types.SHORT_TEXT,
                "user_id": types.SHORT_TEXT,
                "name": types.NAME,
                "flavor_id": types.SHORT_TEXT,
            },
            ("server_id", "host"),
        ),
    )
)


def create(service: ComputeService, call: Call) -> Reply:
    """Adopt a server that a host has."""
    asked = call.json()["adoption"]
    terms = AdoptionTerms(
        asked["server_id"],
        asked["host"],
        asked.get("project_id", ""),
        asked.get("user_id", ""),
        asked.get("name", ""),
        asked.get("flavor_id", ""),
        asked.get("node_id", ""),
    )
    seen = _seen(service, call, terms)
    if isinstance(service.network, AddressKeeping):  # an address of no server is given back by an audit
        try:
            service.network.regain(adoption.holding(terms, seen))
        except NetworkError as error:
            raise ConflictError(str(error)) from error
    uuid = service.database.transact(
        lambda connection: adoption.adopt(connection, terms, seen, origin_of(call))
    )
    service.wake()
    LOG.warning("server %s is adopted on host %s", uuid, terms.host)
    return Reply(202, body={"adoption": {"server_id": uuid, "host": terms.host}})


def _seen(service: ComputeService, call: Call, terms: AdoptionTerms) -> SeenServer:
    question = Question(terms.server_uuid, terms.node_uuid, QuestionKind.DESCRIPTION)
    try:
        with concurrency.waiting(call.request.env):
            answer = service.agents.ask(terms.host, question, service.settings.question_timeout)
    except NoAnswerError as error:
        raise UnavailableError(f"Host {terms.host} does not answer: {error}") from error
    if answer.refusal is Refusal.UNSUPPORTED:
        raise HttpError(501, f"The agent of host {terms.host} is too old to say what it has.")
    if answer.refusal is not None:
        raise ConflictError(f"Host {terms.host} does not tell of server {terms.server_uuid}: {answer.error}")
    return msgspec.convert(answer.facts, SeenServer)
