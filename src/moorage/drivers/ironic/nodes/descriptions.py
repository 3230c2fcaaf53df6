"""Nodes as the scheduler sees them: each is described when somebody asks for it, and then not again.

Of 100,000 nodes that ten hosts share, each host describes only its own share.
"""

from __future__ import annotations

from collections.abc import Iterator, KeysView, Mapping

from moorage.drivers.ironic.api.record import NodeRecord
from moorage.drivers.ironic.nodes import inventory
from moorage.drivers.shared_nodes import SharedNode

Records = Mapping[str, NodeRecord]


class Descriptions:
    def __init__(self) -> None:
        self._made: dict[str, tuple[NodeRecord, SharedNode | None]] = {}

    def of(self, record: NodeRecord) -> SharedNode | None:
        """None if it can't be described: it has no resource class."""
        known = self._made.get(record.uuid)
        if known is None or known[0] is not record:
            known = (record, describe(record))
            self._made[record.uuid] = known
        return known[1]

    def of_all(self, records: Records) -> Mapping[str, SharedNode]:
        """Of all that can be described; others are forgotten."""
        made = self._made.copy()  # others may add to it meanwhile
        self._made = {uuid: one for uuid, one in made.items() if uuid in records}
        return _Described(self, records)


class _Described(Mapping[str, SharedNode]):
    def __init__(self, descriptions: Descriptions, records: Records) -> None:
        self._descriptions = descriptions
        self._records = {uuid: record for uuid, record in records.items() if record.resource_class}

    def __getitem__(self, uuid: str) -> SharedNode:
        described = self._descriptions.of(self._records[uuid])
        assert described is not None
        return described

    def __iter__(self) -> Iterator[str]:
        return iter(self._records)

    def __len__(self) -> int:
        return len(self._records)

    def __contains__(self, uuid: object) -> bool:
        return uuid in self._records

    def keys(self) -> KeysView[str]:
        """A dictionary's own, which is quick with sets."""
        return self._records.keys()


def describe(record: NodeRecord) -> SharedNode | None:
    node = inventory.find(record).node
    return None if node is None else SharedNode(node, free=record.instance_uuid is None)
