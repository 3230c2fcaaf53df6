"""The part of Ironic's nodes that a host may manage. Pure."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

from oslo_config import cfg

from moorage.core.config import ConfigError
from moorage.drivers.ironic.record import NodeRecord

_GROUP = re.compile(r"[A-Za-z0-9_.\-]{1,255}")
_HOST = re.compile(r"[^\s,]{1,255}")


@dataclass(frozen=True)
class Partition:
    key: str = ""
    """A conductor group, in lower case as Ironic keeps it; empty for all nodes."""
    shard: str = ""
    peers: tuple[str, ...] = ()
    """The hosts that may share it; empty for all that serve the same partition."""

    @classmethod
    def from_conf(cls, conf: cfg.ConfigOpts) -> Partition:
        options = conf.ironic
        key, shard = options.partition_key.strip(), options.shard.strip()
        peers = tuple(sorted({peer.strip() for peer in options.peer_list}))
        if key and not _GROUP.fullmatch(key):
            raise ConfigError(f"[ironic] partition_key: {key!r} is no name of a conductor group")
        if shard and ("," in shard or len(shard) > 255):
            raise ConfigError(f"[ironic] shard: {shard!r} is no name of a shard")
        for peer in peers:
            if not _HOST.fullmatch(peer):
                raise ConfigError(f"[ironic] peer_list: {peer!r} is no name of a host")
        return cls(key.lower(), shard, peers)

    def filters(self) -> dict[str, str]:
        """For Ironic's own query, so that nothing else is ever listed."""
        named = {"conductor_group": self.key, "shard": self.shard}
        return {name: value for name, value in named.items() if value}

    def has(self, record: NodeRecord) -> bool:
        """The same question, asked of a node that we know."""
        return self.key in ("", record.conductor_group) and self.shard in ("", record.shard)

    def facts(self) -> dict[str, Any]:
        """What an agent says of what it serves: its peers are found by it."""
        return {"key": self.key, "shard": self.shard, "peers": list(self.peers)}
