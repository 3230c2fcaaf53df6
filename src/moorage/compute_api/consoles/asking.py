"""Asking the agent of a server, within a request; what it can't answer becomes the API's refusals."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Any

from moorage.bus.contract import Answer, NoAnswerError, Question, QuestionKind, Refusal
from moorage.compute.errors import UnavailableError
from moorage.compute.hosts import host_status, node_capabilities
from moorage.compute.servers import lost_machines
from moorage.compute.servers.server import Server
from moorage.compute.servers.server_errors import ServerNotReady, ServiceUnavailable
from moorage.compute.servers.states import VmState
from moorage.compute_api.service import ComputeService
from moorage.drivers.capabilities import Capabilities
from moorage.http import concurrency
from moorage.http.call import Call
from moorage.http.errors import HttpError

LOG = logging.getLogger(__name__)

_ABILITIES: Mapping[QuestionKind, str] = {
    QuestionKind.CONSOLE_LOG: "console_log",
    QuestionKind.DIAGNOSTICS: "diagnose",
    QuestionKind.CONSOLE: "remote_console",
    QuestionKind.TOPOLOGY: "place",
    QuestionKind.CHANGE_PASSWORD: "change_password",
}
"""The capability that a node needs for each."""
_ASKABLE = (host_status.UP, host_status.MAINTENANCE)


def unsupported() -> HttpError:
    """As the reference says it of a driver that can't."""
    return HttpError(501, "The requested functionality is not supported.")


def ask(
    service: ComputeService,
    call: Call,
    server: Server,
    kind: QuestionKind,
    payload: Mapping[str, Any] | None = None,
) -> Answer:
    """An answer, or one that was refused because of the server; no transaction is open meanwhile."""
    host, node_uuid = _askable(service, server, kind)
    question = Question(server.uuid, node_uuid, kind, dict(payload or {}))
    try:
        with concurrency.waiting(call.request.env):
            answer = service.agents.ask(host, question, service.settings.question_timeout)
    except NoAnswerError as error:
        LOG.warning("%s of server %s: %s", kind, server.uuid, error)
        raise UnavailableError("The host of the server does not answer. Try again later.") from error
    if answer.refusal is Refusal.UNSUPPORTED:
        raise unsupported()
    if answer.refusal is Refusal.ELSEWHERE:
        raise ServiceUnavailable
    if answer.refusal is Refusal.BUSY:
        raise UnavailableError("The host of the server is asked too much at once. Try again later.")
    if answer.refusal is not None:
        LOG.info("%s of server %s: %s", kind, server.uuid, answer.error)
    return answer


def require_host(server: Server) -> None:
    """There is somebody to ask."""
    if server.host is None or server.vm_state == VmState.BUILDING:
        raise ServerNotReady(server.uuid)
    lost_machines.require_machine(server)


def _askable(service: ComputeService, server: Server, kind: QuestionKind) -> tuple[str, str]:
    """Whom to ask about which node, if that host can tell and is alive."""
    require_host(server)
    assert server.host is not None
    node_uuid = server.node_uuid or ""
    with service.database.read() as connection:
        can: Capabilities = node_capabilities.of_node(connection, node_uuid)
        if not getattr(can, _ABILITIES[kind]):
            raise unsupported()
        statuses = host_status.of_hosts(connection, [server.host], service.settings.service_down_time)
    if statuses[server.host] not in _ASKABLE:
        raise ServiceUnavailable
    return server.host, node_uuid
