"""The security groups that a server is shown with: as asked for, and as added and removed since."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

KEY = "security_groups"
"""In the server's request: the names; empty if nobody asked for any, null if all of them were removed."""
_UNASKED = ("default",)


def of(request: Mapping[str, Any]) -> Sequence[str]:
    names = request.get(KEY, ())
    return () if names is None else names or _UNASKED


def changed(request: Mapping[str, Any], name: str, *, joins: bool) -> dict[str, Any]:
    others = [one for one in of(request) if one != name]
    return {**request, KEY: [*others, name] if joins else others or None}
