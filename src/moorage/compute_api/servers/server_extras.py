"""What is small below `/servers/{id}`: addresses, volumes and shares, of which there are none, the trace."""

from __future__ import annotations

from moorage.compute.errors import NotFoundError
from moorage.compute.servers import traces
from moorage.compute_api import times
from moorage.compute_api.servers.server_views import plain_addresses
from moorage.compute_api.servers.servers import find
from moorage.compute_api.service import ComputeService
from moorage.http.call import Call
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
    call.checked_query()
    with service.database.read() as connection:
        find(connection, call)
    return Reply(body={"volumeAttachments": []})


def shares(service: ComputeService, call: Call) -> Reply:
    """List a server's file shares: this cloud has none."""
    with service.database.read() as connection:
        find(connection, call)
    return Reply(body={"shares": []})


def share(service: ComputeService, call: Call) -> Reply:
    """Show a file share of a server."""
    raise _no_share(service, call, call.params["share_id"])


def attach_share(service: ComputeService, call: Call) -> Reply:
    """Attach a file share to a server."""
    raise _no_share(service, call, call.json()["share"]["share_id"])


def detach_share(service: ComputeService, call: Call) -> Reply:
    """Detach a file share from a server."""
    raise _no_share(service, call, call.params["share_id"])


def _no_share(service: ComputeService, call: Call, share_id: str) -> NotFoundError:
    with service.database.read() as connection:
        find(connection, call)
    return NotFoundError(f"Share {share_id} could not be found.")


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
