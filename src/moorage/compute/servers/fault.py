"""The fault of a server in ERROR: what its users are told."""

from __future__ import annotations

from typing import Any

from moorage.core.clock import utcnow


def fault(message: str, *, code: int = 500) -> dict[str, Any]:
    return {"code": code, "message": message, "created": utcnow().strftime("%Y-%m-%dT%H:%M:%SZ")}
