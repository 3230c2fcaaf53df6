"""Operations as others hear of them: a build is `instance.create`, and so on."""

from __future__ import annotations

from moorage.bus.notifications import Notifications, Phase
from moorage.conductor.engine.work import Work
from moorage.ledger.ledger import FIRST_STEP

_ACTIONS = {
    "build": "create",
    "delete": "delete",
    "start": "power_on",
    "stop": "power_off",
    "powered_on": "power_on",
    "powered_off": "power_off",
    "reboot": "reboot",
    "rebuild": "rebuild",
    "cold_move": "resize",
    "confirm_resize": "resize_confirm",
    "revert_resize": "resize_revert",
    "live_migrate": "live_migration",
    "evacuate": "evacuate",
    "attach_interface": "interface_attach",
    "detach_interface": "interface_detach",
}


class Notices:
    """May tell of the same beginning twice, since a beginning may be tried again."""

    def __init__(self, notifications: Notifications) -> None:
        self._notifications = notifications

    def begun(self, work: Work) -> None:
        if work.operation.step == FIRST_STEP and work.operation.kind in _ACTIONS:
            self._notifications.server(_ACTIONS[work.operation.kind], Phase.START, work.server)

    def ended(self, work: Work) -> None:
        """After the checkpoint: what is told has become true."""
        if work.operation.kind in _ACTIONS:
            phase = Phase.END if work.error is None else Phase.ERROR
            after = {**work.server, **work.changes}
            self._notifications.server(_ACTIONS[work.operation.kind], phase, after, error=work.error)
