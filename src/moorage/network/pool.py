"""The built-in network: every server gets one address, from the pool of the cell that it lands in.

Truth is the table of addresses, whose key makes it impossible to give one out twice. Which one to try comes
from memory (`network/free.py`), so that no transaction searches a range or waits for another one's choice.
"""

from __future__ import annotations

import hashlib
import uuid
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import msgspec
import sqlalchemy as sa
from oslo_config import cfg
from sqlalchemy.engine import Connection

from moorage.core.config import ConfigError
from moorage.db.among import among
from moorage.db.database import Database
from moorage.db.tables.compute import addresses
from moorage.db.upsert import insert_if_absent
from moorage.network.contract import (
    AgreedNetworks,
    Binding,
    FloatingChange,
    Interface,
    MadePort,
    NetworkAccess,
    NetworkError,
    NetworkFault,
    Networks,
    PortRecord,
    PortRequest,
    PortSubnet,
    Requester,
    SecurityGroup,
    ServerPorts,
)
from moorage.network.free import FreeAddresses
from moorage.network.ranges import AddressRange

_NAMESPACE = uuid.UUID("5b1f5a07-6a4c-4c57-9a35-6c3f0b6a1a52")
_DEFAULT = "default"
_VIF_TYPE = "bridge"
_VIF_DETAILS = {"built_in": True}
"""Who plugs such a port makes the bridge, too, unlike with a network service of that type."""


@dataclass(frozen=True)
class PoolSettings:
    network_name: str
    ranges: Mapping[str, AddressRange]
    """By the name of a cell, or `default`."""
    mtu: int = 0
    dns_servers: tuple[str, ...] = ()

    @classmethod
    def from_conf(cls, conf: cfg.ConfigOpts) -> PoolSettings:
        try:
            ranges = {name: AddressRange.parse(text) for name, text in conf.pool.ranges.items()}
        except ValueError as error:
            raise ConfigError(f"[pool] ranges: {error}") from error
        names = sorted(ranges)
        for position, name in enumerate(names):
            for other in names[position + 1 :]:
                if ranges[name].overlaps(ranges[other]):
                    raise ConfigError(f"[pool] ranges: those of {name} and {other} overlap")
        return cls(conf.pool.network_name, ranges, conf.pool.mtu, tuple(conf.pool.dns_servers))


class Pool:
    """One range, and the guess which of its addresses are free."""

    def __init__(self, name: str, addresses_of: AddressRange, dns_servers: Sequence[str] = ()) -> None:
        self.name = name
        self.range = addresses_of
        gateway = addresses_of.gateway
        self.subnet = PortSubnet(
            cidr=str(addresses_of.network),
            ip_version=addresses_of.version,
            gateway_ip=gateway,
            dns_nameservers=list(dns_servers or filter(None, [gateway])),
            enable_dhcp=bool(gateway),
        )
        self._free = FreeAddresses(addresses_of.size)

    def allocate(self, connection: Connection, servers: Sequence[str]) -> dict[str, str]:
        """An address for each server, as long as there are any; written by this transaction."""
        got: dict[str, str] = {}
        missing = sorted(set(servers))
        while missing:
            offsets = self._free.take(len(missing))
            if offsets:
                got |= self._write(connection, missing, offsets)
                missing = [server for server in missing if server not in got]
            elif not self._look_again(connection):
                break
        return got

    def give_back(self, address: str) -> None:
        offset = self.range.offset(address)
        if offset is not None:
            self._free.give_back(offset)

    def has(self, address: str) -> bool:
        return self.range.offset(address) is not None

    def write_down(self, connection: Connection, server_uuid: str, address: str) -> None:
        """As if it had just been given out; NetworkError if it was, to somebody else."""
        row = {"address": address, "pool": self.name, "server_uuid": server_uuid}
        row |= {"mac": mac_of(server_uuid), "port_uuid": port_of(server_uuid)}
        connection.execute(insert_if_absent(connection, addresses), [row])
        query = sa.select(addresses.c.server_uuid).where(addresses.c.address == address)
        owner = connection.execute(query).scalar_one_or_none()
        if owner != server_uuid:
            words = f"Address {address} of server {server_uuid} is {owner or 'nobody'}'s by now."
            raise NetworkError(words, fault=NetworkFault.CONFLICT)

    def _write(
        self, connection: Connection, servers: Sequence[str], offsets: Sequence[int]
    ) -> dict[str, str]:
        """Write down what nobody else has written down; answers with what is written for these servers."""
        rows = [
            {
                "address": self.range.address(offset),
                "pool": self.name,
                "server_uuid": server,
                "mac": mac_of(server),
                "port_uuid": port_of(server),
            }
            for server, offset in zip(servers, sorted(offsets), strict=False)
        ]
        connection.execute(insert_if_absent(connection, addresses), rows)
        query = sa.select(addresses.c.server_uuid, addresses.c.address).where(
            among(connection, addresses.c.server_uuid, servers)
        )
        return {row.server_uuid: row.address for row in connection.execute(query)}

    def _look_again(self, connection: Connection) -> bool:
        """Memory knows no free address. False if there is none; else memory is up to date again."""
        here = addresses.c.pool == self.name
        count = connection.execute(sa.select(sa.func.count()).where(here)).scalar_one()
        if count - self._free.strays >= self.range.size:
            return False
        used = connection.execute(sa.select(addresses.c.address).where(here)).scalars()
        offsets = [self.range.offset(address) for address in used]
        inside = {offset for offset in offsets if offset is not None}
        self._free.reset(inside, strays=len(offsets) - len(inside))
        return len(inside) < self.range.size


