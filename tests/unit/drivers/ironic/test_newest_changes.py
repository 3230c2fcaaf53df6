"""Pages of nodes by their last change: read on as long as Ironic really goes on where it was."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta

import msgspec
import pytest
from keystoneauth1 import session
from keystoneauth1.adapter import Adapter

from moorage.core.paging import MarkerGoneError
from moorage.drivers.ironic.api.client import IronicClient

NOW = datetime(2026, 1, 1, tzinfo=UTC)


class Sorted(IronicClient):
    """An Ironic whose database takes the time of a marker for one of another zone."""

    def __init__(self, nodes: int, offset: timedelta = timedelta(), most: int = 1000) -> None:
        super().__init__(Adapter(session.Session()))
        self._nodes = [(f"node-{number}", NOW - timedelta(minutes=number)) for number in range(nodes)]
        self._offset = offset
        self._most = most
        self.asked = 0

    def _ask_page(self, collection: str, query: Mapping[str, str], marker: str | None) -> bytes:
        self.asked += 1
        limit = min(int(query["limit"]), self._most)
        before = dict(self._nodes).get(marker or "")
        found = [
            {"uuid": uuid, "updated_at": at.isoformat()}
            for uuid, at in self._nodes
            if before is None or at < before + self._offset
        ]
        return msgspec.json.encode({"nodes": found[:limit]})


def read(ironic: Sorted, limit: int) -> list[str]:
    return [change.record.uuid for page in ironic.newest_changes(limit) for change in page]


@pytest.mark.parametrize(("count", "limit"), [(0, 3), (2, 3), (3, 3), (4, 3), (7, 3), (7, 2), (100, 10)])
def test_all_come_once(count: int, limit: int) -> None:
    assert read(Sorted(count), limit) == [f"node-{number}" for number in range(count)]


@pytest.mark.parametrize("hours", [-3.5, 1.0, 14.0])
def test_a_page_that_is_not_the_next_one_is_not_taken_for_it(hours: float) -> None:
    ironic = Sorted(1000, timedelta(hours=hours))
    pages = ironic.newest_changes(10)
    assert len(next(pages)) == 10
    with pytest.raises(MarkerGoneError):
        next(pages)
    assert ironic.asked == 2


def test_an_ironic_that_tells_of_one_node_at_a_time_can_not_be_checked() -> None:
    with pytest.raises(MarkerGoneError):
        read(Sorted(3, most=1), 10)
