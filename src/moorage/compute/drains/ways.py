"""How a server can leave its host, by what it is doing and what its host can. Pure."""

from __future__ import annotations

from moorage.compute.drains.drain import DrainWay
from moorage.compute.moves.migrations import MigrationType
from moorage.compute.servers.server import Server
from moorage.compute.servers.states import VmState
from moorage.drivers.capabilities import Capabilities

_COLD = (VmState.ACTIVE, VmState.STOPPED)
_LIVE = (VmState.ACTIVE, VmState.PAUSED)
_EVACUATED = (*_COLD, VmState.ERROR)


def move_of(vm_state: str, able: Capabilities, way: DrainWay) -> MigrationType | None:
    """None if a server that is in this state can't leave."""
    if way is DrainWay.EVACUATE:
        return MigrationType.EVACUATION if able.migrate and vm_state in _EVACUATED else None
    if way is not DrainWay.COLD and able.live_migrate and vm_state in _LIVE:
        return MigrationType.LIVE
    if way is not DrainWay.LIVE and able.migrate and vm_state in _COLD:
        return MigrationType.MIGRATION
    return None


def refusal(server: Server, able: Capabilities, way: DrainWay) -> str:
    """Why it can't."""
    if not able.migrate:
        return "Its host has no way to move it: it stays with its machine."
    limited = "" if way is DrainWay.AUTO else f", as it is asked ({way.value})"
    return f"A server that is {server.status} can't be moved{limited}."
