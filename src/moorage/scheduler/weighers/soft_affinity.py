"""Soft affinity: the more members of the group a host has, the better."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from moorage.scheduler.criteria import Criteria
from moorage.scheduler.option import HostOption
from moorage.scheduler.server_group import ServerGroupPolicy


@dataclass(frozen=True, slots=True)
class SoftAffinityWeigher:
    name: ClassVar[str] = "soft affinity"
    lowest: ClassVar[float | None] = None
    multiplier: float

    def applies(self, request: Criteria) -> bool:
        group = request.server_group
        return group is not None and group.policy is ServerGroupPolicy.SOFT_AFFINITY

    def weigh(self, option: HostOption, request: Criteria) -> float:
        group = request.server_group
        return 0 if group is None else group.on(option.host.node_uuid)
