"""`/os-keypairs`: public keys of users."""

from __future__ import annotations

from typing import Any

from sqlalchemy.engine import Connection

from moorage.compute.keypairs import keypairs, keys
from moorage.compute.keypairs.keypairs import Keypair
from moorage.compute.quotas.limits import in_force
from moorage.compute_api import links
from moorage.compute_api.microversions import Microversion
from moorage.compute_api.service import ComputeService
from moorage.compute_api.times import plain
from moorage.http.call import Call
from moorage.http.policy import Target
from moorage.http.reply import Reply, empty

OWNER = "rule:context_is_admin or user_id:%(user_id)s"


def _user(call: Call) -> str:
    """Whose keys: the caller's, or from 2.10 on those of a user that the query names."""
    named = call.query.get("user_id") if call.version >= Microversion.KEYPAIRS_OF_OTHER_USERS else None
    return named or call.caller.user_id or ""


def owner(call: Call) -> Target:
    """Keys belong to a user, and to no project."""
    return {"user_id": _user(call)}


def index(service: ComputeService, call: Call) -> Reply:
    """List a user's key pairs."""
    call.checked_query()
    pages = call.version >= Microversion.PAGES_OF_KEYPAIRS
    page = links.page(call, service.settings.max_limit) if pages else links.PageRequest(None, None)
    with service.database.read() as connection:
        found = keypairs.listed(connection, _user(call), page.marker, page.limit)
    body: dict[str, Any] = {"keypairs": [{"keypair": _brief(call, keypair)} for keypair in found]}
    more = links.next_page(call, "os-keypairs", [keypair.name for keypair in found], page.limit)
    if more:
        body["keypairs_links"] = more
    return Reply(body=body)


def show(service: ComputeService, call: Call) -> Reply:
    """Show a key pair."""
    call.checked_query()
    with service.database.read() as connection:
        keypair = keypairs.find(connection, _user(call), call.params["name"])
    body = {
        **_brief(call, keypair),
        "user_id": keypair.user_id,
        "id": keypair.id,
        "created_at": plain(keypair.created_at),
        "updated_at": None,
        "deleted": False,
        "deleted_at": None,
    }
    return Reply(body={"keypair": body})


def create(service: ComputeService, call: Call) -> Reply:
    """Import a public key, or before 2.92 have a pair made."""
    asked = call.json()["keypair"]
    user_id = asked.get("user_id") or call.caller.user_id or ""
    call.admit({"user_id": user_id})
    kind = asked.get("type", keys.SSH)
    made = None
    if "public_key" in asked:
        public_key = asked["public_key"]
    else:
        made = keys.generate(kind, user_id)
        public_key = made.public_key
    fingerprint = keys.fingerprint(kind, public_key)

    project_id, caller_id = call.caller.project_id or "", call.caller.user_id or ""
    service.limits.fetch(project_id)

    def add(connection: Connection) -> Keypair:
        limits = in_force(service.limits, connection, project_id, caller_id)
        return keypairs.add(connection, user_id, asked["name"].strip(), kind, public_key, fingerprint, limits)

    keypair = service.database.transact(add)
    body = {**_brief(call, keypair), "user_id": keypair.user_id}
    if made is not None:
        body["private_key"] = made.private_key
    return Reply(201 if call.version >= Microversion.KEYPAIR_TYPES else 200, {"keypair": body})


def delete(service: ComputeService, call: Call) -> Reply:
    """Delete a key pair."""
    call.checked_query()
    service.database.transact(
        lambda connection: keypairs.delete(connection, _user(call), call.params["name"])
    )
    return empty(204 if call.version >= Microversion.KEYPAIR_TYPES else 202)


def _brief(call: Call, keypair: Keypair) -> dict[str, Any]:
    body = {
        "name": keypair.name,
        "public_key": keypair.public_key,
        "fingerprint": keypair.fingerprint,
    }
    return {**body, "type": keypair.type} if call.version >= Microversion.KEYPAIR_TYPES else body
