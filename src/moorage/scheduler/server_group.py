"""A server group as the scheduler sees it: its policy, and where its members are."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum


class ServerGroupPolicy(StrEnum):
    AFFINITY = "affinity"
    ANTI_AFFINITY = "anti-affinity"
    SOFT_AFFINITY = "soft-affinity"
    SOFT_ANTI_AFFINITY = "soft-anti-affinity"


@dataclass(slots=True)
class ServerGroupState:
    """Members are counted by node: the machine is what servers shall share, or not share.

    The requests of one pass that are about the same group share this object, so that each decision sees the
    members that the earlier ones placed.
    """

    uuid: str
    policy: ServerGroupPolicy
    max_per_node: int = 1
    """How many members anti-affinity lets a machine have (the rule `max_server_per_host`)."""
    members: dict[str, int] = field(default_factory=dict)
    """How many servers of the group are on a node, by the node's UUID."""

    def on(self, node_uuid: str) -> int:
        return self.members.get(node_uuid, 0)

    def nodes(self) -> frozenset[str]:
        return frozenset(uuid for uuid, count in self.members.items() if count)

    @property
    def placed(self) -> bool:
        """Whether any member is somewhere already."""
        return any(self.members.values())
