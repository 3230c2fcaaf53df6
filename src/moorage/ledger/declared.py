"""What a kind of operation declares of its steps: what follows, what each waits for, where a cancel leads.

Conductors run by this, and whoever shows operations to people reads the same.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from enum import StrEnum
from typing import Any, NamedTuple

import msgspec

_PATIENCE = 600.0


class End(StrEnum):
    """Which of the hosts that an operation is about."""

    SERVER = "server"
    SOURCE = "source"
    DESTINATION = "destination"


class Awaited(StrEnum):
    """What a step may wait for without holding a lease."""

    ANSWER = "the agent of {host} to answer"
    HOST = "{host} to come back"
    SERVER_SENT = "{host} to have sent the server"
    DISK_SENT = "{host} to have put the server's disk into an image"
    ROOM = "a host with room for it"
    PORTS = "its ports to carry traffic"
    TURN = "an earlier operation of the server to end"
    PREDECESSOR = "a conductor to stop that is at an operation which was cut short"
    CREDENTIALS = "an agent that has credentials for Neutron"


class Wait(NamedTuple):
    what: Awaited
    end: End = End.SERVER
    patience: float = _PATIENCE
    """Seconds at the step after which somebody should look at it."""

    def told(self, host: str | None) -> str:
        return self.what.format(host=host or "a host")


class Cancel(NamedTuple):
    """What becomes of an operation that is to be cancelled, and is at a certain step."""

    then: str | None = None
    """The step that leads back; None: it is given up on the spot."""
    later: bool = False
    """Not in the middle of this: at the next step that allows it."""
    refusal: str | None = None
    """Why it can't be cancelled any more."""

    @property
    def now(self) -> bool:
        return not self.later and self.refusal is None


GIVE_UP = Cancel()
LATER = Cancel(later=True)
UNSAID = Cancel(refusal="its kind does not say how")


def back_by(step: str) -> Cancel:
    return Cancel(then=step)


def refused(reason: str) -> Cancel:
    return Cancel(refusal=reason)


class Step(NamedTuple):
    """One step, and those that may come after it; one that waits, or is tried again, follows itself."""

    name: str
    then: tuple[str, ...] = ()
    """Empty: the operation ends here."""
    waits: Wait | None = None
    """None: it waits for nothing but a conductor."""
    cancel: Cancel = UNSAID

    @property
    def followers(self) -> set[str]:
        """The steps that may come next, also if it is cancelled."""
        return {self.name, *self.then, *({self.cancel.then} if self.cancel.then is not None else ())}


class Declaration(NamedTuple):
    """A kind of operation, for those who don't run it."""

    name: str
    state: type[msgspec.Struct]
    steps: Mapping[str, Step]
    ends: Callable[[Any, str | None], Mapping[End, str | None]]
    """From the state, and the server's host: the hosts that it is about."""


Declarations = Mapping[str, Declaration]
"""By kind."""
