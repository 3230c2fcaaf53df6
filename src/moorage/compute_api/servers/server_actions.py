"""`/servers/{id}/action`: what users ask of their servers, each by the name in the body."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import msgspec
from sqlalchemy.engine import Connection

from moorage.compute.ports import interfaces
from moorage.compute.servers import lifecycle
from moorage.compute.servers.states import VmState
from moorage.compute_api.endpoint import ADMIN, MANAGER, MEMBER, RULE, is_admin, owner_of
from moorage.compute_api.microversions import Microversion
from moorage.compute_api.moves import move_actions, move_schemas
from moorage.compute_api.servers import rebuild_action
from moorage.compute_api.servers import server_schemas as schemas
from moorage.compute_api.servers.action_request import ActionRequest
from moorage.compute_api.servers.servers import find, lock, origin_of
from moorage.compute_api.service import ComputeService
from moorage.core.microversions import Version
from moorage.http.call import Call
from moorage.http.errors import HttpError
from moorage.http.reply import Reply, empty
from moorage.http.schema import AnySchema

UNLOCK_OVERRIDE = f"{RULE}os-lock-server:unlock:unlock_override"


@dataclass(frozen=True)
class ActionRoute:
    run: Callable[[ActionRequest], Reply | None]
    """Answers with 202 and nothing more, if it does not say otherwise."""
    policy: str
    schema: AnySchema
    check: str = MEMBER
    rule: Callable[[Version, Any], str] | None = None
    """Which policy holds, if that depends on what is asked for; `policy` is the one for most."""
    look_up: Callable[[ComputeService, Call, Any], Any] | None = None
    """What has to be found out before the server is held; it begins with a look whether the caller may."""
    dropped: Version | None = None
    """The first version that no longer has it."""
    ignores_lock: bool = False
    makes_work: bool = True
    """The conductor has to be told."""


GONE: dict[str, Version] = {
    "addFloatingIp": Microversion.NO_ADDRESS_ACTIONS,
    "removeFloatingIp": Microversion.NO_ADDRESS_ACTIONS,
    "addFixedIp": Microversion.NO_ADDRESS_ACTIONS,
    "removeFixedIp": Microversion.NO_ADDRESS_ACTIONS,
    "os-getVNCConsole": Microversion.REMOTE_CONSOLES,
    "os-getSPICEConsole": Microversion.REMOTE_CONSOLES,
    "os-getRDPConsole": Microversion.REMOTE_CONSOLES,
    "os-getSerialConsole": Microversion.REMOTE_CONSOLES,
}
"""Actions that the API itself dropped, each with the version that did."""


def _start(asked: ActionRequest) -> None:
    lifecycle.start(asked.connection, asked.server, asked.origin)


def _stop(asked: ActionRequest) -> None:
    lifecycle.stop(asked.connection, asked.server, asked.origin)


def _reboot(asked: ActionRequest) -> None:
    hard = asked.argument["type"].upper() == "HARD"
    lifecycle.reboot(asked.connection, asked.server, asked.origin, hard=hard)


def _lock(asked: ActionRequest) -> None:
    reason = None
    if asked.call.version >= Microversion.LOCK_REASON and asked.argument is not None:
        reason = asked.argument.get("locked_reason")
    lifecycle.lock(asked.connection, asked.server, asked.origin, reason)


def _unlock(asked: ActionRequest) -> None:
    if not lifecycle.may_unlock(asked.server, asked.origin):
        asked.call.authorize(UNLOCK_OVERRIDE, owner_of(asked.server))
    lifecycle.unlock(asked.connection, asked.server, asked.origin)


def _reset_state(asked: ActionRequest) -> None:
    lifecycle.reset_state(asked.connection, asked.server, asked.origin, VmState(asked.argument["state"]))


def _force_delete(asked: ActionRequest) -> None:
    lifecycle.delete(asked.connection, asked.server, asked.origin)


def _add_address(asked: ActionRequest) -> None:
    interfaces.add_address(asked.connection, asked.server, str(asked.argument["networkId"]))


def _remove_address(asked: ActionRequest) -> None:
    interfaces.remove_address(asked.connection, asked.server, asked.argument["address"])


ACTIONS: dict[str, ActionRoute] = {
    "os-start": ActionRoute(_start, f"{RULE}servers:start", schemas.START),
    "os-stop": ActionRoute(_stop, f"{RULE}servers:stop", schemas.STOP),
    "reboot": ActionRoute(_reboot, f"{RULE}servers:reboot", schemas.REBOOT),
    "lock": ActionRoute(
        _lock, f"{RULE}os-lock-server:lock", schemas.LOCK, ignores_lock=True, makes_work=False
    ),
    "unlock": ActionRoute(
        _unlock, f"{RULE}os-lock-server:unlock", schemas.UNLOCK, ignores_lock=True, makes_work=False
    ),
    "os-resetState": ActionRoute(
        _reset_state,
        f"{RULE}os-admin-actions:reset_state",
        schemas.RESET_STATE,
        check=ADMIN,
        ignores_lock=True,
        makes_work=False,
    ),
    "rebuild": ActionRoute(
        rebuild_action.rebuild,
        f"{RULE}servers:rebuild",
        move_schemas.REBUILD,
        look_up=rebuild_action.look_up,
    ),
    "resize": ActionRoute(move_actions.resize, f"{RULE}servers:resize", move_schemas.RESIZE),
    "confirmResize": ActionRoute(
        move_actions.confirm_resize, f"{RULE}servers:confirm_resize", move_schemas.CONFIRM_RESIZE
    ),
    "revertResize": ActionRoute(
        move_actions.revert_resize, f"{RULE}servers:revert_resize", move_schemas.REVERT_RESIZE
    ),
    "migrate": ActionRoute(
        move_actions.migrate,
        move_actions.MIGRATE,
        move_schemas.MIGRATE,
        check=MANAGER,
        rule=move_actions.migrate_rule,
    ),
    "os-migrateLive": ActionRoute(
        move_actions.migrate_live,
        move_actions.MIGRATE_LIVE,
        move_schemas.MIGRATE_LIVE,
        check=MANAGER,
        rule=move_actions.live_rule,
        look_up=move_actions.check_live,
    ),
    "evacuate": ActionRoute(
        move_actions.evacuate,
        f"{RULE}os-evacuate",
        move_schemas.EVACUATE,
        check=ADMIN,
        ignores_lock=True,
    ),
    "addFixedIp": ActionRoute(
        _add_address, f"{RULE}os-multinic:add", schemas.ADD_FIXED_IP, dropped=GONE["addFixedIp"]
    ),
    "removeFixedIp": ActionRoute(
        _remove_address, f"{RULE}os-multinic:remove", schemas.REMOVE_FIXED_IP, dropped=GONE["removeFixedIp"]
    ),
    "forceDelete": ActionRoute(_force_delete, f"{RULE}os-deferred-delete:force", schemas.FORCE_DELETE),
}

NOT_OFFERED = frozenset(
    {
        *("pause", "unpause", "suspend", "resume", "rescue", "unrescue", "restore"),
        *(
            "shelve",
            "unshelve",
            "shelveOffload",
            "createImage",
            "createBackup",
            "changePassword",
            "trigger_crash_dump",
        ),
        *("addSecurityGroup", "removeSecurityGroup", "os-getConsoleOutput", "injectNetworkInfo"),
    }
    | set(GONE)
)
"""Actions of the API that no driver of this cloud can do."""
_DROPPED = frozenset({"resetNetwork"})


def act(service: ComputeService, call: Call) -> Reply:
    """Do something to a server."""
    body = call.body()
    name = _name(body)
    action = ACTIONS.get(name)
    if action is None or (action.dropped is not None and call.version >= action.dropped):
        raise _refusal(service, call, name)
    argument = action.schema.at(call.version).load(body)[name]
    call.expect(action.policy if action.rule is None else action.rule(call.version, argument))
    origin = origin_of(call)
    found = None if action.look_up is None else action.look_up(service, call, argument)

    def work(connection: Connection) -> Reply | None:
        server = lock(connection, call)
        if not action.ignores_lock:
            lifecycle.require_unlocked(server, as_admin=is_admin(call))
        return action.run(ActionRequest(service, connection, call, server, origin, argument, found))

    reply = service.database.transact(work)
    if action.makes_work:
        service.wake()
    return reply or empty(202)


def _name(body: bytes) -> str:
    try:
        document = msgspec.json.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise HttpError(400, f"Malformed request body: {error}") from error
    if not isinstance(document, dict) or len(document) != 1:
        raise HttpError(400, "Malformed request body")
    return str(next(iter(document)))


def _refusal(service: ComputeService, call: Call, name: str) -> HttpError:
    if name in _DROPPED:
        return HttpError(410)
    if name not in NOT_OFFERED or (name in GONE and call.version >= GONE[name]):
        return HttpError(400, f"There is no such action: {name}")
    with service.database.read() as connection:
        find(connection, call)
    return HttpError(501, "The requested functionality is not supported.")
