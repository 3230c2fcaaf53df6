"""The network of a conductor that has no credentials for Neutron: agents, which have them, do its work."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

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
    Requester,
    SecurityGroup,
    ServerPorts,
)

_SENTENCE = "The conductors have no credentials for Neutron."


class AbsentNetwork:
    """Refuses what needs Neutron, and believes of ports what is written down."""

    reach = NetworkAccess.AGENTS

    def agree(
        self,
        requester: Requester,
        networks: Networks,
        security_groups: Sequence[str],
        count: int,
        have: Sequence[PortRecord] = (),
    ) -> AgreedNetworks:
        raise _refusal()

    def prepare(self, orders: Sequence[PortRequest]) -> list[list[PortRecord] | NetworkError]:
        return [[] if order.networks == "none" else _refusal() for order in orders]

    def bind(self, bindings: Sequence[Binding]) -> list[list[PortRecord] | NetworkError]:
        return [_refusal() if binding.ports else [] for binding in bindings]

    def expect(self, bindings: Sequence[Binding]) -> list[list[PortRecord] | NetworkError]:
        return self.bind(bindings)

    def unbind(self, ports: list[PortRecord], host: str, node_uuid: str) -> list[PortRecord]:
        """Who binds them next moves them."""
        return ports

    def release(self, holdings: Sequence[ServerPorts]) -> None:
        """An agent that failed has released its ports; what it could not release goes with the server."""

    def drop(self, holding: ServerPorts, port_id: str) -> None:
        raise _refusal()

    def add_address(self, holding: ServerPorts, network_id: str) -> list[PortRecord]:
        raise _refusal()

    def remove_address(self, holding: ServerPorts, address: str) -> list[PortRecord]:
        raise _refusal()

    def regroup(self, requester: Requester, holding: ServerPorts, name: str, *, joins: bool) -> str:
        raise _refusal()

    def lead_floating(self, requester: Requester, holding: ServerPorts, change: FloatingChange) -> str | None:
        raise _refusal()

    def take_floating(self, requester: Requester, holding: ServerPorts, address: str) -> None:
        raise _refusal()

    def security_groups(self, requester: Requester, holding: ServerPorts) -> list[SecurityGroup]:
        raise _refusal()

    def are_up(self, holdings: Sequence[ServerPorts]) -> list[bool]:
        """The agent has waited for that."""
        return [True for _ in holdings]

    def look(self, holdings: Sequence[ServerPorts]) -> list[list[PortRecord]]:
        return [holding.ports for holding in holdings]

    def strays(self, holdings: Sequence[ServerPorts]) -> list[list[str]]:
        """Nobody here could look."""
        return [[] for _ in holdings]

    def made_ports(self) -> Iterator[list[MadePort]]:
        """Nobody here could look."""
        return iter(())

    def interfaces(self, holding: ServerPorts) -> list[Interface]:
        raise _refusal()


def _refusal() -> NetworkError:
    return NetworkError(_SENTENCE, fault=NetworkFault.CONFLICT)