class PoolNetwork:
    """The contract of networks, and forms of it for many servers within the caller's transaction."""

    reach = NetworkAccess.CONDUCTORS

    def __init__(self, database: Database, settings: PoolSettings) -> None:
        self._database = database
        self.network_name = settings.network_name
        self.network_id = network_of(settings.network_name)
        self._mtu = settings.mtu
        self._pools = {
            name: Pool(name, found, settings.dns_servers) for name, found in settings.ranges.items()
        }

    def agree(
        self,
        requester: Requester,
        networks: Networks,
        security_groups: Sequence[str],
        count: int,
        have: Sequence[PortRecord] = (),
    ) -> AgreedNetworks:
        if isinstance(networks, list) and networks:
            self._check(networks)
        if have:
            raise self._one_is_enough()
        return AgreedNetworks("auto" if networks in ("any", "only") else networks)

    def prepare(self, orders: Sequence[PortRequest]) -> list[list[PortRecord] | NetworkError]:
        """Nothing has to be made: a port of ours is the same every time."""
        return [self._prepared(order) for order in orders]

    def _prepared(self, order: PortRequest) -> list[PortRecord] | NetworkError:
        if order.networks == "none":
            return []
        try:
            if isinstance(order.networks, list) and order.networks:
                self._check(order.networks)
            if order.known:
                raise self._one_is_enough()
        except NetworkError as error:
            return error
        wish = order.networks[0] if isinstance(order.networks, list) and order.networks else {}
        port = PortRecord(
            id=port_of(order.server_uuid),
            network_id=self.network_id,
            network_name=self.network_name,
            ours=True,
            mac=mac_of(order.server_uuid),
            tag=wish.get("tag"),
            vif_type=_VIF_TYPE,
            vif_details=_VIF_DETAILS,
            mtu=self._mtu,
        )
        return [port]

    def bind(self, bindings: Sequence[Binding]) -> list[list[PortRecord] | NetworkError]:
        return self._database.transact(lambda connection: self.bind_many(connection, bindings))

    def expect(self, bindings: Sequence[Binding]) -> list[list[PortRecord] | NetworkError]:
        """An address is good for all hosts of a cell, which a move never leaves."""
        return [binding.ports for binding in bindings]

    def unbind(self, ports: list[PortRecord], host: str, node_uuid: str) -> list[PortRecord]:
        """The address stays the server's until it is bound in another cell, or fails."""
        return [msgspec.structs.replace(port, addresses=[], subnets=[]) for port in ports]

    def regain(self, holding: ServerPorts) -> None:
        """Write down what a server has, whom we have forgotten: its database was restored. NetworkError if an
        address is another server's by now."""
        self._database.transact(lambda connection: self._regain(connection, holding))

    def _regain(self, connection: Connection, holding: ServerPorts) -> None:
        for port in holding.ports:
            for address in port.addresses:
                pool = next((pool for pool in self._pools.values() if pool.has(address)), None)
                if pool is not None:
                    pool.write_down(connection, holding.server_uuid, address)

    def release(self, holdings: Sequence[ServerPorts]) -> None:
        servers = [holding.server_uuid for holding in holdings]
        self._database.transact(lambda connection: self.release_many(connection, servers))

    def drop(self, holding: ServerPorts, port_id: str) -> None:
        if port_id == port_of(holding.server_uuid):
            self.release([holding])

    def add_address(self, holding: ServerPorts, network_id: str) -> list[PortRecord]:
        raise self._unchangeable()

    def remove_address(self, holding: ServerPorts, address: str) -> list[PortRecord]:
        raise self._unchangeable()

    def regroup(self, requester: Requester, holding: ServerPorts, name: str, *, joins: bool) -> str:
        """There are none."""
        words = f"Security group {name} is not found for project {requester.project_id}"
        raise NetworkError(words, fault=NetworkFault.NOT_FOUND)

    def lead_floating(self, requester: Requester, holding: ServerPorts, change: FloatingChange) -> str | None:
        """There are none."""
        raise NetworkError("floating IP not found", fault=NetworkFault.NOT_FOUND)

    def take_floating(self, requester: Requester, holding: ServerPorts, address: str) -> None:
        raise NetworkError("floating IP not found", fault=NetworkFault.NOT_FOUND)

    def security_groups(self, requester: Requester, holding: ServerPorts) -> list[SecurityGroup]:
        return []

    def are_up(self, holdings: Sequence[ServerPorts]) -> list[bool]:
        return [True for _ in holdings]

    def look(self, holdings: Sequence[ServerPorts]) -> list[list[PortRecord]]:
        """Nobody else changes what we give out."""
        return [holding.ports for holding in holdings]

    def strays(self, holdings: Sequence[ServerPorts]) -> list[list[str]]:
        """What is given out is written down with the server."""
        return [[] for _ in holdings]

    def made_ports(self) -> Iterator[list[MadePort]]:
        """What is given out is in the database: whoever has that can look."""
        return iter(())

    def interfaces(self, holding: ServerPorts) -> list[Interface]:
        """A pool is its own subnet; a port is up once it has an address."""
        return [
            Interface(
                port.id,
                port.network_id,
                port.mac,
                "ACTIVE" if port.addresses else "DOWN",
                [(port.network_id, address) for address in port.addresses],
                port.tag,
            )
            for port in holding.ports
        ]

    def bind_many(
        self, connection: Connection, bindings: Sequence[Binding]
    ) -> list[list[PortRecord] | NetworkError]:
        """Bind each on its own merits; answers in their order. Asked again, a server keeps its address."""
        pools = {binding.server_uuid: self._pool_of(binding.cell) for binding in bindings if binding.ports}
        got = self._keep(connection, pools)
        wanting: dict[str, list[str]] = defaultdict(list)
        for server, pool in pools.items():
            if pool is not None and server not in got:
                wanting[pool.name].append(server)
        for name in sorted(wanting):  # always in this order, so that no two transactions wait for each other
            got |= self._pools[name].allocate(connection, wanting[name])
        return [
            self._outcome(binding, pools.get(binding.server_uuid), got.get(binding.server_uuid))
            for binding in bindings
        ]

    def _outcome(
        self, binding: Binding, pool: Pool | None, address: str | None
    ) -> list[PortRecord] | NetworkError:
        if not binding.ports:
            return []
        if pool is None or address is None:
            return NetworkError(
                f"No addresses are left for hosts of cell {binding.cell}, like {binding.host}.",
                retry_elsewhere=True,
                cell=binding.cell,
            )
        first, *others = binding.ports
        bound = msgspec.structs.replace(
            first,
            addresses=[address],
            subnets=[pool.subnet],
            vif_type=_VIF_TYPE,
            vif_details=_VIF_DETAILS,
            mtu=self._mtu,
        )
        return [bound, *others]

    def release_many(self, connection: Connection, server_uuids: Sequence[str]) -> None:
        """The addresses of these servers are free again when the transaction ends."""
        statement = (
            sa.delete(addresses)
            .where(among(connection, addresses.c.server_uuid, server_uuids))
            .returning(addresses.c.pool, addresses.c.address)
        )
        for name, address in connection.execute(statement):
            if name in self._pools:
                self._pools[name].give_back(address)

    def _pool_of(self, cell: str) -> Pool | None:
        return self._pools.get(cell) or self._pools.get(_DEFAULT)

    def _keep(self, connection: Connection, pools: Mapping[str, Pool | None]) -> dict[str, str]:
        """What these servers have already; an address of another cell's pool is given back."""
        query = sa.select(addresses.c.server_uuid, addresses.c.pool, addresses.c.address).where(
            among(connection, addresses.c.server_uuid, list(pools))
        )
        kept: dict[str, str] = {}
        foreign: list[str] = []
        for server, name, address in connection.execute(query):
            pool = pools[server]
            if pool is not None and pool.name == name:
                kept[server] = address
            else:
                foreign.append(server)
        if foreign:
            self.release_many(connection, foreign)
        return kept

    def _one_is_enough(self) -> NetworkError:
        return NetworkError(f"A server has one port on the network {self.network_name}, not several.")

    def _unchangeable(self) -> NetworkError:
        return NetworkError(f"Addresses of the network {self.network_name} can't be chosen.")

    def _check(self, asked: Sequence[Mapping[str, Any]]) -> None:
        if len(asked) > 1:
            raise self._one_is_enough()
        wanted = asked[0]
        if wanted.get("port"):
            raise NetworkError(f"Port {wanted['port']} could not be found.", fault=NetworkFault.NOT_FOUND)
        if wanted.get("uuid") not in (None, self.network_id):
            raise NetworkError(f"Network {wanted['uuid']} could not be found.", fault=NetworkFault.NOT_FOUND)
        if wanted.get("fixed_ip"):
            raise self._unchangeable()


def network_of(name: str) -> str:
    return str(uuid.uuid5(_NAMESPACE, name))


def port_of(server_uuid: str) -> str:
    return str(uuid.uuid5(_NAMESPACE, server_uuid))


def mac_of(server_uuid: str) -> str:
    """A locally administered address that follows from the server, so that it never changes."""
    digest = hashlib.blake2b(server_uuid.encode(), digest_size=5).digest()
    return ":".join(f"{byte:02x}" for byte in (0x02, *digest))
