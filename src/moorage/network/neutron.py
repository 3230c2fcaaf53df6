"""Neutron: ports made before a host is known, bound right after, found again by the server they belong to.

A port carries the server's UUID as its device from the moment that it is made or taken. So whoever repeats a
step after a crash finds what was done, and whoever deletes a server finds all that it has. Of those, the ones
that the user named are the user's; all others are ours.
"""

from __future__ import annotations

import logging
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

import msgspec
from prometheus_client import Histogram

from moorage.core import context
from moorage.core.context import WorkContext
from moorage.network import neutron_faults, neutron_ports
from moorage.network.contract import (
    AgreedNetworks,
    Binding,
    FloatingChange,
    Interface,
    MadePort,
    NetworkAccess,
    NetworkDeniedError,
    NetworkError,
    NetworkFault,
    Networks,
    PortNeeds,
    PortRecord,
    PortRequest,
    Requester,
    SecurityGroup,
    ServerPorts,
)
from moorage.network.network_cache import NetworkCache
from moorage.network.neutron_agreement import Agreement
from moorage.network.neutron_bindings import PortBindings
from moorage.network.neutron_floating import FloatingAddresses
from moorage.network.neutron_groups import SecurityGroups
from moorage.network.neutron_link import Json, NeutronFault, NeutronLink
from moorage.network.neutron_topology import AutoTopology

LOG = logging.getLogger(__name__)
SECONDS = Histogram(
    "moorage_network_phase_seconds",
    "Time to prepare or bind the ports of a batch of servers.",
    ["phase"],
    buckets=(0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60),
)
T = TypeVar("T", PortRequest, Binding, ServerPorts)
_TAKE_TRIES = 3


