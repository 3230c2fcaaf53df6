"""Ranges of addresses: numbers on the inside, text on the outside."""

from __future__ import annotations

import ipaddress
from dataclasses import dataclass

IPNetwork = ipaddress.IPv4Network | ipaddress.IPv6Network


@dataclass(frozen=True)
class AddressRange:
    """The addresses from `first` on, `size` of them, in a network that may have more."""

    first: int
    size: int
    network: IPNetwork

    @classmethod
    def parse(cls, text: str) -> AddressRange:
        """`10.0.0.0/24` without network, gateway and broadcast address; `10.0.0.5-10.0.0.9` as it stands.

        The latter's network is the smallest one that has them all, unless they end in the length of another:
        `10.0.0.5-10.0.0.9/24`.
        """
        if "-" in text:
            bounds, _, length = text.partition("/")
            low, high = (ipaddress.ip_address(part.strip()) for part in bounds.split("-", 1))
            if low.version != high.version or int(high) < int(low):
                raise ValueError(f"{text!r} holds no addresses")
            length = length or str(low.max_prefixlen - (int(low) ^ int(high)).bit_length())
            network = ipaddress.ip_network(f"{low}/{length}", strict=False)
            return cls._between(int(low), int(high), network, text)
        network = ipaddress.ip_network(text.strip())
        last = int(network.broadcast_address) - (1 if network.version == 4 else 0)
        return cls._between(int(network.network_address) + 2, last, network, text)

    @classmethod
    def _between(cls, first: int, last: int, network: IPNetwork, text: str) -> AddressRange:
        if last < first or last > int(network.broadcast_address):
            raise ValueError(f"{text!r} holds no addresses")
        return cls(first, last - first + 1, network)

    @property
    def version(self) -> int:
        return self.network.version

    @property
    def gateway(self) -> str:
        """The first address of the network, if it is given to nobody; else there is none."""
        if self.network.num_addresses == 1:
            return ""
        first = str(self.network[1])
        return first if self.offset(first) is None else ""

    def _text(self, number: int) -> str:
        return str(ipaddress.IPv4Address(number) if self.version == 4 else ipaddress.IPv6Address(number))

    def address(self, offset: int) -> str:
        return self._text(self.first + offset)

    def offset(self, address: str) -> int | None:
        """Where an address is in the range, or None if it is not."""
        parsed = ipaddress.ip_address(address)
        offset = int(parsed) - self.first
        return offset if parsed.version == self.version and 0 <= offset < self.size else None

    def overlaps(self, other: AddressRange) -> bool:
        return (
            self.version == other.version
            and self.first < other.first + other.size
            and other.first < self.first + self.size
        )
