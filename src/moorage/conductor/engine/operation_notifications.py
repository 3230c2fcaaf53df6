"""Operations as others hear of them: a build is `instance.create`, and so on."""

from __future__ import annotations

from typing import Any

from moorage.bus.notifications import Notifications, Phase
from moorage.conductor.engine.kind import Kind
from moorage.conductor.engine.work import Work
from moorage.ledger.operation import FIRST_STEP


class OperationNotifications:
    """May tell of the same beginning twice, since a beginning may be tried again."""

    def __init__(self, notifications: Notifications) -> None:
        self._notifications = notifications

    def begun(self, kind: Kind, work: Work[Any]) -> None:
        if kind.notification is not None and work.operation.step == FIRST_STEP:
            self._notifications.server(kind.notification, Phase.START, work.server.as_row())

    def told(self, work: Work[Any]) -> None:
        """After the checkpoint, too."""
        if work.notices:
            row = work.server.changed(work.changes).as_row()
            for action, phase in work.notices:
                self._notifications.server(action, phase, row)

    def ended(self, kind: Kind, work: Work[Any]) -> None:
        """After the checkpoint: what is told has become true."""
        if kind.notification is not None:
            phase = Phase.END if work.error is None else Phase.ERROR
            after = work.server.changed(work.changes).as_row()
            self._notifications.server(kind.notification, phase, after, error=work.error)
