"""Hosts that serve some of the same nodes without sharing them out: operators are told."""

from __future__ import annotations

import logging
from typing import Any

import pytest

from moorage.compute.hosts import registry
from moorage.conductor.chores.overlap_watch import OVERLAPS, OverlapWatch
from moorage.conductor.ownership import overlaps
from moorage.conductor.ownership.overlaps import OverlapReason
from moorage.db.database import Database
from moorage.drivers.ironic.nodes.partition import Partition

ALL = Partition()
UNNAMED = Partition(key="")
RACK = Partition(key="rack")
BY_RESERVATION = {"selection": "reservation"}


def found(**hosts: Partition | dict[str, Any]) -> list[tuple[str, str, OverlapReason]]:
    terms = {host: said.facts() if isinstance(said, Partition) else said for host, said in hosts.items()}
    return [
        (",".join(each.one.hosts), ",".join(each.other.hosts), each.reason) for each in overlaps.among(terms)
    ]


def test_a_host_of_all_groups_overlaps_with_one_of_a_group_and_groups_not_with_each_other() -> None:
    assert found(a=RACK, b=RACK, c=UNNAMED, d=Partition(key="other")) == []
    assert found(a=ALL, b=RACK, c=RACK) == [("a", "b,c", OverlapReason.PARTITIONS)]
    assert found(a=ALL, b=UNNAMED) == [("a", "b", OverlapReason.PARTITIONS)]


def test_shards_overlap_only_with_themselves_and_with_all() -> None:
    assert found(a=Partition("rack", "s1"), b=Partition("rack", "s2")) == []
    assert found(a=Partition("rack", "s1"), b=RACK) == [("a", "b", OverlapReason.PARTITIONS)]
    assert found(a=Partition(None, "s1"), b=RACK) == [("a", "b", OverlapReason.PARTITIONS)]


def test_hosts_of_a_partition_that_are_no_peers_overlap() -> None:
    assert found(a=RACK, b={**RACK.facts(), **BY_RESERVATION}) == [("a", "b", OverlapReason.SELECTION)]
    listing_each_other = Partition("rack", peers=("a", "b"))
    assert found(a=listing_each_other, b=listing_each_other) == []
    assert found(a=Partition("rack", peers=("b",)), b=RACK) == [], "each is its own peer"
    assert found(a=Partition("rack", peers=("a",)), b=RACK) == [("a", "b", OverlapReason.PEERS)]
    both = Partition("rack", peers=("a",))
    assert found(a=both, b=both) == [("a,b", "a,b", OverlapReason.PEERS)]


def test_an_agent_of_an_earlier_release_that_says_an_empty_key_serves_all() -> None:
    assert found(a={"key": "", "shard": "", "peers": []}, b=ALL) == []
    assert found(a={"key": "", "shard": "", "peers": []}, b=UNNAMED) == [("a", "b", OverlapReason.PARTITIONS)]


def test_conductors_say_it_once_and_count_it(database: Database, caplog: pytest.LogCaptureFixture) -> None:
    def serve(host: str, partition: Partition) -> None:
        facts = {"partition": partition.facts()}
        database.transact(
            lambda connection: registry.heartbeat(
                connection, host, registry.AGENT_BINARY, version=3, facts=facts
            )
        )

    watch = OverlapWatch(database, down_time=60)
    serve("metal-1", ALL)
    serve("metal-2", RACK)
    with caplog.at_level(logging.INFO):
        watch.look()
        watch.look()
    assert OVERLAPS._value.get() == 1
    told = [record.getMessage() for record in caplog.records]
    assert len(told) == 1
    assert "metal-1 (all groups) and metal-2 (group rack)" in told[0]
    serve("metal-1", UNNAMED)
    with caplog.at_level(logging.INFO):
        watch.look()
    assert OVERLAPS._value.get() == 0
    assert "no partitions overlap any more" in caplog.text
