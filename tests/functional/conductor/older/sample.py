"""What an earlier release wrote of an operation, and what it says of how that came about."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec

_FILES = sorted((Path(__file__).parents[3] / "unit" / "conductor" / "samples").glob("*.json"))
_TOLD = re.compile(r"the fake driver was told that (\w+) shall (\w+)")


@dataclass(frozen=True)
class Sample:
    kind: str
    step: str
    data: dict[str, Any]

    @property
    def name(self) -> str:
        return f"{self.kind}-{self.step}"

    @property
    def failures(self) -> int:
        """How many hosts had failed the server by then."""
        return len(self.data.get("attempts", ()))

    @property
    def goes_back(self) -> bool:
        """Whether it was certain by then that it comes to nothing; a revert keeps an empty reason."""
        return bool(self.data.get("last_error")) or self.step == "undo"

    @property
    def goes_on_with_host(self) -> bool:
        """Whether the host that it was about by then is one that does not fail it."""
        return not self.goes_back and self.step not in ("schedule", "clean", "cleaned", "retreat")

    @property
    def old_flavor(self) -> str:
        return str(self.data["move"]["old_flavor"]["id"]) if "move" in self.data else "1"

    @property
    def new_flavor(self) -> str | None:
        """None if it moves as it is."""
        flavor = str(self.data["move"]["flavor"]["id"])
        return flavor if flavor != self.old_flavor else None

    @property
    def in_mid_move(self) -> bool:
        """Of a delete: it came while the server was at two hosts."""
        return self.data.get("migration") is not None

    @property
    def needs_bandwidth(self) -> bool:
        """Its port needs something of the host."""
        return self.step in ("plan", "claim")

    @property
    def releases_by_agent(self) -> bool:
        """The conductors had no credentials for the network."""
        return self.kind == "delete" and self.step in ("let_go", "gone")

    @property
    def is_on_neutron(self) -> bool:
        return self.needs_bandwidth or self.releases_by_agent or bool(self.data.get("late_ports"))

    def faults(self) -> dict[str, str]:
        """What has to go wrong for an operation to come to where this one was, as metadata of its server."""
        if self.step == "undo":
            return {"fake:attach_interface": "fail"}
        if self.data.get("aborted"):
            return {"fake:live_migrate": "fail"}
        told = [_TOLD.fullmatch(attempt["detail"]) for attempt in self.data.get("attempts", ())]
        return {f"fake:{found[1]}": found[2] for found in told if found}

    def faults_of_running(self) -> dict[str, str]:
        """Those of them that a host goes by which has the server: it has known them since it got that."""
        running = ("fake:live_migrate", "fake:attach_interface")
        return {step: fault for step, fault in self.faults().items() if step in running}


SAMPLES = [
    Sample(one["kind"], one["step"], one["data"])
    for file in _FILES
    for one in msgspec.json.decode(file.read_bytes())
]
