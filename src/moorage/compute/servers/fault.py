"""The fault of a server in ERROR: what its users are told, and what only administrators see."""

from __future__ import annotations

import re
from typing import Any

from moorage.core.clock import utcnow

_UUID = r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}"
_INTERNALS: tuple[tuple[re.Pattern[str], str], ...] = (
    (re.compile(r"\bIronic answered \d+ to [A-Z]+ \S+: "), "the bare-metal service refused it: "),
    (re.compile(r"\b[a-z][a-z0-9+.-]*://[^\s'\"<>)]+", re.IGNORECASE), "(an address)"),
    (re.compile(r"(?<![\w.])\d{1,3}(?:\.\d{1,3}){3}(?::\d+)?(?![\w.])"), "(an address)"),
    (re.compile(rf"\b(node|server|instance|host|provider) {_UUID}", re.IGNORECASE), r"the \1"),
    (re.compile(r"(?<![\w./])(?:/[\w.+@-]+){2,}/?"), "(a path)"),
)
"""What no tenant has to know: where services are, and what they call machines and others' servers."""


def fault(message: str, *, code: int = 500, details: str = "") -> dict[str, Any]:
    """`details` are for administrators; if none are given, the message as it was with all internals."""
    public = without_internals(message)
    details = details or (message if public != message else "")
    told = {"code": code, "message": public, "created": utcnow().strftime("%Y-%m-%dT%H:%M:%SZ")}
    return {**told, "details": details} if details else told


def without_internals(message: str) -> str:
    for pattern, instead in _INTERNALS:
        message = pattern.sub(instead, message)
    return message
