"""Pools: a host that reserves machines is one node, which offers what its whole partition has. Pure.

A pool belongs to the host whose name it has. When that host is down, a peer looks after its pool, and after
the servers in it; nothing new comes to it there.

Each pool of a partition offers the same machines, so that Placement counts them once for each host. To have
them counted once, they can be put into a provider that the pools share: then a pool has only seats.
"""

from __future__ import annotations

import uuid
from collections import Counter
from collections.abc import Collection, Sequence

from moorage.drivers.contract import Inventory, Node
from moorage.drivers.ironic.api.record import NodeRecord
from moorage.drivers.ironic.nodes import inventory
from moorage.drivers.ironic.nodes.partition import Partition
from moorage.drivers.ironic.reservations.reservation import Reservation

HYPERVISOR_TYPE = "ironic-pool"
CAPACITY_TYPE = "ironic-capacity"
"""Of the provider that pools share: no place for servers."""
SEAT = "CUSTOM_MOORAGE_SEAT"
"""What a server asks of a pool, besides a machine: without it, Placement could not tell hosts apart."""
_SHARES = "MISC_SHARES_VIA_AGGREGATE"
_NAMESPACE = uuid.UUID("5d0b3a0e-6a0f-4a63-9d5c-7a0f6f2c9b41")


def uuid_of(host: str) -> str:
    """The same for ever, and known to everybody who knows the host's name."""
    return str(uuid.uuid5(_NAMESPACE, host))


def capacity_uuid(partition: Partition) -> str:
    return _of_partition("capacity", partition)


def own(
    host: str,
    partition: Partition,
    records: Collection[NodeRecord],
    reservations: Sequence[Reservation],
    *,
    shared: bool = False,
) -> Node:
    """The pool of a host that lives: all that is free, and what its own servers have; or only seats."""
    pool_uuid = uuid_of(host)
    mine = [one for one in reservations if one.pool_uuid == pool_uuid]
    held = Counter(one.resource_class for one in mine if not one.shared_in)
    described = [record for record in records if record.resource_class]
    if shared:
        inventories = {name: _full(count) for name, count in sorted(held.items())}
    else:
        inventories = _offer(described, reservations, held)
    inventories[SEAT] = Inventory(total=max(1, len(described), len(mine)), max_unit=1)
    traits = {*inventory.TRAITS, *(trait for record in described for trait in record.traits)}
    return Node(
        uuid=pool_uuid,
        name=host,
        hypervisor_type=HYPERVISOR_TYPE,
        binds_ports=True,
        pool=True,
        keeps_ephemeral=True,
        inventories=inventories,
        traits=sorted(traits),
        facts=_facts(partition, described),
        shared_through=_of_partition("aggregate", partition) if shared else "",
    )


def inherited(
    pool_uuid: str, home: str, records: Collection[NodeRecord], reservations: Sequence[Reservation]
) -> Node:
    """The pool of a host that is down: what its servers have, and no more."""
    mine = [one for one in reservations if one.pool_uuid == pool_uuid]
    held = Counter(one.resource_class for one in mine if not one.shared_in)
    present = {inventory.class_of(record.resource_class) for record in records if record.resource_class}
    inventories = {name: _full(held[name]) for name in sorted(present | held.keys())}
    inventories[SEAT] = _full(len(mine))
    return Node(
        uuid=pool_uuid,
        name=home,
        hypervisor_type=HYPERVISOR_TYPE,
        inventories=inventories,
        traits=list(inventory.TRAITS),
        binds_ports=True,
        pool=True,
        keeps_ephemeral=True,
    )


def capacity(
    partition: Partition, records: Collection[NodeRecord], reservations: Sequence[Reservation]
) -> Node:
    """What the pools of a partition share: all that is free, and what the servers of all of them have."""
    shared_uuid = capacity_uuid(partition)
    held = Counter(one.resource_class for one in reservations if one.shared_in == shared_uuid)
    described = [record for record in records if record.resource_class]
    return Node(
        uuid=shared_uuid,
        name=f"{CAPACITY_TYPE} {_named(partition) or '*'} {partition.shard or '*'}",
        hypervisor_type=CAPACITY_TYPE,
        inventories=_offer(described, reservations, held),
        traits=[_SHARES],
        shared_through=_of_partition("aggregate", partition),
    )


def _offer(
    records: Collection[NodeRecord], reservations: Sequence[Reservation], held: Counter[str]
) -> dict[str, Inventory]:
    """Every class that there is stays in the inventory, even if none of it can be had now: a server that has
    just claimed one would be in the way of its removal."""
    reserved = {one.node_uuid for one in reservations}
    present = Counter(inventory.class_of(record.resource_class or "") for record in records)
    free = Counter(
        inventory.class_of(record.resource_class or "")
        for record in records
        if record.uuid not in reserved and inventory.unfit(record) is None
    )
    inventories = {}
    for name in sorted(present | held):
        total = max(present[name], free[name] + held[name])
        elsewhere = total - free[name] - held[name]
        inventories[name] = Inventory(total=total, max_unit=1, reserved=elsewhere)
    return inventories


def _full(held: int) -> Inventory:
    """There is never none at all: a claim that is about to be dropped would be in the way of that."""
    total = max(1, held)
    return Inventory(total=total, max_unit=1, reserved=total - held)


def _of_partition(what: str, partition: Partition) -> str:
    return str(uuid.uuid5(_NAMESPACE, f"{what} {_named(partition)} {partition.shard}"))


def _named(partition: Partition) -> str:
    """Of all groups: nothing, as it was before the unnamed one could be served by itself."""
    return '""' if partition.key == "" else partition.key or ""


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
        "pool": partition.served.terms(),
        **sums,
    }
