"""What a server asks of a machine, if nobody has chosen one for it yet. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from moorage.drivers.contract import DriverError, ServerSpec
from moorage.drivers.ironic.api.record import NodeRecord
from moorage.drivers.ironic.nodes import inventory

HINT = "candidate_node"
"""The scheduler hint that names machines, by Ironic's UUIDs or names: it has to be one of them."""
_CLASS = re.compile(r"resources[A-Za-z0-9_-]*:(CUSTOM_[A-Z0-9_]+)")
_TRAIT = re.compile(r"trait[A-Za-z0-9_-]*:([A-Z0-9_]+)")


@dataclass(frozen=True)
class MachineRequirements:
    resource_class: str
    """As Placement writes it."""
    traits: frozenset[str] = frozenset()
    forbidden: frozenset[str] = frozenset()
    nodes: frozenset[str] = frozenset()
    """UUIDs or names; empty for any."""

    @classmethod
    def of(cls, spec: ServerSpec, seat: str = "") -> MachineRequirements:
        """`seat` is a class that every host has, which says nothing about machines."""
        specs = spec.flavor.get("extra_specs", {})
        found = (_CLASS.fullmatch(name) for name, amount in specs.items() if str(amount) != "0")
        classes = sorted({match[1] for match in found if match} - {seat})
        if len(classes) != 1:
            raise DriverError(
                f"the flavor has to ask for one resource class of bare metal: {', '.join(classes) or 'none'}"
            )
        image = (spec.image or {}).get("properties", {})
        return cls(
            resource_class=classes[0],
            traits=_traits(specs, "required") | _traits(image, "required"),
            forbidden=_traits(specs, "forbidden"),
            nodes=_named(spec.hints.get(HINT)),
        )

    def fits(self, record: NodeRecord) -> bool:
        """Whether a machine would do, and is free as far as we know."""
        named = not self.nodes or record.uuid in self.nodes or record.name in self.nodes
        return named and self.objection(record) is None

    def objection(self, record: NodeRecord) -> str | None:
        """What there is against a machine, if it is one of those that were named; None if it would do."""
        unfit, traits = inventory.unfit(record), set(record.traits)
        if unfit is not None:
            return unfit.value
        if inventory.class_of(record.resource_class or "") != self.resource_class:
            return f"it is not of the class {self.resource_class}"
        if not self.traits <= traits:
            return f"it does not have {', '.join(sorted(self.traits - traits))}"
        if self.forbidden & traits:
            return f"it has {', '.join(sorted(self.forbidden & traits))}"
        return None

    def __str__(self) -> str:
        parts = [self.resource_class, *sorted(self.traits), *(f"!{name}" for name in sorted(self.forbidden))]
        named = f" among {', '.join(sorted(self.nodes))}" if self.nodes else ""
        return ", ".join(parts) + named


def _traits(said: Mapping[str, Any], value: str) -> frozenset[str]:
    found = (_TRAIT.fullmatch(name) for name, given in said.items() if given == value)
    return frozenset(match[1] for match in found if match)


def _named(hint: Any) -> frozenset[str]:
    """Clients send one as it is, and several as a list."""
    given = hint if isinstance(hint, list) else [] if hint is None else [hint]
    return frozenset(str(name) for name in given)
