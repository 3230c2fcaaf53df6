"""Networks, in two phases: ports are got or made before a host is known, and bound once it is.

What a user asks for is agreed to before that, while the user is there to be told what is wrong with it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from enum import StrEnum
from typing import Any, Protocol, runtime_checkable

import msgspec

Networks = str | list[dict[str, Any]]
"""`auto` (one is made, if there is none), `only` (there must be one), `any` (none will do, too), `none`; or a
list of wishes, each with `uuid`, `port`, `fixed_ip` and `tag`."""


class NetworkAccess(StrEnum):
    """Who can work with a network."""

    CONDUCTORS = "conductors"
    """It is in their database."""
    ANYONE = "anyone"
    """Whoever has credentials, this process among them."""
    AGENTS = "agents"
    """This process has no credentials; agents may have some."""


class NetworkFault(StrEnum):
    """What is wrong; each API has its own status for it."""

    BAD_REQUEST = "bad request"
    CONFLICT = "conflict"
    FORBIDDEN = "forbidden"
    NOT_FOUND = "not found"
    TAKEN = "taken"
    """Somebody else has the address."""
    AMBIGUOUS = "ambiguous"
    """There are several networks to choose from."""


class NetworkError(Exception):
    """A sentence for the user; `retry_elsewhere` says whether another host may do.

    If no host of the same cell will do either, `cell` names it.
    """

    def __init__(
        self,
        message: str,
        *,
        retry_elsewhere: bool = False,
        cell: str | None = None,
        fault: NetworkFault = NetworkFault.BAD_REQUEST,
    ) -> None:
        super().__init__(message)
        self.retry_elsewhere = retry_elsewhere
        self.cell = cell
        self.fault = fault


class NetworkUnavailableError(Exception):
    """The network service did not answer, or not in a way that makes sense; worth another try later."""


class NetworkDeniedError(NetworkUnavailableError):
    """The network service does not let us in: an operator has to mend the credentials."""


class PortGroup(msgspec.Struct, frozen=True):
    """Resources that a port needs together: bandwidth of one bridge, say."""

    id: str
    resources: dict[str, int]
    required: list[str] = []
    """Traits."""

    @property
    def suffix(self) -> str:
        """Of its request group in a query to Placement."""
        return f"_{self.id}"


class PortNeeds(msgspec.Struct, frozen=True):
    """What scheduling has to know of a port."""

    groups: list[PortGroup] = []
    same_subtree: list[str] = []
    """Groups that have to be served from one branch of a host's tree."""
    plain: bool = False
    """As older network services say it: there is one group, which has no name of its own."""
    segments: list[str] | None = None
    """The host must reach one of these; None if every host will do."""
    network_name: str = ""
    """Whose segments they are, for people."""


class HostRoute(msgspec.Struct, frozen=True):
    destination: str
    """A network, as `10.1.0.0/16`."""
    nexthop: str


class PortSubnet(msgspec.Struct, frozen=True):
    """What a guest has to know of a subnet that it has an address of; in Neutron's words."""

    cidr: str
    ip_version: int = 4
    gateway_ip: str = ""
    """Empty: there is none."""
    dns_nameservers: list[str] = []
    host_routes: list[HostRoute] = []
    enable_dhcp: bool = False
    ipv6_address_mode: str = ""


class VifBinding(msgspec.Struct, frozen=True):
    """How a host has to plug a port, as the network says; in Neutron's words."""

    vif_type: str = ""
    vif_details: dict[str, Any] = {}
    vnic_type: str = "normal"


