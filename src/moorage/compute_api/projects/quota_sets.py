"""`/os-quota-sets` and `/os-quota-class-sets`: how much projects may have."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sqlalchemy.engine import Connection

from moorage.compute.quotas import quotas, usage
from moorage.compute.quotas.limits import EVERYBODY
from moorage.compute.quotas.quotas import DEFAULT_CLASS, UNLIMITED, Limits
from moorage.compute.servers import server_groups
from moorage.compute_api.microversions import Microversion
from moorage.compute_api.schema_types import MAX_INT, as_boolean
from moorage.compute_api.service import ComputeService
from moorage.http.call import Call
from moorage.http.errors import HttpError
from moorage.http.reply import Reply, empty

_NETWORK = ("fixed_ips", "floating_ips", "security_group_rules", "security_groups")
_FILES = ("injected_files", "injected_file_content_bytes", "injected_file_path_bytes")
_GROUPS = ("server_groups", "server_group_members")
_PATH_LENGTH = "injected_file_path_length"
_PATH_BYTES = "injected_file_path_bytes"


def project(call: Call) -> dict[str, str | None]:
    return {"project_id": call.params["project_id"]}


def limits_shown(limits: Mapping[str, int]) -> dict[str, int]:
    """By the API's names. Limits of networks are kept for who sets them, but nothing here goes by them."""
    shown = {name: bound for name, bound in limits.items() if name != _PATH_LENGTH}
    return {**dict.fromkeys(_NETWORK, UNLIMITED), _PATH_BYTES: limits[_PATH_LENGTH], **shown}


def show(service: ComputeService, call: Call) -> Reply:
    """Show the quotas of a project, or of a user in it."""
    call.checked_query()
    return _answer(call, _fetched(service, call), call.params["project_id"])


def detail(service: ComputeService, call: Call) -> Reply:
    """Show the quotas of a project and what is used of them."""
    call.checked_query()
    service.limits.fetch(call.params["project_id"])
    with service.database.snapshot() as connection:
        limits = _limits(service, call, connection)
        used = used_by(connection, call.params["project_id"], call.query.get("user_id"))
    body = {
        name: {"limit": bound, "in_use": used.get(name, 0), "reserved": 0}
        for name, bound in _visible(call, limits_shown(limits)).items()
    }
    return Reply(body={"quota_set": {"id": call.params["project_id"], **body}})


def defaults(service: ComputeService, call: Call) -> Reply:
    """Show the quotas of a project that nobody set any for."""
    return _answer(call, _of_class(service, DEFAULT_CLASS), call.params["project_id"])


def update(service: ComputeService, call: Call) -> Reply:
    """Set quotas of a project, or of a user in it."""
    call.checked_query()
    asked = call.json()["quota_set"]
    force = as_boolean(asked.get("force", False))
    wanted = _stored_names({name: _bound(name, value) for name, value in asked.items() if name != "force"})
    project_id, user_id = call.params["project_id"], call.query.get("user_id")
    if not service.limits.are_ours:  # they are set in Keystone
        return _answer(call, _fetched(service, call))

    def change(connection: Connection) -> Limits:
        if not force:
            _check(service, connection, project_id, user_id, wanted)
        quotas.set_limits(connection, project_id, user_id or "", wanted)
        return _limits(service, call, connection)

    return _answer(call, service.database.transact(change))


def _bound(name: str, value: Any) -> int:
    bound = int(value)
    if bound > MAX_INT:
        raise HttpError(400, f"Invalid input for field/attribute {name}. Value: {bound}. It is too large.")
    return bound


def _stored_names(asked: Mapping[str, int]) -> dict[str, int]:
    return {_PATH_LENGTH if name == _PATH_BYTES else name: bound for name, bound in asked.items()}


def _check(
    service: ComputeService,
    connection: Connection,
    project_id: str,
    user_id: str | None,
    wanted: Mapping[str, int],
) -> None:
    used = used_by(connection, project_id, user_id)
    whole = quotas.of_project(connection, service.settings.quotas, project_id)
    for resource, limit in wanted.items():
        most = UNLIMITED if user_id is None else whole.get(resource, UNLIMITED)
        quotas.check_settable(resource, limit, used.get(resource, 0), most)


def delete(service: ComputeService, call: Call) -> Reply:
    """Put a project, or a user in it, back to the defaults."""
    call.checked_query()
    if service.limits.are_ours:
        service.database.transact(
            lambda connection: quotas.forget(connection, call.params["project_id"], call.query.get("user_id"))
        )
    return empty(202)


def show_class(service: ComputeService, call: Call) -> Reply:
    """Show the quotas of a class; `default` holds for every project."""
    name = call.params["name"]
    limits = _of_class(service, name)
    return Reply(body={"quota_class_set": {"id": name, **_class_visible(call, limits)}})


def update_class(service: ComputeService, call: Call) -> Reply:
    """Set quotas of a class."""
    name = call.params["name"]
    if len(name) > 255 - len("class:"):
        raise HttpError(400, "The name of a quota class has too many characters.")
    asked = call.json()["quota_class_set"]
    wanted = _stored_names({key: _bound(key, value) for key, value in asked.items()})

    if service.limits.are_ours:
        service.database.transact(lambda connection: quotas.set_class(connection, name, wanted))
    limits = _of_class(service, name)
    return Reply(body={"quota_class_set": _class_visible(call, limits)})


def used_by(connection: Connection, project_id: str, user_id: str | None) -> dict[str, int]:
    """What is used of the quotas that count something."""
    if user_id:
        counted = usage.used_by(connection, project_id, user_id)
    else:
        counted = usage.of_project(connection, project_id)
    return {**counted, "server_groups": server_groups.count(connection, project_id, user_id)}


def _fetched(service: ComputeService, call: Call) -> Limits:
    service.limits.fetch(call.params["project_id"])
    with service.database.read() as connection:
        return _limits(service, call, connection)


def _limits(service: ComputeService, call: Call, connection: Connection) -> Limits:
    return service.limits.shown(connection, call.params["project_id"], call.query.get("user_id"))


def _of_class(service: ComputeService, name: str) -> Limits:
    service.limits.fetch(EVERYBODY)
    with service.database.read() as connection:
        return service.limits.shown_of_class(connection, name)


def _answer(call: Call, limits: Mapping[str, int], project_id: str | None = None) -> Reply:
    shown = _visible(call, limits_shown(limits))
    return Reply(body={"quota_set": {"id": project_id, **shown} if project_id is not None else shown})


def _visible(call: Call, limits: Mapping[str, int]) -> dict[str, int]:
    hidden: tuple[str, ...] = ()
    if call.version >= Microversion.USER_DATA_INSTEAD_OF_FILES:
        hidden = (*_NETWORK, *_FILES)
    elif call.version >= Microversion.NO_PROXIES:
        hidden = _NETWORK
    return {name: bound for name, bound in limits.items() if name not in hidden}


def _class_visible(call: Call, limits: Mapping[str, int]) -> dict[str, int]:
    hidden: tuple[str, ...] = _GROUPS
    if call.version >= Microversion.USER_DATA_INSTEAD_OF_FILES:
        hidden = (*_NETWORK, *_FILES)
    elif call.version >= Microversion.QUOTA_CLASSES_LIKE_QUOTAS:
        hidden = _NETWORK
    return {name: bound for name, bound in limits_shown(limits).items() if name not in hidden}
