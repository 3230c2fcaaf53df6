"""The action `rebuild`: what is sent with it, and what it answers."""

from __future__ import annotations

from typing import Any

from moorage.compute.errors import ComputeError, NotFoundError, UnavailableError
from moorage.compute.hosts import host_status
from moorage.compute.keypairs import keypairs
from moorage.compute.servers import labels, rebuilds, servers
from moorage.compute.servers.rebuilds import RebuildRequest
from moorage.compute_api import base64_fields
from moorage.compute_api.endpoint import RULE, owner_of, visible_project
from moorage.compute_api.microversions import Microversion
from moorage.compute_api.moves.move_actions import ask_of
from moorage.compute_api.schema_types import as_boolean
from moorage.compute_api.servers import injected_files, server_body
from moorage.compute_api.servers.action_request import ActionRequest
from moorage.compute_api.servers.passwords import password
from moorage.compute_api.servers.server_views import EXTENDED_USER_DATA, ServerView
from moorage.compute_api.servers.servers import find
from moorage.compute_api.service import ComputeService
from moorage.http.call import Call
from moorage.http.reply import Reply
from moorage.images.contract import Image, ImageNotFoundError, ImagesUnavailableError

TRUSTED_CERTS = f"{RULE}servers:rebuild:trusted_certs"
_COLUMNS = {
    "description": "description",
    "metadata": "metadata",
    "hostname": "hostname",
    "key_name": "key_name",
    "user_data": "user_data",
}


def look_up(service: ComputeService, call: Call, argument: Any) -> Image:
    """The image, which another service may keep: not while a server is held."""
    with service.database.read() as connection:
        find(connection, call)
    try:
        return service.images.find(argument["imageRef"], call.caller.token, visible_project(call))
    except ImageNotFoundError as error:
        raise ComputeError("Cannot find image for rebuild") from error
    except ImagesUnavailableError as error:
        raise UnavailableError("The image service does not answer. Try again later.") from error


def rebuild(asked: ActionRequest) -> Reply:
    given = asked.argument
    if "trusted_image_certificates" in given:
        asked.call.authorize(TRUSTED_CERTS, owner_of(asked.server))
    base64_fields.check("user_data", given.get("user_data"))
    limits = asked.limits()
    labels.require_few(given.get("metadata", {}), limits)
    injected_files.check(given.get("personality", ()), limits)
    preserve_ephemeral = as_boolean(given.get("preserve_ephemeral", False))
    wanted = RebuildRequest(asked.found, _columns(given), _request(asked, given), preserve_ephemeral)
    rebuilds.rebuild(ask_of(asked), wanted)
    return _answer(asked)


def _columns(given: dict[str, Any]) -> dict[str, Any]:
    columns = {column: given[name] for name, column in _COLUMNS.items() if name in given}
    if "name" in given:
        columns["name"] = given["name"].strip()
    for name, column in (("accessIPv4", "access_ip_v4"), ("accessIPv6", "access_ip_v6")):
        if name in given:
            columns[column] = server_body.plain_address(given[name])
    return columns


def _request(asked: ActionRequest, given: dict[str, Any]) -> dict[str, Any]:
    request: dict[str, Any] = {"files": given.get("personality", [])}  # the old ones go with the disk
    if "OS-DCF:diskConfig" in given:
        request["disk_config"] = given["OS-DCF:diskConfig"]
    if "trusted_image_certificates" in given:
        request["trusted_image_certificates"] = given["trusted_image_certificates"]
    if "key_name" in given:
        request["public_key"] = _public_key(asked, given["key_name"])
    return request


def _public_key(asked: ActionRequest, name: str | None) -> str | None:
    if name is None:
        return None
    try:
        return keypairs.find(asked.connection, asked.origin.user_id, name).public_key
    except NotFoundError as error:
        raise ComputeError("Invalid key_name provided.") from error


def _answer(asked: ActionRequest) -> Reply:
    call, connection = asked.call, asked.connection
    server = servers.find(connection, asked.server.uuid)
    view = ServerView(call)
    down_time = asked.service.settings.service_down_time
    statuses = host_status.of_hosts(connection, [server.host], down_time)
    groups = (
        servers.groups_of(connection, server.id) if call.version >= Microversion.GROUPS_IN_SERVER else None
    )
    shown = view.updated(server, statuses, groups)
    shown["adminPass"] = asked.argument.get("adminPass") or password()
    if call.version >= Microversion.KEY_AT_REBUILD:
        shown["key_name"] = server.key_name
    shown.pop(EXTENDED_USER_DATA, None)  # a rebuild has one of its own
    if call.version >= Microversion.USER_DATA_INSTEAD_OF_FILES:
        shown["user_data"] = server.user_data
    return Reply(202, {"server": shown}, headers={"location": shown["links"][0]["href"]})