class PortRecord(msgspec.Struct):
    """A port of a server, as the control plane remembers it."""

    id: str
    network_id: str
    network_name: str
    ours: bool
    """Made by us, so deleted with the server; a port that the user brought is only unbound."""
    mac: str = ""
    addresses: list[str] = []
    floating: list[str] = []
    """Addresses elsewhere that lead to these."""
    needs: PortNeeds = PortNeeds()
    deferred: bool = False
    """It came without an address, and gets one of the segment of the host that it is bound to."""
    profile: dict[str, Any] = {}
    """The binding profile that it came with."""
    tag: str | None = None
    expected: str = ""
    """The host where it has a second binding, because the server is about to go there while it runs."""
    expected_binding: VifBinding | None = None
    """How that host has to plug it."""
    served: dict[str, dict[str, str]] = {}
    """By host: which provider serves each group of its needs there."""
    named: bool = False
    """It got its name in DNS from us."""
    vif_type: str = ""
    """How its host has to plug it, with the two that follow; empty if an older release wrote this."""
    vif_details: dict[str, Any] = {}
    vnic_type: str = "normal"
    came_as: str = ""
    """The `vnic_type` that a port of the user's had; empty if we made it, or an older release wrote this."""
    mtu: int = 0
    """0: the network does not say."""
    subnets: list[PortSubnet] = []
    """Those that its addresses are of."""

    def arriving(self) -> PortRecord:
        """As the host has to plug it that expects the server."""
        there = self.expected_binding
        if there is None:
            return self
        return msgspec.structs.replace(
            self, vif_type=there.vif_type, vif_details=there.vif_details, vnic_type=there.vnic_type
        )


class Requester(msgspec.Struct, frozen=True):
    """Who asks for something."""

    project_id: str
    token: str | None = None
    """Keystone's; None where there is no Keystone."""


class AgreedNetworks(msgspec.Struct, frozen=True):
    """What a user asked for, found to be possible."""

    networks: Networks
    security_groups: list[str] = []
    """Their IDs, where a network service knows any."""


class PortRequest(msgspec.Struct, frozen=True):
    """A server that wants ports."""

    server_uuid: str
    project_id: str
    name: str
    networks: Networks = "auto"
    security_groups: list[str] = []
    zone: str = ""
    hostname: str = ""
    known: frozenset[str] = frozenset()
    """Ports that the server has already: they answer no wish."""


class Binding(msgspec.Struct, frozen=True):
    """A server that wants its ports bound to a host."""

    server_uuid: str
    ports: list[PortRecord]
    host: str
    cell: str
    zone: str = ""
    providers: Mapping[str, list[str]] = {}
    """By suffix of the request group: who serves it in Placement."""
    by_driver: bool = False
    """Whoever keeps the server binds them, as Ironic does: they only have to be the server's."""


class ServerPorts(msgspec.Struct, frozen=True):
    """A server, and what it may have of the network."""

    server_uuid: str
    ports: list[PortRecord]
    brought: frozenset[str] = frozenset()
    """Ports of the user's, also those that no record was kept of."""

    @classmethod
    def of(cls, server_uuid: str, request: Mapping[str, Any]) -> ServerPorts:
        """From the server's request, which keeps its ports."""
        ports = [msgspec.convert(port, PortRecord) for port in request.get("ports", [])]
        asked = request.get("networks", "auto")
        wishes = asked if isinstance(asked, list) else []
        named = {wish["port"] for wish in wishes if wish.get("port")} | set(request.get("brought", ()))
        return cls(server_uuid, ports, frozenset(named | {port.id for port in ports if not port.ours}))


class Interface(msgspec.Struct, frozen=True):
    """A port of a server, as the network has it."""

    port_id: str
    network_id: str
    mac: str
    state: str
    """`ACTIVE` if it carries traffic, as Neutron's words go."""
    addresses: list[tuple[str, str]]
    """Each with the subnet that it is of."""
    tag: str | None = None


class MadePort(msgspec.Struct, frozen=True):
    """A port that we made for a server, as its mark says."""

    port_id: str
    server_uuid: str


class SecurityGroupRule(msgspec.Struct, frozen=True):
    """What a group lets in; in Neutron's words."""

    id: str
    protocol: str | None = None
    port_range_min: int | None = None
    port_range_max: int | None = None
    remote_group_id: str | None = None
    remote_group_name: str = ""
    """Of that group, with the project that follows; empty if whoever asks can't see it."""
    remote_group_project_id: str = ""
    remote_ip_prefix: str | None = None


