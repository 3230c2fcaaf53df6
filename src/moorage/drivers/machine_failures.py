"""Machines that fail: what a driver tells of it whose machines are not all alike, and what it is told."""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Mapping
from enum import StrEnum
from typing import Any, Protocol, runtime_checkable

import msgspec

KNOWN = "avoided"
"""Where the facts of a host say what it was last told of machines that failed, in brief."""
POLICY = "quarantine"
"""Where the facts of a host say which machines shall be kept out: a `QuarantinePolicy`."""


class FailedStep(StrEnum):
    DEPLOY = "deploy"
    CLEAN = "clean"


class MachineFailure(msgspec.Struct, frozen=True):
    uuid: str
    """Follows from what failed: told again, it is the same."""
    machine_uuid: str
    step: str
    """A `FailedStep`."""
    reason: str
    server_uuid: str = ""


class QuarantinePolicy(msgspec.Struct, frozen=True):
    after: int = 0
    """So many failures; 0 for never."""
    window: float = 0.0
    """In so many seconds."""


class AvoidedMachines(msgspec.Struct, frozen=True):
    """What conductors know of machines that failed."""

    quarantined: frozenset[str] = frozenset()
    """No server shall come to these."""
    failures: Mapping[str, int] = {}
    """How often each failed lately: others come first."""

    def said(self) -> dict[str, Any]:
        """In an order that does not depend on who says it."""
        return {"quarantined": sorted(self.quarantined), "failures": dict(sorted(self.failures.items()))}

    def digest(self) -> str:
        """Enough to see that somebody knows something else."""
        return hashlib.sha256(msgspec.json.encode(self.said())).hexdigest()[:16]


class MachineFailures(Protocol):
    def policy(self) -> QuarantinePolicy: ...

    def failures(self) -> list[MachineFailure]:
        """What failed, until `told` says that conductors have heard of it."""

    def told(self, failures: Collection[MachineFailure]) -> None: ...

    def mended(self) -> set[str]:
        """Machines in quarantine that an operator has taken into their hands."""

    def avoid(self, machines: AvoidedMachines) -> None:
        """Of these no server gets one, or only if there is no other."""


@runtime_checkable
class FailureTelling(Protocol):
    """A driver whose machines fail one by one."""

    @property
    def machine_failures(self) -> MachineFailures: ...
