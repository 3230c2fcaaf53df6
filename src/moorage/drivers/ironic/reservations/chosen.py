"""Machines that the scheduler chose, on a host that reserves machines: those of servers from before.

Each is a node of the cloud until its server is gone; then its machine is one of the pool's, and of no node.
"""

from __future__ import annotations

import msgspec

from moorage.drivers.contract import Node
from moorage.drivers.ironic.api.record import NodeRecord
from moorage.drivers.ironic.nodes import inventory
from moorage.drivers.ironic.nodes.descriptions import Records, describe
from moorage.drivers.ironic.nodes.leftovers import LastMarks
from moorage.drivers.ironic.reservations.reservation import Reservations
from moorage.drivers.shared_nodes import SharedNode


def find(records: Records, reservations: Reservations, last: LastMarks) -> frozenset[str]:
    """Those of a partition, whoever keeps them: what is written down there says that the server's node is
    the machine itself."""
    reserved = {one.node_uuid for one in reservations.all()}
    used = [one for one in records.values() if one.instance_uuid is not None and one.uuid not in reserved]
    return frozenset(uuid for uuid, mark in last.of(used).items() if mark.home == uuid)


def shared(record: NodeRecord) -> SharedNode | None:
    """It stays with its server's host: it is never free for another one."""
    found = describe(record)
    return None if found is None else SharedNode(found.node, free=False)


def node(record: NodeRecord) -> Node | None:
    """As the scheduler has to see it: nothing comes to it any more."""
    found = inventory.find(record).node
    if found is None:
        return None
    full = {
        name: msgspec.structs.replace(unit, reserved=unit.total) for name, unit in found.inventories.items()
    }
    return msgspec.structs.replace(found, inventories=full)
