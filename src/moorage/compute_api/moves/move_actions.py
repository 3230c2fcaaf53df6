"""What administrators and users ask of servers that shall move: the actions, and what each is answered."""

from __future__ import annotations

from typing import Any

from moorage.compute.errors import ComputeError
from moorage.compute.flavors import flavors
from moorage.compute.flavors.flavors import FlavorNotFound
from moorage.compute.moves import moves, resizes
from moorage.compute.moves.moves import ActionContext, MoveQuotas
from moorage.compute.servers.lifecycle import require_unlocked
from moorage.compute.servers.topology import require_topology
from moorage.compute_api.endpoint import RULE, is_admin
from moorage.compute_api.flavors.flavors import visible_to
from moorage.compute_api.microversions import Microversion
from moorage.compute_api.moves import live_checks
from moorage.compute_api.schema_types import as_boolean
from moorage.compute_api.servers.action_request import ActionRequest
from moorage.compute_api.servers.passwords import password
from moorage.compute_api.servers.servers import find, origin_of
from moorage.compute_api.service import ComputeService
from moorage.http.call import Call
from moorage.http.reply import Reply, empty, no_content

MIGRATE = f"{RULE}os-migrate-server:migrate"
MIGRATE_TO = f"{MIGRATE}:host"
MIGRATE_LIVE = f"{RULE}os-migrate-server:migrate_live"
MIGRATE_LIVE_TO = f"{MIGRATE_LIVE}:host"


def ask_of(asked: ActionRequest) -> ActionContext:
    return ActionContext(
        asked.connection, asked.server, asked.origin, asked.service.settings.service_down_time
    )


def _bounds(asked: ActionRequest) -> MoveQuotas:
    server, limits = asked.server, asked.service.limits
    return MoveQuotas(*limits.in_force(asked.connection, server.project_id, server.user_id))


def resize(asked: ActionRequest) -> None:
    flavorid = str(asked.argument["flavorRef"]).rstrip("/").rpartition("/")[2]
    try:
        flavor = flavors.find(asked.connection, flavorid, visible_to=visible_to(asked.call))
    except FlavorNotFound as error:
        raise ComputeError(str(error)) from error
    image = asked.server.request.get("image") or {}
    require_topology(flavor.as_booted(), image.get("properties") or {}, asked.service.scheduler.pci_aliases)
    disk_config = asked.argument.get("OS-DCF:diskConfig")
    may_stay = asked.service.settings.allow_resize_to_same_host
    moves.resize(ask_of(asked), flavor, _bounds(asked), disk_config, may_stay=may_stay)


def confirm_resize(asked: ActionRequest) -> Reply:
    resizes.confirm(ask_of(asked))
    return no_content()


def revert_resize(asked: ActionRequest) -> None:
    resizes.revert(ask_of(asked), _bounds(asked))


def _migration_host(asked_version: tuple[int, int], argument: Any) -> str | None:
    return (argument or {}).get("host") if asked_version >= Microversion.MIGRATION_TO_NAMED_HOST else None


def migrate_rule(version: tuple[int, int], argument: Any) -> str:
    return MIGRATE_TO if _migration_host(version, argument) else MIGRATE


def migrate(asked: ActionRequest) -> None:
    moves.migrate(ask_of(asked), _migration_host(asked.call.version, asked.argument))


def live_rule(_version: tuple[int, int], argument: Any) -> str:
    return MIGRATE_LIVE_TO if argument["host"] else MIGRATE_LIVE


def check_live(service: ComputeService, call: Call, argument: Any) -> None:
    """Before 2.34 whoever asks is told at once if nothing can come of it; since then it is in the actions."""
    if call.version >= Microversion.LIVE_MIGRATION_CHECKED_LATER:
        return
    host, down_time = argument["host"] or None, service.settings.service_down_time
    with service.database.read() as connection:
        server = find(connection, call)
        _require_target_of_force(argument)
        require_unlocked(server, as_admin=is_admin(call))
        ask = ActionContext(connection, server, origin_of(call), down_time)
        moves.require_live(ask, host)
        live_checks.require_running(ask)
    live_checks.require_place(service.database, service.planner, ask, host)


def migrate_live(asked: ActionRequest) -> None:
    _require_target_of_force(asked.argument)
    moves.live_migrate(ask_of(asked), asked.argument["host"] or None)


def evacuate(asked: ActionRequest) -> Reply:
    """The password is made, and since 2.14 kept to ourselves: what a server is given comes with its image."""
    argument = asked.argument
    _require_target_of_force(argument)
    stopped = asked.call.version >= Microversion.EVACUATED_STAY_STOPPED
    if asked.call.version >= Microversion.SIMPLER_EVACUATION:
        moves.evacuate(ask_of(asked), argument.get("host"), stopped=stopped)
        return empty(200)
    on_shared_storage = as_boolean(argument["onSharedStorage"])
    if on_shared_storage and "adminPass" in argument:
        raise ComputeError("admin password can't be changed on existing disk")
    moves.evacuate(ask_of(asked), argument.get("host"), stopped=stopped)
    made = None if on_shared_storage else argument.get("adminPass") or password()
    return Reply(200, {"adminPass": made})


def _require_target_of_force(argument: Any) -> None:
    """Forced or not, the destination is asked for, and checked: nothing here goes round the scheduler."""
    if as_boolean(argument.get("force", False)) and not argument.get("host"):
        raise ComputeError("Can't force to a non-provided destination")
