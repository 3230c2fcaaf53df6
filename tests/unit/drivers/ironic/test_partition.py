"""Who gets which node by hashing, and what an operator may say about it."""

from __future__ import annotations

import random
import time
import uuid
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from moorage.core import config
from moorage.core.config import ConfigError
from moorage.drivers.ironic.api.record import NodeRecord
from moorage.drivers.ironic.nodes.partition import Partition
from moorage.drivers.ironic.options import OPTIONS
from moorage.drivers.rendezvous import propose, share
from moorage.drivers.served_nodes import ServedNodes

hosts = st.sets(st.text("abcdefgh-0123456789", min_size=1, max_size=12), min_size=1, max_size=8)
nodes = st.lists(st.uuids().map(str), max_size=60, unique=True)


def owners(members: set[str], uuids: list[str]) -> dict[str, str]:
    names = sorted(members)
    return {uuid: names[place] for uuid, place in zip(uuids, propose(names, uuids).tolist(), strict=True)}


@given(hosts, nodes)
def test_every_node_has_one_owner_whatever_the_order_of_hosts(members: set[str], uuids: list[str]) -> None:
    shares = [share(host, sorted(members, reverse=True), uuids) for host in members]
    assert sorted(node for mine in shares for node in mine) == sorted(uuids)


@given(hosts, st.text("xyz", min_size=1, max_size=5), nodes)
def test_a_host_that_joins_takes_and_nothing_else_moves(
    members: set[str], new: str, uuids: list[str]
) -> None:
    before, after = owners(members, uuids), owners(members | {new}, uuids)
    assert all(after[node] in (before[node], new) for node in uuids)
    # Seen from the other end, a host that leaves gives, and nothing else moves.
    assert all(before[node] == after[node] for node in uuids if after[node] != new)


@pytest.mark.parametrize("kind", ["random", "by time"])
@pytest.mark.parametrize("count", [3, 10])
def test_ten_thousand_nodes_are_shared_out_evenly(kind: str, count: int) -> None:
    chance = random.Random(7)
    numbers = [chance.getrandbits(128) for _ in range(10_000)]
    if kind == "by time":  # as an older tool made them: only a few bits differ
        numbers = [(number << 64) | 0x9A_0242_AC11_0002 for number in range(10_000)]
    uuids = [str(uuid.UUID(int=number)) for number in numbers]
    counts = Counter(owners({f"host-{number}" for number in range(count)}, uuids).values())
    fair = len(uuids) / count
    assert all(abs(counts[f"host-{number}"] - fair) <= fair / 10 for number in range(count)), counts


def test_a_hundred_thousand_nodes_cost_next_to_nothing() -> None:
    uuids = [str(uuid.uuid4()) for _ in range(100_000)]
    members = [f"host-{number}" for number in range(10)]
    began = time.process_time()
    propose(members, uuids)
    assert time.process_time() - began < 0.5


def read(directory: Path, **options: str) -> Partition:
    path = directory / "moorage.conf"
    path.write_text("[ironic]\n" + "".join(f"{name} = {value}\n" for name, value in options.items()))
    return Partition.from_conf(config.read([str(path)], [OPTIONS]))


def test_ironic_is_asked_for_the_group_in_its_own_case(tmp_path: Path) -> None:
    partition = read(tmp_path, partition_key="Rack-7", shard="S1", peer_list="b, a")
    assert partition.filters() == {"conductor_group": "rack-7", "shard": "S1"}
    assert partition.facts()["peers"] == ["a", "b"]
    assert read(tmp_path).filters() == {}


@pytest.mark.parametrize(
    ("option", "value"),
    [("partition_key", "a/b"), ("partition_key", "a b"), ("shard", "s1,s2"), ("peer_list", "a b,c")],
)
def test_nonsense_is_refused_by_its_name(tmp_path: Path, option: str, value: str) -> None:
    with pytest.raises(ConfigError, match=option):
        read(tmp_path, **{option: value})


def test_an_empty_group_is_the_unnamed_one_and_none_means_all(tmp_path: Path) -> None:
    unset, unnamed = read(tmp_path), read(tmp_path, partition_key="")
    assert (unset.key, unnamed.key) == (None, "")
    assert unnamed.filters() == {"conductor_group": ""}
    nodes = [NodeRecord("1", conductor_group=""), NodeRecord("2", conductor_group="rack")]
    assert [unset.has(node) for node in nodes] == [True, True]
    assert [unnamed.has(node) for node in nodes] == [True, False]
    assert read(tmp_path, partition_key='""') == unnamed
    assert unset.facts() != unnamed.facts()
    assert [ServedNodes.read(one.facts()) for one in (unset, unnamed)] == [unset.served, unnamed.served]


def test_novas_name_of_the_group_is_understood(tmp_path: Path) -> None:
    assert read(tmp_path, conductor_group="Rack-7").key == "rack-7"
