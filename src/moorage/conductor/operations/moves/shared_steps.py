"""What moves declare of the steps that they share."""

from __future__ import annotations

from moorage.ledger.declared import LATER, Awaited, Cancel, End, Step, Wait, back_by, refused

AT_SOURCE = Wait(Awaited.ANSWER, End.SOURCE)
AT_DESTINATION = Wait(Awaited.ANSWER, End.DESTINATION)
CLEAN = back_by("clean")
_BACK_ALREADY = refused("it goes back already")
GOING_BACK: tuple[Step, ...] = (
    Step(
        "clean",
        then=("cleaned", "retreat"),
        waits=Wait(Awaited.HOST, End.DESTINATION),
        cancel=LATER,
    ),
    Step("cleaned", then=("clean", "retreat"), waits=AT_DESTINATION, cancel=LATER),
    Step("retreat", then=("schedule", "restore"), cancel=LATER),
    Step("restore", then=("restored",), cancel=_BACK_ALREADY),
    Step("restored", then=("restore",), waits=AT_SOURCE, cancel=_BACK_ALREADY),
)
"""A cancel is heeded where the next destination would be looked for, if it comes to that."""


def going_back(*, cancel: Cancel) -> tuple[Step, ...]:
    """The same for those who do nothing else, and look for no other destination."""
    return tuple(
        step._replace(then=tuple(then for then in step.then if then != "schedule"), cancel=cancel)
        for step in GOING_BACK
    )
