"""What a host says of a server's machine, as the version of its machine type: it goes with the server."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from moorage.conductor.engine.work import Work

_HARDWARE = "hardware"


def keep(work: Work[Any], facts: Mapping[str, Any]) -> None:
    """From the result of a task that made or took over the server; every later task says it again."""
    found = facts.get(_HARDWARE)
    request = work.changes.get("request", work.server.request)
    if found and found != request.get(_HARDWARE):
        work.changes["request"] = {**request, _HARDWARE: found}
