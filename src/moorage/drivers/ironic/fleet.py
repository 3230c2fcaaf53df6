"""What an agent knows of Ironic's nodes: those that its partition has, and which of them are its own."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterable

from moorage.drivers.ironic.record import NodeRecord


class Fleet:
    """A listing takes its time, and nodes change meanwhile: what was seen since it began stays."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._records: dict[str, NodeRecord] = {}
        self._seen_at: dict[str, float] = {}
        """When a node was looked at on its own."""
        self._listed: frozenset[str] = frozenset()
        self._owned: frozenset[str] | None = None
        self._closed = False

    def replace(self, records: Iterable[NodeRecord], began: float) -> None:
        """The whole partition, as of `began`. Own nodes that are missing stay: a listing is no proof."""
        found = {record.uuid: record for record in records}
        with self._changed:
            for uuid, known in self._records.items():
                if found.get(uuid) == known:
                    found[uuid] = known  # the same object: what was derived from it still holds
            newer = {uuid for uuid, when in self._seen_at.items() if when > began}
            stay = newer | {uuid for uuid in self._owned or () if uuid not in found}
            self._records = found | {uuid: self._records[uuid] for uuid in stay if uuid in self._records}
            self._seen_at = {uuid: self._seen_at[uuid] for uuid in newer}
            self._listed = frozenset(found)

    def put(self, record: NodeRecord) -> None:
        with self._changed:
            self._records[record.uuid] = record
            self._seen_at[record.uuid] = time.monotonic()

    def drop(self, uuid: str) -> None:
        with self._changed:
            self._records.pop(uuid, None)

    def listed(self) -> dict[str, NodeRecord]:
        """The nodes of the partition."""
        with self._changed:
            return {uuid: self._records[uuid] for uuid in self._listed if uuid in self._records}

    def owned(self) -> dict[str, NodeRecord]:
        with self._changed:
            return {uuid: self._records[uuid] for uuid in self._owned or () if uuid in self._records}

    def own(self, uuids: Iterable[str]) -> None:
        with self._changed:
            self._owned = frozenset(uuids)
            self._changed.notify_all()

    def owns(self, uuid: str, patience: float) -> bool:
        """Waits a while if it is not known yet what we own: after a start we have to be told."""
        with self._changed:
            self._changed.wait_for(lambda: self._owned is not None or self._closed, patience)
            return self._owned is not None and uuid in self._owned

    def close(self) -> None:
        """Nobody waits any more."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()
