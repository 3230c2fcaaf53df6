"""`/os-console-auth-tokens/{token}`: what a token is good for, for proxies of others."""

from __future__ import annotations

from typing import Any

from moorage.compute.consoles import tokens
from moorage.compute.errors import ComputeError, NotFoundError
from moorage.compute_api.endpoint import own_project
from moorage.compute_api.microversions import Microversion
from moorage.compute_api.service import ComputeService
from moorage.http.call import Call
from moorage.http.errors import HttpError
from moorage.http.reply import Reply


def show(service: ComputeService, call: Call) -> Reply:
    """Show where the console is that a token was given for."""
    if call.version < Microversion.ALL_CONSOLE_TOKENS:  # it was only for a type that is gone
        call.admit(own_project(call))
        raise HttpError(400)
    call.admit(own_project(call))
    call.checked_query()
    token = call.params["token"]
    if not token:
        raise ComputeError("token not provided")
    with service.database.read() as connection:
        grant = tokens.find(connection, token)
    if grant is None:
        raise NotFoundError("Token not found")
    shown: dict[str, Any] = {
        "instance_uuid": grant.server_uuid,
        "host": grant.address.host,
        "port": grant.address.port,
        "internal_access_path": grant.address.path or None,
    }
    if call.version >= Microversion.DIRECT_SPICE_CONSOLES:
        shown["tls_port"] = None
    return Reply(body={"console": shown})
