"""What a flavor needs, as groups: its numbers, and its `resources:`, `trait:` and `group_policy` specs."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from moorage.scheduler.errors import BadExtraSpecError, SchedulingError
from moorage.scheduler.groups import RequestGroup
from moorage.topology.request import TopologyRequest

_KEY = re.compile(r"^(resources|trait)([a-zA-Z0-9_-]{1,64})?:(.*)$")
_NAME = re.compile(r"^[A-Z0-9_]{1,255}$")
_MB_PER_GB = 1024
_PCPU = "resources:PCPU"
_OVERHEAD_MB = 1
"""Of a guest that has nothing else of its node itself: conditions on the node need a group there."""


@dataclass(frozen=True, slots=True)
class Needs:
    groups: tuple[RequestGroup, ...]
    group_policy: str | None

    @classmethod
    def of(
        cls,
        flavor: Mapping[str, Any],
        topology: TopologyRequest | None = None,
        *,
        root_on_volume: bool = False,
    ) -> Needs:
        """Without what `topology` asks of cells and devices: that is in groups of its own."""
        topology = topology or TopologyRequest()
        specs: Mapping[str, Any] = flavor.get("extra_specs") or {}
        drafts = _Drafts()
        for key, value in specs.items():
            if not (topology.dedicated and key == _PCPU):
                drafts.read(key, str(value))
        drafts.fill_in(_numbers(flavor, topology, root_on_volume))
        groups = tuple(drafts.groups())
        if not groups and topology.cells:
            groups = (RequestGroup(resources={"MEMORY_MB": _OVERHEAD_MB}),)
        if not groups:
            raise SchedulingError("The flavor asks for no resources at all.")
        return cls(groups, _group_policy(specs, groups))


def _numbers(flavor: Mapping[str, Any], topology: TopologyRequest, root_on_volume: bool) -> dict[str, int]:
    """What the flavor's own fields ask for; swap is in MB and takes whole gigabytes of disk.

    Dedicated processors and huge pages are counted for themselves.
    """
    swap = -(-int(flavor.get("swap") or 0) // _MB_PER_GB)
    root = 0 if root_on_volume else int(flavor["disk"])
    return {
        "VCPU": int(flavor["vcpus"]) - len(topology.dedicated),
        "MEMORY_MB": 0 if topology.page_kib else int(flavor["ram"]),
        "DISK_GB": root + int(flavor.get("ephemeral") or 0) + swap,
    }


class _Drafts:
    """Groups in the making, by suffix."""

    def __init__(self) -> None:
        self._resources: dict[str, dict[str, int]] = {"": {}}
        self._traits: dict[str, dict[str, str]] = {}

    def read(self, key: str, value: str) -> None:
        """One extra spec; those that are not about Placement are somebody else's."""
        match = _KEY.match(key)
        if match is None:
            return
        kind, suffix, name = match[1], match[2] or "", match[3]
        if not _NAME.match(name):
            raise BadExtraSpecError(key, "names something that is no resource class or trait")
        if kind == "resources":
            self._resources.setdefault(suffix, {})[name] = _amount(key, value)
        else:
            self._traits.setdefault(suffix, {})[name] = _sign(key, value)

    def fill_in(self, numbers: Mapping[str, int]) -> None:
        """The flavor's own numbers count where no extra spec speaks of that class, in whatever group."""
        spoken_of = {name for resources in self._resources.values() for name in resources}
        if "PCPU" in spoken_of:
            spoken_of.add("VCPU")
        for name, amount in numbers.items():
            if name not in spoken_of:
                self._resources[""][name] = amount

    def groups(self) -> Iterator[RequestGroup]:
        """Those that ask for something, the unsuffixed one first; an amount of 0 asks for nothing."""
        for suffix in sorted({*self._resources, *self._traits}):
            amounts = {name: amount for name, amount in self._resources.get(suffix, {}).items() if amount}
            traits = self._traits.get(suffix, {})
            if amounts:
                yield RequestGroup(
                    suffix,
                    amounts,
                    required_traits=frozenset(name for name, sign in traits.items() if sign == "required"),
                    forbidden_traits=frozenset(name for name, sign in traits.items() if sign == "forbidden"),
                )
            elif traits:
                key = f"trait{suffix}:{min(traits)}"
                raise BadExtraSpecError(key, "is about a group that asks for no resources")


def _amount(key: str, value: str) -> int:
    if not value.isascii() or not value.isdigit():
        raise BadExtraSpecError(key, f"must be a whole number of 0 or more, not '{value}'")
    return int(value)


def _sign(key: str, value: str) -> str:
    if value not in ("required", "forbidden"):
        raise BadExtraSpecError(key, f"must be 'required' or 'forbidden', not '{value}'")
    return value


def _group_policy(specs: Mapping[str, Any], groups: tuple[RequestGroup, ...]) -> str | None:
    policy = specs.get("group_policy")
    if policy is not None and policy not in ("none", "isolate"):
        raise BadExtraSpecError("group_policy", f"must be 'none' or 'isolate', not '{policy}'")
    if policy is None and sum(bool(group.suffix) for group in groups) > 1:
        raise BadExtraSpecError("group_policy", "is missing: several numbered groups need it")
    return policy
