"""`/os-services`: the processes of the cloud, and whether they take work."""

from __future__ import annotations

import logging
from typing import Any

from oslo_utils.uuidutils import is_uuid_like
from sqlalchemy.engine import Connection

from moorage.compute.aggregates import aggregates, outbox
from moorage.compute.aggregates.zones import Zones
from moorage.compute.hosts import backlog, services, status_mirror
from moorage.compute.hosts.backlog import BacklogKind
from moorage.compute.hosts.services import Service
from moorage.compute_api.microversions import Microversion
from moorage.compute_api.schema_types import as_boolean
from moorage.compute_api.service import ComputeService
from moorage.compute_api.times import plain
from moorage.core.numbers import row_number
from moorage.http.call import Call
from moorage.http.errors import HttpError
from moorage.http.reply import Reply, no_content
from moorage.placement.client.contract import PlacementRefusedError, PlacementUnavailableError

LOG = logging.getLogger(__name__)


def index(service: ComputeService, call: Call) -> Reply:
    """List services."""
    query = call.checked_query()
    with service.database.read() as connection:
        found = services.listed(connection, host=query.get("host"), binary=query.get("binary"))
        zones = service.zones()
    return Reply(body={"services": [_body(service, call, one, zones) for one in found]})


def update(service: ComputeService, call: Call) -> Reply:
    """Enable or disable a service, or say that it is down."""
    if call.version >= Microversion.HOSTS_BY_UUID:
        return _update(service, call)
    return _act(service, call)


def _update(service: ComputeService, call: Call) -> Reply:
    uuid = call.params["service_id"]
    if not is_uuid_like(uuid):
        raise HttpError(400, f"Invalid uuid {uuid}")
    values = _values(call.json())

    def change(connection: Connection) -> tuple[Service, Zones]:
        changed = _change(connection, services.find(connection, uuid), values)
        return changed, service.zones()

    changed, zones = service.database.transact(change)
    _follow(service, changed, values)
    return Reply(body={"service": _body(service, call, changed, zones)})


def _change(connection: Connection, found: Service, values: dict[str, Any]) -> Service:
    changed = services.update(connection, found, **values)
    if "disabled" in values:
        status_mirror.note(connection, changed.host)
    return changed


def _follow(service: ComputeService, changed: Service, values: dict[str, Any]) -> None:
    """Placement knows it when the request is answered, so that the host gets servers, or none, at once."""
    if "disabled" in values:
        service.statuses.follow(changed.host)


def switch(service: ComputeService, host: str, *, disabled: bool) -> None:
    """Have a host take servers, or no more."""
    values = {"disabled": disabled, "disabled_reason": None}

    def change(connection: Connection) -> Service:
        return _change(connection, services.find_agent(connection, host), values)

    _follow(service, service.database.transact(change), values)


def _values(asked: dict[str, Any]) -> dict[str, Any]:
    values: dict[str, Any] = {}
    if asked.get("status") == "enabled":
        if asked.get("disabled_reason"):
            raise HttpError(400, "Specifying 'disabled_reason' with status 'enabled' is invalid.")
        values = {"disabled": False, "disabled_reason": None}
    elif asked.get("status") == "disabled":
        values = {"disabled": True, "disabled_reason": asked.get("disabled_reason")}
    if "forced_down" in asked:
        values["forced_down"] = as_boolean(asked["forced_down"])
    if not values:
        raise HttpError(
            400, "No updates were requested. Fields 'status' or 'forced_down' should be specified."
        )
    return values


def _act(service: ComputeService, call: Call) -> Reply:
    """Before 2.53 the path names an action, and the body the service."""
    action, asked = call.params["service_id"], call.json()
    values, shown = _action(action, asked, call)
    host, binary = asked["host"], asked["binary"]
    services.require_agent(binary)

    def change(connection: Connection) -> Service:
        return _change(connection, services.find_by_host(connection, host, binary), values)

    _follow(service, service.database.transact(change), values)
    return Reply(body={"service": {"host": host, "binary": binary, **shown}})


def _action(action: str, asked: dict[str, Any], call: Call) -> tuple[dict[str, Any], dict[str, Any]]:
    """What the action sets, and what of it the answer shows."""
    if action == "enable":
        return {"disabled": False, "disabled_reason": None}, {"status": "enabled"}
    if action == "disable":
        return {"disabled": True, "disabled_reason": None}, {"status": "disabled"}
    if action == "disable-log-reason":
        if "disabled_reason" not in asked:
            raise HttpError(400, "Missing disabled reason field")
        reason = {"disabled_reason": asked["disabled_reason"]}
        return {"disabled": True, **reason}, {"status": "disabled", **reason}
    if action == "force-down" and call.version >= Microversion.SERVICES_FORCED_DOWN:
        if "forced_down" not in asked:
            raise HttpError(400, "Missing forced_down field")
        forced = {"forced_down": as_boolean(asked["forced_down"])}
        return forced, forced
    raise HttpError(404, "Unknown action")


def delete(service: ComputeService, call: Call) -> Reply:
    """Forget a service that is gone for good.

    Providers go before records: an agent that lives after all is told to say everything again as soon as its
    record is missing, and nothing may take away what it says then.
    """
    identity = _identity(call)
    with service.database.read() as connection:
        found = services.find(connection, identity)
        services.require_deletable(connection, found)
        node_uuids = services.nodes_of(connection, found)
    staying = _remove_providers(service, node_uuids)

    def forget(connection: Connection) -> None:
        left = services.delete(connection, services.find(connection, identity))
        for node_uuid, error in staying.items():
            backlog.add(connection, BacklogKind.PROVIDER, [node_uuid], backlog.FIRST_PAUSE, error)
        if found.binary == services.AGENT:
            aggregates.forget_host(connection, found.host)
            outbox.mark(connection, left)  # a provider that stays leaves its aggregates

    service.database.transact(forget)
    return no_content()


def _remove_providers(service: ComputeService, node_uuids: list[str]) -> dict[str, str]:
    """Those that stay for now, with the reason; conductors try again."""
    staying: dict[str, str] = {}
    for number, node_uuid in enumerate(node_uuids):
        try:
            service.placement.delete_provider(node_uuid)
        except PlacementRefusedError as error:
            staying[node_uuid] = str(error)
        except PlacementUnavailableError as error:  # nobody waits for it once more for each of the others
            staying |= dict.fromkeys(node_uuids[number:], str(error))
            break
    for node_uuid, reason in staying.items():
        LOG.warning("the provider of node %s stays, and is tried again: %s", node_uuid, reason)
    return staying


def _identity(call: Call) -> str | int:
    given = call.params["service_id"]
    if call.version >= Microversion.HOSTS_BY_UUID:
        if not is_uuid_like(given):
            raise HttpError(400, f"Invalid uuid {given}")
        return given
    number = row_number(given)
    if number is None:
        raise HttpError(400, f"id must be an integer, not {given}")
    return number


def _body(compute: ComputeService, call: Call, service: Service, zones: Zones) -> dict[str, Any]:
    body = {
        "id": service.uuid if call.version >= Microversion.HOSTS_BY_UUID else service.id,
        "binary": service.binary,
        "host": service.host,
        "zone": zones.of(service),
        "status": "disabled" if service.disabled else "enabled",
        "state": "up" if service.is_up(compute.settings.service_down_time) else "down",
        "updated_at": plain(service.seen_at or service.updated_at),
        "disabled_reason": service.disabled_reason,
    }
    if call.version >= Microversion.SERVICES_FORCED_DOWN:
        body["forced_down"] = service.forced_down
    return body
