"""What is found out about a live migration before it is accepted, for clients that wait for it.

Nothing is claimed, and the hosts themselves are not asked: what the migration comes upon later is told by the
server's actions, as it is to all other clients.
"""

from __future__ import annotations

from sqlalchemy.engine import Connection

from moorage.compute.errors import ComputeError, UnavailableError
from moorage.compute.moves.moves import ActionContext
from moorage.compute.servers import actions, traces
from moorage.compute.servers.actions import Event
from moorage.compute.servers.server_errors import InvalidState, ServerNotReady
from moorage.compute.servers.states import PowerNumber
from moorage.db.database import Database
from moorage.deciding.planner import Planner
from moorage.placement.client.contract import PlacementUnavailableError
from moorage.scheduler.trace import Trace


def require_running(ask: ActionContext) -> None:
    """The server runs, or would if it were not paused, on a host that can send it away."""
    server = ask.server
    if server.host is None or server.node_uuid is None:
        raise ServerNotReady(server.uuid)
    if server.power_state not in (PowerNumber.RUNNING, PowerNumber.PAUSED):
        power = "shutdown" if server.power_state == PowerNumber.SHUT_DOWN else "pending"
        raise InvalidState("os-migrateLive", server.uuid, "power_state", power)
    if not ask.host_is_up(server.host):
        raise ComputeError(f"Compute service of {server.host} is unavailable at this time.")


def require_place(database: Database, planner: Planner, ask: ActionContext, host: str | None) -> None:
    """There is a host for it; if not, the decision is on record, like any other."""
    try:
        planned = planner.plan_move(ask.server, host)
    except PlacementUnavailableError as error:
        raise UnavailableError(f"Placement can't be reached: {error}") from error
    sentence = planned.sentence
    if sentence is None:
        return
    database.transact(lambda connection: _keep(connection, ask, sentence, planned.trace))
    raise ComputeError(sentence)


def _keep(connection: Connection, ask: ActionContext, sentence: str, trace: Trace) -> None:
    event = Event(None, "conductor_schedule_move", error=sentence)
    actions.record(connection, ask.server.id, "live-migration", ask.origin, event)
    traces.keep(connection, ask.server.id, trace)
