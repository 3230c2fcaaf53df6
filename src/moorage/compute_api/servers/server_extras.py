"""What is small below `/servers/{id}`: addresses, what this cloud does not have, and the trace."""

from __future__ import annotations

from moorage.compute.errors import NotFoundError
from moorage.compute.servers import traces
from moorage.compute_api import times
from moorage.compute_api.servers.server_views import plain_addresses
from moorage.compute_api.servers.servers import find
from moorage.compute_api.service import ComputeService
from moorage.http.call import Call
from moorage.http.errors import HttpError
from moorage.http.reply import Reply


def addresses(service: ComputeService, call: Call) -> Reply:
    """List a server's addresses."""
    with service.database.read() as connection:
        return Reply(body={"addresses": plain_addresses(find(connection, call))})


def network_addresses(service: ComputeService, call: Call) -> Reply:
    """List a server's addresses on one network."""
    label = call.params["network"]
    with service.database.read() as connection:
        known = plain_addresses(find(connection, call))
    if label not in known:
        raise NotFoundError("Instance is not a member of specified network")
    return Reply(body={label: known[label]})


def volumes(service: ComputeService, call: Call) -> Reply:
    """List a server's volumes: this cloud has none."""
    with service.database.read() as connection:
        find(connection, call)
    return Reply(body={"volumeAttachments": []})


def unsupported(service: ComputeService, call: Call) -> Reply:
    """Ask for what no driver of this cloud can do."""
    with service.database.read() as connection:
        find(connection, call)
    raise HttpError(501, "The requested functionality is not supported.")


def trace(service: ComputeService, call: Call) -> Reply:
    """Explain why a server is where it is: every scheduling decision, the newest last."""
    with service.database.read() as connection:
        server = find(connection, call, deleted=True)
        decisions = traces.of_server(connection, server.id)
    shown = [
        {
            "operation_id": decision.operation_id,
            "operation": decision.operation,
            "attempt": decision.attempt,
            "created_at": times.zulu(decision.created_at),
            "trace": decision.trace,
        }
        for decision in decisions
    ]
    return Reply(body={"server_id": server.uuid, "traces": shown})
