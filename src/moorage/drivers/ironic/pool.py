"""Pools: a host that reserves machines is one node, which offers what its whole partition has. Pure.

A pool belongs to the host whose name it has. When that host is down, a peer looks after its pool, and after
the servers in it; nothing new comes to it there.
"""

from __future__ import annotations

import uuid
from collections import Counter
from collections.abc import Collection, Iterable, Sequence

from moorage.drivers.contract import Inventory, Node
from moorage.drivers.ironic import inventory
from moorage.drivers.ironic.partition import Partition
from moorage.drivers.ironic.record import NodeRecord
from moorage.drivers.ironic.reservation import Reservation

HYPERVISOR_TYPE = "ironic-pool"
_NAMESPACE = uuid.UUID("5d0b3a0e-6a0f-4a63-9d5c-7a0f6f2c9b41")


def uuid_of(host: str) -> str:
    """The same for ever, and known to everybody who knows the host's name."""
    return str(uuid.uuid5(_NAMESPACE, host))


def own(
    host: str, partition: Partition, records: Collection[NodeRecord], reservations: Sequence[Reservation]
) -> Node:
    """The pool of a host that lives: all that is free, and what its own servers have.

    Every class that the partition has stays in the inventory, even if none of it can be had now: a server
    that has just claimed one would be in the way of its removal.
    """
    pool_uuid = uuid_of(host)
    held = Counter(one.resource_class for one in reservations if one.pool_uuid == pool_uuid)
    reserved = {one.node_uuid for one in reservations}
    described = [record for record in records if record.resource_class]
    free = Counter(
        inventory.class_of(record.resource_class or "")
        for record in described
        if record.uuid not in reserved and inventory.unfit(record) is None
    )
    present = Counter(inventory.class_of(record.resource_class or "") for record in described)
    inventories = {}
    for name in sorted(present | held):
        total = max(present[name], held[name])
        inventories[name] = Inventory(
            total=total, max_unit=1, reserved=max(0, total - free[name] - held[name])
        )
    traits = {*inventory.TRAITS, *(trait for record in described for trait in record.traits)}
    return Node(pool_uuid, host, HYPERVISOR_TYPE, inventories, sorted(traits), _facts(partition, described))


def inherited(pool_uuid: str, home: str, reservations: Iterable[Reservation]) -> Node:
    """The pool of a host that is down: what its servers have, and no more."""
    held = Counter(one.resource_class for one in reservations if one.pool_uuid == pool_uuid)
    inventories = {name: Inventory(total=count, max_unit=1) for name, count in sorted(held.items())}
    return Node(pool_uuid, home, HYPERVISOR_TYPE, inventories, list(inventory.TRAITS))


def _facts(partition: Partition, records: Collection[NodeRecord]) -> dict[str, object]:
    machines = sorted({inventory.architecture(record) for record in records}) or ["x86_64"]
    sums = {
        name: sum(inventory.number(record.properties.get(field)) for record in records)
        for name, field in (("vcpus", "cpus"), ("memory_mb", "memory_mb"), ("local_gb", "local_gb"))
    }
    return {
        "supported_instances": [[machine, "baremetal", "hvm"] for machine in machines],
        "hypervisor_version": 1,
        "cpu_info": {"arch": machines[0]},
        "pool": {"key": partition.key, "shard": partition.shard},
        **sums,
    }
