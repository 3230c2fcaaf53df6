"""Which nodes of an Ironic a host serves, as hosts tell each other: all, a group's, a shard's. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

UNNAMED = "unnamed_group"
"""Where the terms of a host say that it serves the group without a name. Their `key` is empty then, as that
of a host that serves all groups: agents of earlier releases say it so, and know no other meaning."""


class ServedNodes(NamedTuple):
    key: str | None
    """A conductor group; empty for the one without a name, None for all of them."""
    shard: str = ""
    """Empty for all."""

    @classmethod
    def read(cls, terms: Mapping[str, Any]) -> ServedNodes:
        key = str(terms.get("key") or "")
        return cls(key if key or terms.get(UNNAMED) else None, str(terms.get("shard") or ""))

    def terms(self) -> dict[str, Any]:
        said = {"key": self.key or "", "shard": self.shard}
        return {**said, UNNAMED: True} if self.key == "" else said

    def has(self, group: str, shard: str) -> bool:
        return self.key in (None, group) and self.shard in ("", shard)

    def meets(self, other: ServedNodes) -> bool:
        """Whether there can be a node that both have."""
        groups = None in (self.key, other.key) or self.key == other.key
        return groups and ("" in (self.shard, other.shard) or self.shard == other.shard)

    def __str__(self) -> str:
        group = "all groups" if self.key is None else f"group {self.key}" if self.key else "the unnamed group"
        return f"{group}, shard {self.shard}" if self.shard else group
