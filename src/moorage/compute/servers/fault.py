"""The fault of a server in ERROR: what its users are told."""

from __future__ import annotations

from typing import Any

from moorage.core.clock import utcnow


def fault(message: str, *, code: int = 500, details: str = "") -> dict[str, Any]:
    """`details` are for administrators."""
    told = {"code": code, "message": message, "created": utcnow().strftime("%Y-%m-%dT%H:%M:%SZ")}
    return {**told, "details": details} if details else told
