"""What a driver says of guests on its machine that another system has made, and that it may adopt."""

from __future__ import annotations

import msgspec


class FoundGuest(msgspec.Struct, frozen=True):
    server_uuid: str
    name: str
    """What the machine calls it."""
    refusal: str = ""
    """Why it can't be adopted; empty if it is, or would be."""
