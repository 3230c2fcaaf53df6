"""An operation: one piece of work on one server, which conductors lease, advance and finish."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

FIRST_STEP = "begin"


@dataclass(slots=True)
class Operation:
    """An operation under lease."""

    id: int
    server_id: int
    server_uuid: str
    kind: str
    step: str
    attempt: int
    tries: int
    """How often the current step has failed in a row."""
    created_at: datetime
    data: dict[str, Any] = field(default_factory=dict)
    action_id: int | None = None
    result: dict[str, Any] | None = None
    """What an agent answered at this attempt; None once it was used."""
    secrets: dict[str, str] | None = field(default=None, repr=False)
    """What the agent has to know and nobody else may; it goes when the operation ends."""
    cancel_reason: str | None = None
    """Somebody wants it cancelled: it ends at the first step that allows it."""
    request_ids: str | None = None
    """Of the request that wanted it: the caller's own id, if it told one, and ours."""
    step_since: datetime | None = None
    """When it came to its step; None: not yet to a checkpoint."""
    resumed: bool = False
    """A conductor was at it before, and did not come to a checkpoint: it may have done half of a step."""
