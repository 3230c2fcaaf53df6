"""The part of Ironic's nodes that a host may manage. Pure."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

from oslo_config import cfg

from moorage.core.config import ConfigError
from moorage.drivers.ironic.api.record import NodeRecord
from moorage.drivers.served_nodes import ServedNodes

_GROUP = re.compile(r"[A-Za-z0-9_.\-]{1,255}")
_HOST = re.compile(r"[^\s,]{1,255}")


@dataclass(frozen=True)
class Partition:
    key: str | None = None
    """A conductor group, in lower case as Ironic keeps it; empty for the unnamed one, None for all nodes."""
    shard: str = ""
    peers: tuple[str, ...] = ()
    """The hosts that may share it; empty for all that serve the same partition."""

    @classmethod
    def from_conf(cls, conf: cfg.ConfigOpts) -> Partition:
        options = conf.ironic
        key, shard = options.partition_key, options.shard.strip()
        key = None if key is None else key.strip().lower()
        peers = tuple(sorted({peer.strip() for peer in options.peer_list}))
        if key and not _GROUP.fullmatch(key):
            raise ConfigError(f"[ironic] partition_key: {key!r} is no name of a conductor group")
        if shard and ("," in shard or len(shard) > 255):
            raise ConfigError(f"[ironic] shard: {shard!r} is no name of a shard")
        for peer in peers:
            if not _HOST.fullmatch(peer):
                raise ConfigError(f"[ironic] peer_list: {peer!r} is no name of a host")
        return cls(key, shard, peers)

    def filters(self) -> dict[str, str]:
        """For Ironic's own query, so that nothing else is ever listed."""
        group = {} if self.key is None else {"conductor_group": self.key}
        return {**group, "shard": self.shard} if self.shard else group

    def has(self, record: NodeRecord) -> bool:
        """The same question, asked of a node that we know."""
        return self.served.has(record.conductor_group, record.shard or "")

    @property
    def served(self) -> ServedNodes:
        return ServedNodes(self.key, self.shard)

    def facts(self) -> dict[str, Any]:
        """What an agent says of what it serves: its peers are found by it."""
        return {**self.served.terms(), "peers": list(self.peers)}

    def __str__(self) -> str:
        return f"{self.served} with {', '.join(self.peers)}" if self.peers else str(self.served)
