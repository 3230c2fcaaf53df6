"""`/servers/{id}/action`: what users ask of their servers, each by the name in the body."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import msgspec
from sqlalchemy.engine import Connection

from moorage.compute.imaging import rescues, shelving
from moorage.compute.ports import interfaces
from moorage.compute.servers import lifecycle, servers, soft_deletes
from moorage.compute.servers.actions import Origin
from moorage.compute.servers.server import Server
from moorage.compute.servers.states import VmState
from moorage.compute_api.consoles import console_output, remote_consoles
from moorage.compute_api.consoles import schemas as console_schemas
from moorage.compute_api.endpoint import ADMIN, MANAGER, MEMBER, RULE, is_admin, owner_of
from moorage.compute_api.imaging import image_actions, rescue_action, shelve_actions
from moorage.compute_api.microversions import Microversion
from moorage.compute_api.moves import move_actions, move_schemas
from moorage.compute_api.ports import floating_addresses, security_groups
from moorage.compute_api.servers import rebuild_action, server_passwords
from moorage.compute_api.servers import server_schemas as schemas
from moorage.compute_api.servers.action_request import ActionRequest
from moorage.compute_api.servers.servers import fetch_limits, lock, origin_of
from moorage.compute_api.service import ComputeService
from moorage.core.microversions import Version
from moorage.http.call import Call
from moorage.http.errors import HttpError
from moorage.http.reply import Reply, empty
from moorage.http.schema import AnySchema

UNLOCK_OVERRIDE = f"{RULE}os-lock-server:unlock:unlock_override"


@dataclass(frozen=True)
class ActionRoute:
    run: Callable[[ActionRequest], Reply | None] | None
    """Answers with 202 and nothing more, if it does not say otherwise."""
    policy: str
    schema: AnySchema
    check: str = MEMBER
    rule: Callable[[Version, Any], str] | None = None
    """Which policy holds, if that depends on what is asked for; `policy` is the one for most."""
    look_up: Callable[[ComputeService, Call, Any], Any] | None = None
    """What has to be found out before the server is held; it begins with a look whether the caller may."""
    afterwards: Callable[[ActionRequest], None] | None = None
    """What has to be done elsewhere once the transaction has ended, and before anybody is told."""
    since: Version | None = None
    """The first version that has it."""
    dropped: Version | None = None
    """The first version that no longer has it."""
    read: Callable[[ComputeService, Call, Any], Reply] | None = None
    """In place of `run`: what asks somebody else, and holds nothing meanwhile."""
    goes_by_limits: bool = False
    """It may need more than the server's project may have."""
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


def _plain(ask: Callable[[Connection, Server, Origin], None]) -> Callable[[ActionRequest], None]:
    """An action that needs to know nothing but whose server it is about."""
    return lambda asked: ask(asked.connection, asked.server, asked.origin)


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


def _tell(action: str) -> Callable[[ActionRequest], None]:
    """Others hear of what no operation is needed for."""

    def tell(asked: ActionRequest) -> None:
        with asked.service.database.read() as connection:
            server = servers.find(connection, asked.server.uuid)
        asked.service.notifications.server(action, None, server.as_row(), request_id=asked.origin.request_id)

    return tell


def _reset_state(asked: ActionRequest) -> None:
    lifecycle.reset_state(asked.connection, asked.server, asked.origin, VmState(asked.argument["state"]))


def _restore(asked: ActionRequest) -> None:
    server, service = asked.server, asked.service
    project, user = service.limits.in_force(asked.connection, server.project_id, server.user_id)
    interval = service.settings.reclaim_interval
    soft_deletes.restore(asked.connection, server, asked.origin, project, user, interval)


def _inject_network_info(_asked: ActionRequest) -> None:
    """No driver has a use for it: what a guest has to know of its network, it is told when it asks."""


def _add_address(asked: ActionRequest) -> None:
    interfaces.add_address(asked.connection, asked.server, str(asked.argument["networkId"]))


def _remove_address(asked: ActionRequest) -> None:
    interfaces.remove_address(asked.connection, asked.server, asked.argument["address"])


