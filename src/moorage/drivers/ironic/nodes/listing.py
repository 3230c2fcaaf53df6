"""What there is in Ironic, kept up to date: all of it now and then, and in between only what has changed.

Ironic can't be asked for changes since a time. But it sorts nodes by the time of their last change, which
every change of a node sets, that of a trait included: so the newest are read, back to the last look. What
leaves no trace there, as a node that was deleted, the next listing of everything finds.
"""

from __future__ import annotations

import time
from datetime import datetime, timedelta

from moorage.core.clock import utcnow
from moorage.core.paging import MarkerGoneError
from moorage.drivers.ironic.api.client import SORTED_DETAIL, IronicClient, NodeChange
from moorage.drivers.ironic.nodes.known_nodes import KnownNodes
from moorage.drivers.ironic.nodes.partition import Partition

_SLACK = timedelta(seconds=60)
"""Clocks of Ironic's services differ, and a change is seen a little later than its time says."""
_MOST = 2_000
"""Changes beyond which a listing of everything, which tells less of each node, is cheaper."""
_PAGE = 100


class NodeListing:
    def __init__(self, client: IronicClient, fleet: KnownNodes, full_interval: float) -> None:
        """`full_interval` is the number of seconds after which everything is listed; 0 for at each look."""
        self._client = client
        self._fleet = fleet
        self._full_interval = full_interval
        self._partition: Partition | None = None
        self._listed_at = 0.0
        self._newest: datetime | None = None
        """The time of the newest change that we know of; None if we can't tell."""

    def look(self, partition: Partition) -> None:
        began = time.monotonic()
        changes = None if self._is_due(partition, began) else self._changes()
        if changes is None:
            self._list_everything(partition, began)
            return
        self._newest = _latest([change.at for change in changes], self._newest)
        stay = [change.record for change in changes if partition.has(change.record)]
        left = [change.record for change in changes if not partition.has(change.record)]
        self._fleet.update(stay, left, began)

    def _is_due(self, partition: Partition, now: float) -> bool:
        return partition != self._partition or now >= self._listed_at + self._full_interval

    def _list_everything(self, partition: Partition, began: float) -> None:
        newest = self._newest_change()  # before we list: what changes meanwhile is read at the next look
        listed = [record for page in self._client.pages(partition.filters()) for record in page]
        self._fleet.replace(listed, began)
        self._partition, self._listed_at, self._newest = partition, began, newest

    def _newest_change(self) -> datetime | None:
        if not self._full_interval or self._client.version() < SORTED_DETAIL:
            return None
        page = next(self._client.newest_changes(10), [])
        return _latest([change.at for change in page], None)

    def _changes(self) -> list[NodeChange] | None:
        """Of all groups: a node that has left ours is a change, too. None if that is not the way to go."""
        if self._newest is None:
            return None
        try:
            return self._changes_since(self._newest - _SLACK)
        except MarkerGoneError:
            return None

    def _changes_since(self, since: datetime) -> list[NodeChange] | None:
        found: list[NodeChange] = []
        for page in self._client.newest_changes(_PAGE):
            news = [change for change in page if change.at is None or change.at > since]
            found += news
            if len(news) < len(page):
                break
            if len(found) > _MOST:
                return None
        return found


def _latest(times: list[datetime | None], known: datetime | None) -> datetime | None:
    """By our clock at the latest: one of Ironic's that is fast must not hide what the others write."""
    found = [when for when in (*times, known) if when is not None]
    return min(max(found), utcnow()) if found else None
