"""Ranges of addresses: numbers on the inside, text on the outside."""

from __future__ import annotations

import ipaddress
from dataclasses import dataclass


@dataclass(frozen=True)
class AddressRange:
    """The addresses from `first` on, `size` of them."""

    first: int
    size: int
    version: int

    @classmethod
    def parse(cls, text: str) -> AddressRange:
        """`10.0.0.0/24` without network, gateway and broadcast address; `10.0.0.5-10.0.0.9` as it stands."""
        if "-" in text:
            low, high = (ipaddress.ip_address(part.strip()) for part in text.split("-", 1))
            return cls._between(int(low), int(high), low.version, high.version, text)
        network = ipaddress.ip_network(text.strip())
        last = int(network.broadcast_address) - (1 if network.version == 4 else 0)
        return cls._between(int(network.network_address) + 2, last, network.version, network.version, text)

    @classmethod
    def _between(cls, first: int, last: int, version: int, other_version: int, text: str) -> AddressRange:
        if version != other_version or last < first:
            raise ValueError(f"{text!r} holds no addresses")
        return cls(first, last - first + 1, version)

    def address(self, offset: int) -> str:
        number = self.first + offset
        return str(ipaddress.IPv4Address(number) if self.version == 4 else ipaddress.IPv6Address(number))

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