ACTIONS: dict[str, ActionRoute] = {
    "os-start": ActionRoute(_plain(lifecycle.start), f"{RULE}servers:start", schemas.START),
    "os-stop": ActionRoute(_plain(lifecycle.stop), f"{RULE}servers:stop", schemas.STOP),
    "pause": ActionRoute(_plain(lifecycle.pause), f"{RULE}os-pause-server:pause", schemas.PAUSE),
    "unpause": ActionRoute(_plain(lifecycle.unpause), f"{RULE}os-pause-server:unpause", schemas.UNPAUSE),
    "suspend": ActionRoute(_plain(lifecycle.suspend), f"{RULE}os-suspend-server:suspend", schemas.SUSPEND),
    "resume": ActionRoute(_plain(lifecycle.resume), f"{RULE}os-suspend-server:resume", schemas.RESUME),
    "rescue": ActionRoute(
        rescue_action.rescue, f"{RULE}os-rescue", schemas.RESCUE, look_up=rescue_action.look_up
    ),
    "unrescue": ActionRoute(_plain(rescues.unrescue), f"{RULE}os-unrescue", schemas.UNRESCUE),
    "createImage": ActionRoute(
        image_actions.create_image,
        f"{RULE}servers:create_image",
        schemas.CREATE_IMAGE,
        look_up=image_actions.choose_id,
        afterwards=image_actions.record_snapshot,
        goes_by_limits=True,
        ignores_lock=True,
    ),
    "createBackup": ActionRoute(
        image_actions.create_backup,
        f"{RULE}os-create-backup",
        schemas.CREATE_BACKUP,
        look_up=image_actions.choose_id,
        afterwards=image_actions.record_backup,
        goes_by_limits=True,
        ignores_lock=True,
    ),
    "shelve": ActionRoute(
        shelve_actions.shelve,
        f"{RULE}os-shelve:shelve",
        schemas.SHELVE,
        look_up=image_actions.choose_id,
        afterwards=shelve_actions.record_image,
    ),
    "shelveOffload": ActionRoute(
        _plain(shelving.offload), f"{RULE}os-shelve:shelve_offload", schemas.SHELVE_OFFLOAD, check=ADMIN
    ),
    "unshelve": ActionRoute(shelve_actions.unshelve, f"{RULE}os-shelve:unshelve", schemas.UNSHELVE),
    "trigger_crash_dump": ActionRoute(
        _plain(lifecycle.trigger_crash_dump),
        f"{RULE}servers:trigger_crash_dump",
        schemas.TRIGGER_CRASH_DUMP,
        since=Microversion.CRASH_DUMPS,
    ),
    "changePassword": ActionRoute(
        None, f"{RULE}os-admin-password", schemas.CHANGE_PASSWORD, read=server_passwords.change
    ),
    "restore": ActionRoute(
        _restore, f"{RULE}os-deferred-delete:restore", schemas.RESTORE, goes_by_limits=True
    ),
    "injectNetworkInfo": ActionRoute(
        _inject_network_info,
        f"{RULE}os-admin-actions:inject_network_info",
        schemas.INJECT_NETWORK_INFO,
        check=ADMIN,
        makes_work=False,
    ),
    "addSecurityGroup": ActionRoute(
        None, f"{RULE}os-security-groups:add", schemas.ADD_SECURITY_GROUP, read=security_groups.add
    ),
    "removeSecurityGroup": ActionRoute(
        None, f"{RULE}os-security-groups:remove", schemas.REMOVE_SECURITY_GROUP, read=security_groups.remove
    ),
    "reboot": ActionRoute(_reboot, f"{RULE}servers:reboot", schemas.REBOOT),
    "lock": ActionRoute(
        _lock,
        f"{RULE}os-lock-server:lock",
        schemas.LOCK,
        afterwards=_tell("lock"),
        ignores_lock=True,
        makes_work=False,
    ),
    "unlock": ActionRoute(
        _unlock,
        f"{RULE}os-lock-server:unlock",
        schemas.UNLOCK,
        afterwards=_tell("unlock"),
        ignores_lock=True,
        makes_work=False,
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
        goes_by_limits=True,
    ),
    "resize": ActionRoute(
        move_actions.resize, f"{RULE}servers:resize", move_schemas.RESIZE, goes_by_limits=True
    ),
    "confirmResize": ActionRoute(
        move_actions.confirm_resize, f"{RULE}servers:confirm_resize", move_schemas.CONFIRM_RESIZE
    ),
    "revertResize": ActionRoute(
        move_actions.revert_resize,
        f"{RULE}servers:revert_resize",
        move_schemas.REVERT_RESIZE,
        goes_by_limits=True,
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
    "addFloatingIp": ActionRoute(
        None,
        f"{RULE}os-floating-ips:add",
        schemas.ADD_FLOATING_IP,
        read=floating_addresses.add,
        dropped=GONE["addFloatingIp"],
    ),
    "removeFloatingIp": ActionRoute(
        None,
        f"{RULE}os-floating-ips:remove",
        schemas.REMOVE_FLOATING_IP,
        read=floating_addresses.remove,
        dropped=GONE["removeFloatingIp"],
    ),
    "os-getConsoleOutput": ActionRoute(
        None, f"{RULE}os-console-output", console_schemas.CONSOLE_OUTPUT, read=console_output.show
    ),
    **{
        name: ActionRoute(None, remote_consoles.POLICY, schema, read=read, dropped=GONE[name])
        for name, schema, read in (
            ("os-getVNCConsole", console_schemas.OPEN_VNC, remote_consoles.open_vnc),
            ("os-getSerialConsole", console_schemas.OPEN_SERIAL, remote_consoles.open_serial),
            ("os-getSPICEConsole", console_schemas.OPEN_SPICE, remote_consoles.open_spice),
        )
    },
    "forceDelete": ActionRoute(
        _plain(lifecycle.delete), f"{RULE}os-deferred-delete:force", schemas.FORCE_DELETE
    ),
}

_DROPPED = frozenset({"resetNetwork", "os-getRDPConsole"})


def act(service: ComputeService, call: Call) -> Reply:
    """Do something to a server."""
    body = call.body()
    name = _name(body)
    action = ACTIONS.get(name)
    if action is None or (action.dropped is not None and call.version >= action.dropped):
        raise _refusal(call, name)
    if action.since is not None and call.version < action.since:
        raise HttpError(404)
    argument = action.schema.at(call.version).load(body)[name]
    call.expect(action.policy if action.rule is None else action.rule(call.version, argument))
    if action.run is None:
        assert action.read is not None
        return action.read(service, call, argument)
    run = action.run
    origin = origin_of(call)
    if action.goes_by_limits:
        fetch_limits(service, call)
    found = None if action.look_up is None else action.look_up(service, call, argument)

    def work(connection: Connection) -> tuple[ActionRequest, Reply | None]:
        server = lock(connection, call)
        if not action.ignores_lock:
            lifecycle.require_unlocked(server, as_admin=is_admin(call))
        asked = ActionRequest(service, connection, call, server, origin, argument, found)
        return asked, run(asked)

    asked, reply = service.database.transact(work)
    try:
        if action.afterwards is not None:
            action.afterwards(asked)
    finally:
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


def _refusal(call: Call, name: str) -> HttpError:
    if name in GONE and call.version >= GONE[name]:
        return HttpError(404)
    if name in _DROPPED:
        return HttpError(410)
    return HttpError(400, f"There is no such action: {name}")
