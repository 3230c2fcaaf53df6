"""Pools: what a host says that it has, of machines that others offer, too."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from moorage.core import uuids
from moorage.db.tables.compute import SHARED_CAPACITY
from moorage.drivers.contract import Node
from moorage.drivers.ironic.api.record import NodeRecord, ReservationRecord
from moorage.drivers.ironic.nodes.partition import Partition
from moorage.drivers.ironic.reservations import pool, reservation
from moorage.drivers.ironic.reservations.reservation import Reservation, Reservations

PARTITION = Partition("a")
GOLD, SILVER = "CUSTOM_GOLD", "CUSTOM_SILVER"


def machine(resource_class: str | None = "gold", **more: Any) -> NodeRecord:
    said = {"provision_state": "available", "power_state": "power off", **more}
    return NodeRecord(uuids.generate(), resource_class=resource_class, **said)


def reserved(record: NodeRecord, host: str, *, shared_in: str = "") -> Reservation:
    return Reservation(uuids.generate(), pool.uuid_of(host), host, record.uuid, GOLD, shared_in)


def room(node: Node) -> dict[str, int]:
    """What servers can have, those that are there included; but for seats."""
    return {name: unit.total - unit.reserved for name, unit in node.inventories.items() if name != pool.SEAT}


def test_a_pool_has_what_is_free_and_what_its_own_servers_have() -> None:
    free, mine, others = machine(), machine(), machine()
    records = [free, mine, others, machine("silver", maintenance=True), machine(None)]
    reservations = [reserved(mine, "host"), reserved(others, "peer")]
    found = pool.own("host", PARTITION, records, reservations)
    assert (found.name, found.uuid) == ("host", pool.uuid_of("host"))
    assert room(found) == {GOLD: 2, SILVER: 0}
    assert found.inventories[GOLD].total == 3
    assert found.shared_through == ""


def test_a_class_stays_as_long_as_a_server_has_it() -> None:
    """The machine is not listed any more: it has left the partition."""
    assert room(pool.own("host", PARTITION, [], [reserved(machine(), "host")])) == {GOLD: 1}


def test_a_pool_has_the_traits_of_all_its_machines() -> None:
    found = pool.own("host", PARTITION, [machine(traits=["CUSTOM_A"]), machine(traits=["CUSTOM_B"])], [])
    assert {"CUSTOM_A", "CUSTOM_B"} <= set(found.traits)


def test_an_inherited_pool_has_no_room_for_more() -> None:
    machines = [machine(), machine()]
    reservations = [reserved(one, "dead") for one in machines]
    found = pool.inherited(pool.uuid_of("dead"), "dead", machines, reservations)
    assert {name: unit.total for name, unit in found.inventories.items()} == {GOLD: 2, pool.SEAT: 2}
    left = pool.inherited(pool.uuid_of("dead"), "dead", machines, [])
    assert {unit.total - unit.reserved for unit in left.inventories.values()} == {0}
    assert set(left.inventories) == {GOLD, pool.SEAT}


def test_what_is_shared_is_counted_once() -> None:
    shared = pool.capacity_uuid(PARTITION)
    records = [machine() for _ in range(4)]
    reservations = [
        reserved(records[0], "host", shared_in=shared),
        reserved(records[1], "peer", shared_in=shared),
        reserved(records[2], "host"),  # from before the machines were shared
    ]
    capacity = pool.capacity(PARTITION, records, reservations)
    own = pool.own("host", PARTITION, records, reservations, shared=True)
    peer = pool.own("peer", PARTITION, records, reservations, shared=True)
    assert [room(one) for one in (capacity, own, peer)] == [{GOLD: 3}, {GOLD: 1}, {}]
    assert capacity.shared_through == own.shared_through == peer.shared_through != ""
    assert "MISC_SHARES_VIA_AGGREGATE" in capacity.traits
    assert own.inventories[pool.SEAT].total == 4


def test_partitions_share_nothing() -> None:
    others = (Partition("b"), Partition("a", "s"), Partition())
    uuids_ = {pool.capacity_uuid(one) for one in (PARTITION, *others)}
    through = {pool.capacity(one, [], []).shared_through for one in (PARTITION, *others)}
    assert len(uuids_) == len(through) == 4


def test_the_database_knows_what_is_no_place() -> None:
    assert pool.CAPACITY_TYPE == SHARED_CAPACITY == pool.capacity(PARTITION, [], []).hypervisor_type


@given(st.lists(st.tuples(st.sampled_from(["free", "cleaning", "foreign", "host", "peer"]), st.booleans())))
def test_no_inventory_is_senseless_and_nothing_free_is_hidden(machines: list[tuple[str, bool]]) -> None:
    """Whatever state machines are in, and whether they are listed still."""
    records, reservations = [], []
    for state, listed in machines:
        record = machine(
            provision_state="cleaning" if state == "cleaning" else "available",
            instance_uuid=uuids.generate() if state in ("foreign", "host", "peer") else None,
        )
        records += [record] if listed else []
        reservations += [reserved(record, state)] if state in ("host", "peer") else []
    found = pool.own("host", PARTITION, records, reservations)
    for unit in found.inventories.values():
        assert 0 <= unit.reserved <= unit.total
        assert unit.total > 0
    expected = sum(state == "host" or (state == "free" and listed) for state, listed in machines)
    assert room(found).get(GOLD, 0) == expected


def test_a_reservation_says_whose_it_is() -> None:
    record = ReservationRecord(
        "server", "active", "node", "gold", extra=reservation.marks("pool", "host", "shared")
    )
    assert reservation.read(record) == Reservation("server", "pool", "host", "node", GOLD, "shared")
    assert reservation.read(ReservationRecord("foreign", extra={"moorage": "nonsense"})) is None
    assert reservation.read(ReservationRecord("foreign")) is None


def test_a_listing_does_not_undo_what_was_seen_since_it_began() -> None:
    known = Reservations()
    old, new = reserved(machine(), "host"), reserved(machine(), "host")
    known.lease.keep({pool.uuid_of("host")})
    known.put(old)
    known.drop(old.server_uuid)
    known.put(new)
    known.replace([old], began=0.0)
    assert known.all() == [new]
    assert known.machines() == {new.node_uuid}
    known.lease.keep(set())
    assert known.machines() == set()
    assert not known.lease.has(pool.uuid_of("host"), 0)
