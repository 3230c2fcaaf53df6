"""What goes wrong on purpose, as an operator or a test writes it: `delay=0.5+fail_here@0.1`."""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

STEPS = (
    *("spawn", "destroy", "start", "stop", "reboot", "rebuild"),
    *("hand_over", "take_over", "expect", "live_migrate", "keep_resize", "undo_resize"),
    *("attach_interface", "detach_interface"),
    *("pause", "unpause", "suspend", "resume", "rescue", "unrescue", "snapshot"),
    *("trigger_crash_dump", "change_password"),
    *("console_log", "console", "diagnostics"),
)
METADATA_PREFIX = "fake:"


class FaultKind(StrEnum):
    FAIL = "fail"
    FAIL_HERE = "fail_here"
    """Another host may do."""
    HANG = "hang"
    DELAY = "delay"


@dataclass(frozen=True)
class InjectedFault:
    kind: FaultKind
    seconds: float = 0.0
    probability: float = 1.0

    def strikes(self) -> bool:
        return self.probability >= 1.0 or random.random() < self.probability


def parse(text: str) -> list[InjectedFault]:
    """The faults in the order in which they strike; ValueError if the text makes no sense."""
    return [_parse_one(part.strip()) for part in text.split("+") if part.strip()]


def parse_steps(texts: Mapping[str, str]) -> dict[str, list[InjectedFault]]:
    for step in texts:
        if step not in STEPS:
            raise ValueError(f"there is no step {step!r}; the steps are {', '.join(STEPS)}")
    return {step: parse(text) for step, text in texts.items()}


def of_metadata(metadata: Mapping[str, str]) -> dict[str, list[InjectedFault]]:
    """The faults that a server asks for; a user's nonsense is no fault at all."""
    found = {}
    for step in STEPS:
        text = metadata.get(METADATA_PREFIX + step)
        if text is not None:
            try:
                found[step] = parse(text)
            except ValueError:
                continue
    return found


def _parse_one(text: str) -> InjectedFault:
    what, _, chance = text.partition("@")
    name, _, amount = what.partition("=")
    try:
        fault = InjectedFault(FaultKind(name), float(amount or 0), float(chance or 1))
    except ValueError as error:
        raise ValueError(f"{text!r} is no fault: {error}") from error
    if (
        (fault.kind is FaultKind.DELAY) != bool(amount)
        or not 0 <= fault.probability <= 1
        or fault.seconds < 0
    ):
        raise ValueError(f"{text!r} is no fault")
    return fault
