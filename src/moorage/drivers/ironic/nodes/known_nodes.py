"""What an agent knows of Ironic's nodes: those that its partition has, and which of them are its own."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterable, Mapping

import msgspec

from moorage.drivers.ironic.api.record import NodeRecord
from moorage.drivers.ironic.nodes.node_lease import NodeLease

Records = Mapping[str, NodeRecord]


class KnownNodes:
    """A listing takes its time, and nodes change meanwhile: what was seen since it began stays."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self.lease = NodeLease()
        self._records: dict[str, NodeRecord] = {}
        self._seen_at: dict[str, float] = {}
        """When a node was looked at on its own."""
        self._listed: frozenset[str] = frozenset()
        self._owned: frozenset[str] = frozenset()
        self._views: dict[str, Records] = {}
        """What was last answered, as long as it holds: others see by it whether there is anything new."""
        self._quarantined: frozenset[str] = frozenset()

    def replace(self, records: Iterable[NodeRecord], began: float) -> None:
        """The whole partition, as of `began`. Own nodes that are missing stay: a listing is no proof."""
        with self._lock:
            found = {record.uuid: self._marked(record) for record in records}
            listed = frozenset(found)
            for uuid, known in self._records.items():
                if found.get(uuid) == known:
                    found[uuid] = known  # the same object: what was derived from it still holds
            newer = {uuid for uuid, when in self._seen_at.items() if when > began}
            stay = newer | {uuid for uuid in self._owned if uuid not in found}
            known_now = found | {uuid: self._records[uuid] for uuid in stay if uuid in self._records}
            self._seen_at = {uuid: self._seen_at[uuid] for uuid in newer}
            if listed != self._listed or not _same(known_now, self._records):
                self._records, self._listed = known_now, listed
                self._views.clear()

    def update(self, stay: Iterable[NodeRecord], left: Iterable[NodeRecord], began: float) -> None:
        """What has changed in the partition, or is not in it any more, as of `began`."""
        with self._lock:
            newer = {uuid: when for uuid, when in self._seen_at.items() if when > began}
            self._seen_at = newer
            here = {record.uuid: self._marked(record) for record in stay}
            gone = {record.uuid: self._marked(record) for record in left if record.uuid in self._records}
            changed = {
                uuid: record
                for uuid, record in (here | gone).items()
                if uuid not in newer and self._records.get(uuid) != record
            }
            listed = (self._listed | here.keys()) - gone.keys()
            if changed or listed != self._listed:
                self._records |= changed
                for uuid in gone.keys() - self._owned:
                    del self._records[uuid]
                self._listed = listed
                self._views.clear()

    def put(self, record: NodeRecord) -> NodeRecord:
        """The record as it is kept, which says also whether the node is in quarantine."""
        with self._lock:
            kept = self._marked(record)
            self._seen_at[record.uuid] = time.monotonic()
            if self._records.get(record.uuid) != kept:
                self._records[record.uuid] = kept
                self._views.clear()
            return kept

    def quarantine(self, uuids: frozenset[str]) -> None:
        """These, and no others."""
        with self._lock:
            changed, self._quarantined = self._quarantined ^ uuids, uuids
            for uuid in changed & self._records.keys():
                self._records[uuid] = self._marked(self._records[uuid])
                self._views.clear()

    def _marked(self, record: NodeRecord) -> NodeRecord:
        marked = record.uuid in self._quarantined
        return record if record.quarantined == marked else msgspec.structs.replace(record, quarantined=marked)

    def drop(self, uuid: str) -> None:
        with self._lock:
            if self._records.pop(uuid, None) is not None:
                self._views.clear()

    def listed(self) -> Records:
        """The nodes of the partition; the same object until something changes."""
        with self._lock:
            return self._view("listed", self._listed)

    def owned(self) -> Records:
        """Likewise, those that are this host's."""
        with self._lock:
            return self._view("owned", self._owned)

    def own(self, uuids: Iterable[str]) -> None:
        owned = frozenset(uuids)
        with self._lock:
            if owned != self._owned:
                self._owned = owned
                self._views.pop("owned", None)
        self.lease.keep(owned)

    def _view(self, name: str, uuids: frozenset[str]) -> Records:
        if name not in self._views:
            self._views[name] = {uuid: self._records[uuid] for uuid in uuids if uuid in self._records}
        return self._views[name]


def _same(one: Records, other: Records) -> bool:
    """Not only alike: the very same records."""
    return len(one) == len(other) and all(other.get(uuid) is record for uuid, record in one.items())
