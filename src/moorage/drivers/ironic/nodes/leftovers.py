"""What machines are held for, by what is written down on them: what conductors don't know of is swept."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable

from moorage.drivers.ironic.api.client import IronicError
from moorage.drivers.ironic.api.record import DEPLOYED_STATES, NodeRecord
from moorage.drivers.ironic.reservations.reservation import Reservation
from moorage.drivers.ironic.servers import mark as marks
from moorage.drivers.ironic.servers.mark import Mark
from moorage.drivers.shared_nodes import Held

_MOST_LOOKS = 200
"""Nodes that are asked about at one pass: there may be many that are none of ours."""


class LastMarks:
    """The marks of nodes that a listing leaves in doubt: each is looked at once, until it changes."""

    def __init__(self, examine: Callable[[str], NodeRecord | None]) -> None:
        self._examine = examine
        self._known: dict[str, tuple[NodeRecord, Mark | None]] = {}

    def of(self, records: Iterable[NodeRecord]) -> dict[str, Mark]:
        """By node."""
        known, looks = {}, 0
        for record in records:
            listed = record.as_listed()
            before = self._known.get(record.uuid)
            if before is not None and before[0] == listed:
                known[record.uuid] = before
            elif looks < _MOST_LOOKS:
                looks += 1
                with contextlib.suppress(IronicError):  # it is asked again next time
                    known[record.uuid] = (listed, self._look(record))
        self._known = known
        return {uuid: mark for uuid, (_, mark) in known.items() if mark is not None}

    def _look(self, record: NodeRecord) -> Mark | None:
        found = self._examine(record.uuid)
        if found is None or found.instance_uuid != record.instance_uuid:
            return None
        return mark_of(found)


def mark_of(record: NodeRecord) -> Mark | None:
    """Of a node that is a server's, the mark that goes with that; else that of the last one."""
    return marks.read_last(record) if record.instance_uuid is None else marks.read(record)


def held(records: Iterable[NodeRecord], last: LastMarks) -> set[Held]:
    """By nodes that have a server, and by such that are deployed and have none."""
    known = list(records)
    nobodys = [one for one in known if one.instance_uuid is None and one.state in DEPLOYED_STATES]
    servers = {Held(one.instance_uuid, one.uuid) for one in known if one.instance_uuid is not None}
    return servers | {Held(mark.server_uuid, uuid) for uuid, mark in last.of(nobodys).items()}


def held_through(
    records: Iterable[NodeRecord], reservations: Iterable[Reservation], last: LastMarks
) -> set[Held]:
    """By reservations, and by nodes that have a mark of ours and no reservation, whoever keeps the pools."""
    reserved = list(reservations)
    machines = {one.node_uuid for one in reserved}
    doubtful = [
        one
        for one in records
        if one.uuid not in machines and (one.instance_uuid is not None or one.state in DEPLOYED_STATES)
    ]
    instances = {one.uuid: one.instance_uuid for one in doubtful}
    strays = {
        Held(mark.server_uuid, mark.home if instances[uuid] else uuid)
        for uuid, mark in last.of(doubtful).items()
    }
    return strays | {Held(one.server_uuid, one.pool_uuid) for one in reserved}