class SecurityGroup(msgspec.Struct, frozen=True):
    id: str
    name: str
    description: str
    project_id: str
    rules: list[SecurityGroupRule] = []
    """Those for what comes in."""


class FloatingChange(msgspec.Struct, frozen=True):
    """A floating address shall lead to one of a server's."""

    floating: str
    fixed: str


@runtime_checkable
class AddressKeeping(Protocol):
    """A network that has no memory but our database: what that has lost, it has to be told."""

    def regain(self, holding: ServerPorts) -> None:
        """The server has these ports; NetworkError if one of their addresses is another server's by now."""


class Network(Protocol):
    @property
    def reach(self) -> NetworkAccess: ...

    def agree(
        self,
        requester: Requester,
        networks: Networks,
        security_groups: Sequence[str],
        count: int,
        have: Sequence[PortRecord] = (),
    ) -> AgreedNetworks:
        """Before anything is written down: whether `count` servers can have what is asked for.

        Raises `NetworkError`. A wish that leaves a choice comes back as one that leaves none. `have` are the
        ports of a server that is there already and wants more.
        """

    def prepare(self, orders: Sequence[PortRequest]) -> list[list[PortRecord] | NetworkError]:
        """Phase 1, before scheduling: each on its own merits, answered in their order.

        Asked again after a crash it finds what it made the first time.
        """

    def bind(self, bindings: Sequence[Binding]) -> list[list[PortRecord] | NetworkError]:
        """Phase 2, after scheduling: each on its own merits, answered in their order."""

    def expect(self, bindings: Sequence[Binding]) -> list[list[PortRecord] | NetworkError]:
        """A second binding, without traffic yet, where a running server is about to go.

        To bind there later makes it the only one; to bind where the server was takes it back.
        """

    def unbind(self, ports: list[PortRecord], host: str, node_uuid: str) -> list[PortRecord]:
        """Undo phase 2 at this host, or at the node, if a driver bound them there: another one will be tried.

        What is bound elsewhere by now stays so: the lease of whoever asks may have ended.
        """

    def release(self, holdings: Sequence[ServerPorts]) -> None:
        """These servers are gone: delete the ports that we made, unbind the user's, touch no others."""

    def drop(self, holding: ServerPorts, port_id: str) -> None:
        """The server stays, but loses this port: delete it if we made it, else unbind it."""

    def add_address(self, holding: ServerPorts, network_id: str) -> list[PortRecord]:
        """One more, for a port that the server has on this network; all its ports as they are then."""

    def remove_address(self, holding: ServerPorts, address: str) -> list[PortRecord]:
        """Of whichever port has it; all ports as they are then."""

    def regroup(self, requester: Requester, holding: ServerPorts, name: str, *, joins: bool) -> str:
        """Put a server's ports into a security group of who asks, or take them out; the group's name.

        It is named by its name or its id. Raises `NetworkError`.
        """

    def lead_floating(self, requester: Requester, holding: ServerPorts, change: FloatingChange) -> str | None:
        """Have an address of who asks lead to the server; the one that it led to before, if it was another.

        Raises `NetworkError`.
        """

    def take_floating(self, requester: Requester, holding: ServerPorts, address: str) -> None:
        """It leads nowhere any more. Raises `NetworkError`, also if it does not lead to this server."""

    def security_groups(self, requester: Requester, holding: ServerPorts) -> list[SecurityGroup]:
        """Those of a server's ports, as whoever asks sees them."""

    def are_up(self, holdings: Sequence[ServerPorts]) -> list[bool]:
        """Whether all ports of each of these servers carry traffic."""

    def look(self, holdings: Sequence[ServerPorts]) -> list[list[PortRecord]]:
        """The ports of these servers as they are now, without those that are gone; in the servers' order."""

    def strays(self, holdings: Sequence[ServerPorts]) -> list[list[str]]:
        """Ports that were made by us for these servers, and that they don't know of; in their order."""

    def made_ports(self) -> Iterator[list[MadePort]]:
        """All ports that we made, in pages; none where they are written down with the servers."""

    def interfaces(self, holding: ServerPorts) -> list[Interface]:
        """The ports of one server."""
