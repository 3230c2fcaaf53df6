"""From Ironic's record of a node to what the scheduler knows of it. Pure."""

from __future__ import annotations

import re
from enum import StrEnum
from typing import NamedTuple

from moorage.drivers.contract import Inventory, Node
from moorage.drivers.ironic.api.record import AVAILABLE, NodeRecord

HYPERVISOR_TYPE = "ironic"
TRAITS = ("COMPUTE_NODE",)
"""Of every node, whatever Ironic says of it."""


class Unfit(StrEnum):
    """Why no server can land on a node now."""

    NO_CLASS = "it has no resource class"
    MAINTENANCE = "it is in maintenance"
    RETIRED = "it is being retired"
    IN_USE = "it is used already"
    QUARANTINED = "it failed too often, and is in quarantine"
    NOT_AVAILABLE = "it is not available"
    NO_POWER_STATE = "its power state is not known"


class DescribedNode(NamedTuple):
    node: Node | None
    """None if it can't even be described."""
    unfit: Unfit | None


def find(record: NodeRecord) -> DescribedNode:
    """A node that is not fit keeps its unit of inventory, reserved: a server may have it allocated."""
    why = unfit(record)
    if not record.resource_class:
        return DescribedNode(None, why)
    unit = Inventory(total=1, max_unit=1, reserved=0 if why is None else 1)
    machine = architecture(record)
    node = Node(
        uuid=record.uuid,
        name=record.uuid,
        hypervisor_type=HYPERVISOR_TYPE,
        binds_ports=True,
        keeps_ephemeral=True,
        inventories={class_of(record.resource_class): unit},
        traits=sorted({*TRAITS, *record.traits}),
        facts={
            "supported_instances": [[machine, "baremetal", "hvm"]],
            "hypervisor_version": 1,
            "cpu_info": {"arch": machine},
            "vcpus": number(record.properties.get("cpus")),
            "memory_mb": number(record.properties.get("memory_mb")),
            "local_gb": number(record.properties.get("local_gb")),
            "ironic_name": record.name or "",
            "conductor_group": record.conductor_group,
            "shard": record.shard or "",
            "traits": sorted(record.traits),
        },
    )
    return DescribedNode(node, why)


def unfit(record: NodeRecord) -> Unfit | None:
    checks = (
        (not record.resource_class, Unfit.NO_CLASS),
        (record.maintenance, Unfit.MAINTENANCE),
        (record.retired, Unfit.RETIRED),
        (record.instance_uuid is not None, Unfit.IN_USE),
        (record.quarantined, Unfit.QUARANTINED),
        (record.state != AVAILABLE, Unfit.NOT_AVAILABLE),
        (record.power_state in (None, "error"), Unfit.NO_POWER_STATE),
    )
    return next((why for applies, why in checks if applies), None)


def class_of(resource_class: str) -> str:
    """As Placement writes it, which every client of Ironic has to derive in the same way."""
    return "CUSTOM_" + re.sub("[^0-9A-Za-z]+", "_", resource_class).upper()


def architecture(record: NodeRecord) -> str:
    return str(record.properties.get("cpu_arch") or "x86_64")


def number(value: object) -> int:
    """Ironic keeps what it is given: numbers, texts of numbers, or nonsense."""
    try:
        return int(str(value))
    except ValueError:
        return 0
