"""Addresses from the built-in pool: never twice, never lost, each cell on its own."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator, Mapping

import msgspec
import pytest
import sqlalchemy as sa

from moorage.core import config, uuids
from moorage.core.config import ConfigError
from moorage.db import engine
from moorage.db.database import Database
from moorage.db.tables.compute import addresses
from moorage.network.contract import Binding, NetworkError, Networks, PortRecord, PortRequest, ServerPorts
from moorage.network.options import OPTIONS
from moorage.network.pool import PoolNetwork, PoolSettings
from moorage.network.ranges import AddressRange

Server = dict[str, str]
RANGES = {"default": "10.0.0.1-10.0.0.4", "rack": "10.0.1.0/29"}


@pytest.fixture
def database(database_url: str) -> Iterator[Database]:
    connected = engine.connect(database_url)
    yield Database(connected)
    connected.dispose()


def network(database: Database, ranges: Mapping[str, str] = RANGES) -> PoolNetwork:
    parsed = {name: AddressRange.parse(text) for name, text in ranges.items()}
    return PoolNetwork(database, PoolSettings("private", parsed))


def new_server() -> Server:
    return {"uuid": uuids.generate()}


def bind(
    pool: PoolNetwork, server: Server, ports: list[PortRecord], cell: str = "default"
) -> list[PortRecord]:
    (outcome,) = pool.bind([Binding(server["uuid"], ports, "host-1", cell)])
    if isinstance(outcome, NetworkError):
        raise outcome
    return outcome


def prepare(pool: PoolNetwork, server: Server, asked: Networks = "auto") -> list[PortRecord]:
    (outcome,) = pool.prepare([PortRequest(server["uuid"], "project", "s", asked)])
    if isinstance(outcome, NetworkError):
        raise outcome
    return outcome


def boot(pool: PoolNetwork, server: Server, cell: str = "default") -> list[PortRecord]:
    return bind(pool, server, prepare(pool, server), cell)


def given_out(database: Database) -> dict[str, str]:
    with database.read() as connection:
        query = sa.select(addresses.c.server_uuid, addresses.c.address)
        return {row.server_uuid: row.address for row in connection.execute(query)}


def test_an_address_comes_with_the_host_not_before(database: Database) -> None:
    pool, server = network(database), new_server()
    prepared = prepare(pool, server)
    assert [port.addresses for port in prepared] == [[]]
    assert given_out(database) == {}
    (bound,) = bind(pool, server, prepared)
    assert bound.addresses[0] in {f"10.0.0.{number}" for number in range(1, 5)}
    assert (bound.id, bound.mac) == (prepared[0].id, prepared[0].mac)
    assert given_out(database) == {server["uuid"]: bound.addresses[0]}


def test_asked_again_a_server_keeps_its_address(database: Database) -> None:
    pool, server = network(database), new_server()
    first = boot(pool, server)
    assert boot(pool, server) == first
    assert boot(network(database), server) == first  # another process


def test_an_address_outlives_a_host_that_failed(database: Database) -> None:
    """Who leaves the host may be late, and the server at home on another one by now."""
    pool, server = network(database), new_server()
    bound = boot(pool, server)
    assert [port.addresses for port in pool.unbind(bound, "host", "node")] == [[]]
    assert boot(pool, server) == bound


def test_releasing_gives_it_back(database: Database) -> None:
    pool, server = network(database), new_server()
    holding = ServerPorts(server["uuid"], boot(pool, server))
    pool.release([holding])
    pool.release([holding])
    assert given_out(database) == {}


def test_a_pool_is_used_up_to_its_last_address_and_again(database: Database) -> None:
    pool = network(database)
    servers = [new_server() for _ in range(4)]
    found = {boot(pool, server)[0].addresses[0] for server in servers}
    assert found == {f"10.0.0.{number}" for number in range(1, 5)}
    with pytest.raises(NetworkError) as exhausted:
        boot(pool, new_server())
    assert exhausted.value.retry_elsewhere
    assert "cell default" in str(exhausted.value)
    pool.release([ServerPorts(servers[2]["uuid"], [])])
    boot(pool, new_server())
    assert len(given_out(database)) == 4


def test_an_address_that_another_process_gave_back_is_found(database: Database) -> None:
    ours, theirs = network(database), network(database)
    servers = [new_server() for _ in range(4)]
    for server in servers:
        boot(ours, server)
    with pytest.raises(NetworkError):
        boot(theirs, new_server())
    ours.release([ServerPorts(servers[0]["uuid"], [])])
    boot(theirs, new_server())
    assert len(given_out(database)) == 4


def test_cells_are_exhausted_on_their_own(database: Database) -> None:
    pool = network(database)
    for _ in range(4):
        boot(pool, new_server())
    found = {boot(pool, new_server(), "rack")[0].addresses[0] for _ in range(5)}
    assert found == {
        f"10.0.1.{number}" for number in range(2, 7)
    }  # not the gateway, not the broadcast address
    with pytest.raises(NetworkError):
        boot(pool, new_server(), "rack")
    with pytest.raises(NetworkError):
        boot(pool, new_server(), "a cell without a range of its own")


def test_a_server_that_moves_to_another_cell_takes_nothing_along(database: Database) -> None:
    pool, server = network(database), new_server()
    boot(pool, server)
    moved = boot(pool, server, "rack")[0].addresses[0]
    assert moved.startswith("10.0.1.")
    assert given_out(database) == {server["uuid"]: moved}


def test_a_batch_is_bound_each_on_its_own_merits(database: Database) -> None:
    pool = network(database)
    servers = [new_server() for _ in range(6)]
    bindings = [
        Binding(server["uuid"], prepare(pool, server, "none" if index == 0 else "auto"), "host-1", "default")
        for index, server in enumerate(servers)
    ]
    with database.write() as connection:
        outcomes = pool.bind_many(connection, bindings)
    assert outcomes[0] == []
    assert [isinstance(outcome, NetworkError) for outcome in outcomes].count(True) == 1
    assert len(given_out(database)) == 4
    with database.write() as connection:
        pool.release_many(connection, [server["uuid"] for server in servers])
    assert given_out(database) == {}


def test_what_is_rolled_back_was_not_given_out(database: Database) -> None:
    pool = network(database)
    for _ in range(3):
        server = new_server()
        with database.engine.connect() as connection, connection.begin() as transaction:
            pool.bind_many(connection, [Binding(server["uuid"], prepare(pool, server), "h", "default")])
            transaction.rollback()
    for _ in range(4):
        boot(pool, new_server())
    assert len(given_out(database)) == 4


def test_many_at_once_get_all_addresses_and_none_twice(database: Database) -> None:
    """Three processes' worth of pools, and more takers than addresses; what fails, fails rightly."""
    pools = [network(database, {"default": "10.0.0.1-10.0.0.60"}) for _ in range(3)]
    got: list[str] = []
    refused: list[NetworkError] = []

    def take(pool: PoolNetwork) -> None:
        for turn in range(10):
            server = new_server()
            try:
                bound = boot(pool, server)
            except NetworkError as error:
                refused.append(error)
                continue
            if turn % 5 == 4:
                pool.release([ServerPorts(server["uuid"], bound)])
            else:
                got.append(bound[0].addresses[0])

    threads = [threading.Thread(target=take, args=(pools[number % 3],)) for number in range(9)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(got) == len(set(got))
    assert sorted(got) == sorted(given_out(database).values())
    while len(given_out(database)) < 60:  # none was lost
        boot(pools[0], new_server())
    with pytest.raises(NetworkError):
        boot(pools[1], new_server())


def test_it_is_quick_in_a_range_that_is_nearly_full(database: Database) -> None:
    pool = network(database, {"default": "10.0.0.0/20"})
    servers = [new_server() for _ in range(4000)]
    with database.write() as connection:
        pool.bind_many(connection, [Binding(s["uuid"], prepare(pool, s), "h", "default") for s in servers])
    begun = time.perf_counter()
    for start in range(0, 1000, 50):
        batch = servers[start : start + 50]
        bindings = [Binding(s["uuid"], prepare(pool, s), "h", "default") for s in batch]
        with database.write() as connection:
            pool.release_many(connection, [server["uuid"] for server in batch])
        with database.write() as connection:
            outcomes = pool.bind_many(connection, bindings)
        assert all(isinstance(outcome, list) for outcome in outcomes)
    assert time.perf_counter() - begun < 2.5  # 400 a second, on a machine that has other things to do


@pytest.mark.parametrize(
    "asked",
    [[{"port": "p"}], [{"uuid": "someone-elses"}], [{"fixed_ip": "10.0.0.9"}], [{}, {}]],
)
def test_what_the_pool_can_not_do_is_refused_at_once(database: Database, asked: list[dict[str, str]]) -> None:
    with pytest.raises(NetworkError) as refused:
        prepare(network(database), new_server(), asked)
    assert not refused.value.retry_elsewhere


def test_the_network_may_be_named(database: Database) -> None:
    pool = network(database)
    assert prepare(pool, new_server(), [{"uuid": pool.network_id}])[0].network_name == "private"


@pytest.mark.parametrize(
    "ranges",
    [
        {"a": "10.0.0.0/24", "b": "10.0.0.9-10.0.0.12"},
        {"a": "10.0.0.9-10.0.0.1"},
        {"a": "nonsense"},
        {"a": "10.0.0.1-10.0.1.9/24"},
    ],
)
def test_ranges_that_make_no_sense_are_refused(ranges: dict[str, str]) -> None:
    with pytest.raises(ConfigError, match="ranges"):
        PoolSettings.from_conf(config.read([], [OPTIONS], {"pool.ranges": ranges}))


def test_a_guest_is_told_the_network_of_its_range(database: Database) -> None:
    pool = network(database)
    (port,) = boot(pool, new_server(), "rack")
    (subnet,) = port.subnets
    assert (subnet.cidr, subnet.gateway_ip, subnet.dns_nameservers) == (
        "10.0.1.0/29",
        "10.0.1.1",
        ["10.0.1.1"],
    )
    assert (port.vif_type, port.vif_details) == ("bridge", {"built_in": True})
    (port,) = boot(pool, new_server())
    assert [(one.cidr, one.gateway_ip, one.enable_dhcp) for one in port.subnets] == [
        ("10.0.0.0/29", "", False)
    ]


def test_what_an_older_release_wrote_of_a_port_is_read() -> None:
    written = {
        "id": "p",
        "network_id": "n",
        "network_name": "private",
        "ours": True,
        "addresses": ["10.0.0.1"],
    }
    read = msgspec.convert(written, PortRecord)
    assert (read.vif_type, read.vif_details, read.mtu, read.subnets) == ("", {}, 0, [])
    assert read.arriving() == read


@pytest.mark.parametrize(
    ("text", "cidr", "gateway", "size"),
    [
        ("10.0.0.0/24", "10.0.0.0/24", "10.0.0.1", 253),
        ("10.80.7.10-10.80.7.250", "10.80.7.0/24", "10.80.7.1", 241),
        ("10.80.7.10-10.80.7.13/20", "10.80.0.0/20", "10.80.0.1", 4),
        ("10.0.0.1-10.0.0.4", "10.0.0.0/29", "", 4),
        ("10.0.0.9-10.0.0.9", "10.0.0.9/32", "", 1),
        ("fd00::/64", "fd00::/64", "fd00::1", 2**64 - 2),
    ],
)
def test_a_range_is_of_a_network_that_may_have_a_gateway(
    text: str, cidr: str, gateway: str, size: int
) -> None:
    found = AddressRange.parse(text)
    assert (str(found.network), found.gateway, found.size) == (cidr, gateway, size)


def test_ranges_of_ipv6_are_not_counted_through() -> None:
    found = AddressRange.parse("fd00::/64")
    assert found.address(0) == "fd00::2"
    assert found.offset("fd00::ff") == 0xFD
    assert found.offset("10.0.0.1") is None