class NeutronNetwork:
    reach = NetworkAccess.ANYONE

    def __init__(self, link: NeutronLink, *, threads: int = 8) -> None:
        self._link = link
        self._networks = NetworkCache(link)
        self._bindings = PortBindings(link)
        self._topologies = AutoTopology(link)
        self._pool = ThreadPoolExecutor(threads, thread_name_prefix="neutron")

    def agree(
        self,
        requester: Requester,
        networks: Networks,
        security_groups: Sequence[str],
        count: int,
        have: Sequence[PortRecord] = (),
    ) -> AgreedNetworks:
        agreement = Agreement(self._link.as_user(requester.token), requester.project_id)
        try:
            return agreement.reach(networks, security_groups, count)
        except NeutronFault as fault:
            raise neutron_faults.of_request(fault) from fault

    # ------------------------------------------------------------ phase 1

    def prepare(self, orders: Sequence[PortRequest]) -> list[list[PortRecord] | NetworkError]:
        wanting = [order for order in orders if order.networks != "none"]
        with SECONDS.labels("prepare").time():
            existing = self._ports_of([order.server_uuid for order in wanting])
            return self._each(orders, lambda order: self._prepared(order, existing[order.server_uuid]))

    def _prepared(self, order: PortRequest, existing: Sequence[Json]) -> list[PortRecord]:
        wishes = self._wishes(order, existing)
        brought = {wish["port"] for wish in wishes if wish.get("port")}
        spare = [port for port in existing if port["id"] not in brought | order.known]
        records = []
        for position, wish in enumerate(wishes, start=len(order.known) + 1):
            if wish.get("port"):
                records.append(self._take(order, wish))
            else:
                port = neutron_ports.made_before(spare, wish) or self._create(order, wish, position)
                self._tag(order, port)
                records.append(self._record(port, ours=True, tag=wish.get("tag")))
        return records

    def _wishes(self, order: PortRequest, existing: Sequence[Json]) -> list[dict[str, Any]]:
        if order.networks == "none":
            return []
        if isinstance(order.networks, str):  # there was no network yet when it was agreed to
            return [{"uuid": self._network_for(order.project_id, existing)}]
        return order.networks

    def _network_for(self, project_id: str, existing: Sequence[Json]) -> str:
        """That of a port made by an earlier attempt, else the only one there is by now, else a new one."""
        if existing:
            return str(existing[0]["network_id"])
        found = Agreement(self._link, project_id).network_there()
        return self._topologies.network_of(project_id) if found is None else found

    def _create(self, order: PortRequest, wish: Mapping[str, Any], position: int) -> Json:
        """One at a time: Neutron's bulk form fails for ports whose address is deferred.

        Late: swept, by its mark, as long as the server's row does not know it (`strays`).
        """
        try:
            network = self._networks.network(wish["uuid"])
            return self._link.create("ports", neutron_ports.new(order, wish, position, network))
        except NeutronFault as fault:
            raise neutron_faults.of_request(fault) from fault

    def _tag(self, order: PortRequest, port: Json) -> None:
        """Unless the port has its tags since it was made, or this Neutron knows none."""
        wanted = neutron_ports.tags(order.server_uuid)
        if "tags" not in port or set(wanted) <= set(port["tags"]):
            return
        try:
            self._link.set_tags(port["id"], [*port["tags"], *wanted])
        except NeutronFault as fault:
            LOG.warning("port %s of server %s has no tags: %s", port["id"], order.server_uuid, fault)

    def _take(self, order: PortRequest, wish: Mapping[str, Any]) -> PortRecord:
        """Make a port of the user's the server's, unless it is somebody else's by now."""
        port_id = wish["port"]
        for _ in range(_TAKE_TRIES):
            try:
                port = self._link.show("ports", port_id)
                named = bool(order.hostname) and port.get("dns_name") == order.hostname.lower()
                if port["device_id"] != order.server_uuid:
                    _require_free(port, order)
                    values = neutron_ports.taking(order, port, self._networks.network(port["network_id"]))
                    named = "dns_name" in values
                    port = self._link.update("ports", port_id, values, port["revision_number"])
                record = self._record(port, ours=False, tag=wish.get("tag"))
                return msgspec.structs.replace(record, named=named)
            except NeutronFault as fault:
                if fault.status == 404:
                    raise _no_port(port_id) from fault
                if fault.status != 412:
                    raise neutron_faults.of_request(fault) from fault
        raise NetworkError(f"Port {port_id} is being changed by somebody else.", fault=NetworkFault.CONFLICT)

    # ------------------------------------------------------------ phase 2

    def bind(self, bindings: Sequence[Binding]) -> list[list[PortRecord] | NetworkError]:
        with SECONDS.labels("bind").time():
            return self._each(bindings, self._bound)

    def _bound(self, binding: Binding) -> list[PortRecord]:
        return [
            self._record_again(
                self._bindings.bind(binding, record), record, served=neutron_ports.served(binding, record)
            )
            for record in binding.ports
        ]

    def expect(self, bindings: Sequence[Binding]) -> list[list[PortRecord] | NetworkError]:
        return self._each(bindings, self._expected)

    def _expected(self, binding: Binding) -> list[PortRecord]:
        """All of them, or none."""
        try:
            there = [self._bindings.expect(binding, record) for record in binding.ports]
        except NetworkError:
            for record in binding.ports:
                self._bindings.forget(record)
            raise
        return [
            msgspec.structs.replace(record, expected=binding.host, expected_binding=vif)
            for record, vif in zip(binding.ports, there, strict=True)
        ]

    def unbind(self, ports: list[PortRecord], host: str, node_uuid: str) -> list[PortRecord]:
        return [self._unbound(record, {host, node_uuid, ""}) for record in ports]

    def _unbound(self, record: PortRecord, places: set[str]) -> PortRecord:
        try:
            port = self._link.show("ports", record.id)
            if port["binding:host_id"] in places:
                values = neutron_ports.without_host(port, record)
                port = self._link.update("ports", record.id, values, port["revision_number"])
        except NeutronFault as fault:
            if fault.status == 404:
                return record
            raise neutron_faults.of_request(fault) from fault
        return self._record_again(port, record, served={})

    # ------------------------------------------------------------ meanwhile

    def are_up(self, holdings: Sequence[ServerPorts]) -> list[bool]:
        """A port that is gone is not waited for."""
        found = self._ports_of([holding.server_uuid for holding in holdings])
        return [
            all(
                port["status"] == "ACTIVE" or neutron_ports.is_stray(port, holding)
                for port in found[holding.server_uuid]
            )
            for holding in holdings
        ]

    def strays(self, holdings: Sequence[ServerPorts]) -> list[list[str]]:
        found = self._ports_of([holding.server_uuid for holding in holdings])
        return [
            [port["id"] for port in found[holding.server_uuid] if neutron_ports.is_stray(port, holding)]
            for holding in holdings
        ]

    def look(self, holdings: Sequence[ServerPorts]) -> list[list[PortRecord]]:
        found = self._known_ports_of([holding for holding in holdings if holding.ports])
        floating = self._floating([port["id"] for ports in found.values() for port in ports])
        return [self._seen(holding, found[holding.server_uuid], floating) for holding in holdings]

    def _require_sight(self) -> None:
        """To somebody who may not see all ports they seem to be gone; quotas are told to the same people."""
        try:
            self._link.find_some("quotas")
        except NeutronFault as fault:
            if fault.status != 403:
                raise
            raise NetworkDeniedError("Neutron does not show us all ports: we lack the role for it") from fault

    def made_ports(self) -> Iterator[list[MadePort]]:
        for page in self._link.find_pages("ports", [("fields", "id"), ("fields", "description")]):
            yield [
                MadePort(port["id"], server)
                for port in page
                if (server := neutron_ports.made_for(port)) is not None
            ]

    def interfaces(self, holding: ServerPorts) -> list[Interface]:
        tags = {record.id: record.tag for record in holding.ports}
        return [
            Interface(
                port["id"],
                port["network_id"],
                port["mac_address"],
                port["status"],
                [(fixed["subnet_id"], fixed["ip_address"]) for fixed in port["fixed_ips"]],
                tags.get(port["id"]),
            )
            for port in self._ports_of([holding.server_uuid])[holding.server_uuid]
        ]

    def _floating(self, port_ids: Sequence[str]) -> dict[str, list[str]]:
        """By port; nothing where Neutron has no routers."""
        leading: dict[str, list[str]] = defaultdict(list)
        try:
            for address in self._link.find_by("floatingips", "port_id", port_ids):
                leading[address["port_id"]].append(address["floating_ip_address"])
        except NeutronFault as fault:
            if fault.status != 404:
                raise
        return leading

    def _seen(
        self, holding: ServerPorts, ports: Sequence[Json], floating: Mapping[str, list[str]]
    ) -> list[PortRecord]:
        by_id = {port["id"]: port for port in ports}
        return [
            msgspec.structs.replace(
                record,
                floating=sorted(floating.get(record.id, ())),
                **self._known(by_id[record.id]),
            )
            for record in holding.ports
            if record.id in by_id
        ]

    # ------------------------------------------------------------ addresses that come and go

    def add_address(self, holding: ServerPorts, network_id: str) -> list[PortRecord]:
        """Of the first subnet that has one left. A port that has more than we know of has got it before."""
        known = {record.id: len(record.addresses) for record in holding.ports}
        found = self._ports_of([holding.server_uuid])[holding.server_uuid]
        ports = [port for port in found if port["network_id"] == network_id and port["id"] in known]
        if not ports:
            raise NetworkError(f"Network {network_id} could not be found for instance {holding.server_uuid}.")
        if all(len(port["fixed_ips"]) <= known[port["id"]] for port in ports):
            self._add_address(ports[0])
        return self.look([holding])[0]

    def _add_address(self, port: Json) -> None:
        last: NeutronFault | None = None
        for subnet in self._networks.network(port["network_id"]).subnets:
            try:
                more = [*port["fixed_ips"], {"subnet_id": subnet.id}]
                self._link.update("ports", port["id"], {"fixed_ips": more})
            except NeutronFault as fault:
                last = fault
            else:
                return
        if last is not None:
            raise neutron_faults.of_request(last) from last

    def remove_address(self, holding: ServerPorts, address: str) -> list[PortRecord]:
        for port in self._ports_of([holding.server_uuid])[holding.server_uuid]:
            left = [fixed for fixed in port["fixed_ips"] if fixed["ip_address"] != address]
            if left != port["fixed_ips"]:
                try:
                    self._link.update("ports", port["id"], {"fixed_ips": left})
                except NeutronFault as fault:
                    raise neutron_faults.of_request(fault) from fault
        return self.look([holding])[0]

    def regroup(self, requester: Requester, holding: ServerPorts, name: str, *, joins: bool) -> str:
        return SecurityGroups(self._link).change(requester, holding.server_uuid, name, joins=joins)

    def lead_floating(self, requester: Requester, holding: ServerPorts, change: FloatingChange) -> str | None:
        return FloatingAddresses(self._link).lead(requester, holding.ports, change)

    def take_floating(self, requester: Requester, holding: ServerPorts, address: str) -> None:
        FloatingAddresses(self._link).take_away(requester, holding.ports, address)

    def security_groups(self, requester: Requester, holding: ServerPorts) -> list[SecurityGroup]:
        return SecurityGroups(self._link).of_server(requester, holding.server_uuid)

    # ------------------------------------------------------------ the end

    def release(self, holdings: Sequence[ServerPorts]) -> None:
        found = self._known_ports_of(holdings)
        for outcome in self._each(
            holdings, lambda holding: self._release_ports(holding, found[holding.server_uuid])
        ):
            if isinstance(outcome, NetworkError):
                raise outcome

    def drop(self, holding: ServerPorts, port_id: str) -> None:
        found = self._ports_of([holding.server_uuid])[holding.server_uuid]
        self._release_ports(holding, [port for port in found if port["id"] == port_id])

    def _release_ports(self, holding: ServerPorts, ports: Sequence[Json]) -> list[PortRecord]:
        records = {record.id: record for record in holding.ports}
        for port in ports:
            try:
                if port["id"] in holding.brought:
                    self._give_back(port, records.get(port["id"]))
                else:
                    self._link.delete("ports", port["id"])
            except NeutronFault as fault:
                if fault.status != 404:
                    raise neutron_faults.of_request(fault) from fault
        return []

    def _give_back(self, port: Json, record: PortRecord | None) -> None:
        """As it was before it was ours to use."""
        self._link.drop_inactive_bindings(port["id"])
        self._link.update("ports", port["id"], neutron_ports.given_back(port, record))

    # ------------------------------------------------------------ what Neutron has

    def _known_ports_of(self, holdings: Sequence[ServerPorts]) -> dict[str, list[Json]]:
        """As `_ports_of`; if one that we know of is missing, only after we made sure that we would see it.

        A Neutron that has just started may take us for somebody else in its first answers.
        """
        servers = [holding.server_uuid for holding in holdings]
        found = self._ports_of(servers)
        listed = {port["id"] for ports in found.values() for port in ports}
        if all(record.id in listed for holding in holdings for record in holding.ports):
            return found
        self._require_sight()
        return self._ports_of(servers)

    def _ports_of(self, server_uuids: Sequence[str]) -> dict[str, list[Json]]:
        """By server; in an order that stays."""
        found: dict[str, list[Json]] = defaultdict(list)
        for port in self._link.find_by("ports", "device_id", server_uuids):
            found[port["device_id"]].append(port)
        for ports in found.values():
            ports.sort(key=lambda port: (port["created_at"], port["id"]))
        return found

    def _record(self, port: Json, *, ours: bool, tag: str | None) -> PortRecord:
        return PortRecord(
            id=port["id"],
            network_id=port["network_id"],
            ours=ours,
            needs=self._needs(port),
            deferred=port.get("ip_allocation") == "deferred" and not port["fixed_ips"],
            profile=neutron_ports.settled(port),
            tag=tag,
            came_as="" if ours else port.get("binding:vnic_type") or "",
            **self._known(port),
        )

    def _known(self, port: Json) -> dict[str, Any]:
        """What may be another each time that Neutron tells of the port."""
        network = self._networks.network(port["network_id"])
        return {
            "network_name": network.name,
            "mac": port["mac_address"],
            "addresses": [fixed["ip_address"] for fixed in port["fixed_ips"]],
            "mtu": network.mtu,
            "subnets": network.told(fixed["subnet_id"] for fixed in port["fixed_ips"]),
            **msgspec.structs.asdict(neutron_ports.vif_binding(port, "binding:")),
        }

    def _record_again(
        self, port: Json, before: PortRecord, *, served: dict[str, dict[str, str]]
    ) -> PortRecord:
        """After a change; what it came with is remembered."""
        changed = self._record(port, ours=before.ours, tag=before.tag)
        return msgspec.structs.replace(
            changed,
            deferred=before.deferred,
            profile=before.profile,
            named=before.named,
            came_as=before.came_as,
            served=served,
        )

    def _needs(self, port: Json) -> PortNeeds:
        network = self._networks.network(port["network_id"])
        segments: list[str] | None = None
        if network.routed and port["fixed_ips"]:
            segments = sorted(network.segments(fixed["subnet_id"] for fixed in port["fixed_ips"])) or None
        elif network.routed and port.get("ip_allocation") == "deferred":
            segments = self._networks.open_segments(network)
        needs = neutron_ports.resources(port)
        return msgspec.structs.replace(needs, segments=segments, network_name=network.name)

    def _each(
        self, items: Sequence[T], work: Callable[[T], list[PortRecord]]
    ) -> list[list[PortRecord] | NetworkError]:
        """Several at a time: most of it is waiting for Neutron."""

        whose = [context.about(item.server_uuid) for item in items]  # the threads don't know

        def outcome(item: T, owner: WorkContext) -> list[PortRecord] | NetworkError:
            try:
                with context.working(owner):
                    return work(item)
            except NetworkError as error:
                return error
            except NeutronFault as fault:
                return neutron_faults.of_request(fault)

        if len(items) == 1:
            return [outcome(items[0], whose[0])]
        futures = [self._pool.submit(outcome, *each) for each in zip(items, whose, strict=True)]
        return [future.result() for future in futures]


def _require_free(port: Json, order: PortRequest) -> None:
    if port["project_id"] != order.project_id:
        raise _no_port(port["id"])
    if port["device_id"]:
        raise NetworkError(f"Port {port['id']} is still in use.", fault=NetworkFault.CONFLICT)


def _no_port(port_id: str) -> NetworkError:
    return NetworkError(f"Port {port_id} could not be found.", fault=NetworkFault.NOT_FOUND)
