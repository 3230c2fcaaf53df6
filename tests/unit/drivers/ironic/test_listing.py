"""When all nodes are listed, and when only those that have changed."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec
import pytest
from keystoneauth1 import session
from keystoneauth1.adapter import Adapter

from moorage.core.microversions import Version
from moorage.core.paging import MarkerGoneError
from moorage.drivers.ironic.api.client import IronicClient, NodeChange
from moorage.drivers.ironic.api.record import NodeRecord
from moorage.drivers.ironic.nodes.known_nodes import KnownNodes
from moorage.drivers.ironic.nodes.listing import NodeListing
from moorage.drivers.ironic.nodes.partition import Partition

LONG_AGO = datetime(2020, 1, 1, tzinfo=UTC)
EVERYTHING, CHANGES = "everything", "changes"


class Nodes(IronicClient):
    """Ironic's answers, and what it was asked."""

    def __init__(self) -> None:
        super().__init__(Adapter(session.Session()))
        self.nodes: dict[str, tuple[NodeRecord, datetime | None]] = {}
        self.newest_version: Version = (1, 82)
        self.asked: list[str] = []

    def put(self, uuid: str, at: datetime | None, **fields: Any) -> None:
        self.nodes[uuid] = (NodeRecord(uuid, **fields), at)

    def version(self) -> Version:
        return self.newest_version

    def pages(
        self, filters: Mapping[str, str], more: Mapping[str, tuple[int, int]] | None = None
    ) -> Iterator[list[NodeRecord]]:
        self.asked.append(EVERYTHING)
        group = filters.get("conductor_group", "")
        yield [record for record, _ in self.nodes.values() if group in ("", record.conductor_group)]

    def newest_changes(self, limit: int) -> Iterator[list[NodeChange]]:
        self.asked.append(CHANGES)
        unset = datetime.max.replace(tzinfo=UTC)  # PostgreSQL sorts them so
        found = sorted(self.nodes.values(), key=lambda node: node[1] or unset, reverse=True)
        for start in range(0, len(found), limit):
            page = found[start : start + limit]
            yield [NodeChange(*node) for node in page]
            if page[-1][1] is None:
                raise MarkerGoneError(page[-1][0].uuid)


@pytest.fixture
def ironic() -> Nodes:
    made = Nodes()
    made.put("a", LONG_AGO)
    made.put("b", LONG_AGO + timedelta(hours=1))
    return made


def looked(ironic: Nodes, listing: NodeListing, partition: Partition | None = None) -> str:
    """What it came down to."""
    del ironic.asked[:]
    listing.look(partition or Partition())
    return EVERYTHING if EVERYTHING in ironic.asked else CHANGES


def test_after_a_listing_only_changes_are_read(ironic: Nodes) -> None:
    fleet = KnownNodes()
    listing = NodeListing(ironic, fleet, 600)
    assert looked(ironic, listing) == EVERYTHING
    ironic.put("a", LONG_AGO + timedelta(hours=2), power_state="power on")
    ironic.put("c", None)
    assert looked(ironic, listing) == CHANGES
    assert fleet.listed() == {uuid: record for uuid, (record, _) in ironic.nodes.items()}
    view = fleet.listed()
    assert looked(ironic, listing) == CHANGES
    assert fleet.listed() is view


def test_a_change_whose_clock_is_a_little_slow_is_seen(ironic: Nodes) -> None:
    fleet = KnownNodes()
    listing = NodeListing(ironic, fleet, 600)
    listing.look(Partition())
    ironic.put("a", LONG_AGO + timedelta(minutes=59, seconds=30), name="renamed")
    listing.look(Partition())
    assert fleet.listed()["a"].name == "renamed"


def test_a_clock_that_is_fast_does_not_hide_other_changes(ironic: Nodes) -> None:
    fleet = KnownNodes()
    ironic.put("b", datetime.now(UTC) + timedelta(days=1))
    listing = NodeListing(ironic, fleet, 600)
    listing.look(Partition())
    ironic.put("a", datetime.now(UTC), name="renamed")
    listing.look(Partition())
    assert fleet.listed()["a"].name == "renamed"


def test_a_node_that_left_the_partition_is_not_listed_any_more(ironic: Nodes) -> None:
    fleet = KnownNodes()
    listing = NodeListing(ironic, fleet, 600)
    for uuid, minutes in (("a", 1), ("b", 2)):
        ironic.put(uuid, LONG_AGO + timedelta(minutes=minutes), conductor_group="g")
    listing.look(Partition("g"))
    fleet.own({"b"})
    for uuid, minutes in (("a", 3), ("b", 4)):
        ironic.put(uuid, LONG_AGO + timedelta(minutes=minutes), conductor_group="other")
    assert looked(ironic, listing, Partition("g")) == CHANGES
    assert fleet.listed() == {}
    assert fleet.owned()["b"].conductor_group == "other", "it stays known as long as it is ours"


@pytest.mark.parametrize(
    "why", ["another partition", "always", "old", "many", "untouched", "no times", "due"]
)
def test_everything_is_listed_where_changes_would_not_do(ironic: Nodes, why: str) -> None:
    if why == "old":
        ironic.newest_version = (1, 42)
    if why == "no times":
        ironic.nodes = {uuid: (record, None) for uuid, (record, _) in ironic.nodes.items()}
    listing = NodeListing(ironic, KnownNodes(), {"always": 0.0, "due": 1e-9}.get(why, 600))
    listing.look(Partition())
    if why == "many":
        for number in range(2_100):
            ironic.put(f"new-{number}", LONG_AGO + timedelta(hours=2))
    if why == "untouched":
        for number in range(100):
            ironic.put(f"new-{number}", None)
    assert looked(ironic, listing, Partition("g" if why == "another partition" else "")) == EVERYTHING


def test_what_was_seen_since_a_look_began_stays(ironic: Nodes) -> None:
    fleet = KnownNodes()
    fleet.replace([NodeRecord("a", name="old")], began=0)
    seen = NodeRecord("a", name="seen just now")
    fleet.put(seen)
    fleet.update([NodeRecord("a", name="older")], [], began=0)
    assert fleet.listed() == {"a": seen}
    before = fleet.listed()
    fleet.update([msgspec.structs.replace(seen)], [NodeRecord("unknown")], began=float("inf"))
    assert fleet.listed() is before
