"""The addresses of a server's ports, as the API shows them."""

from __future__ import annotations

from typing import Any

from moorage.network.contract import PortRecord


def addresses(ports: list[PortRecord]) -> dict[str, list[dict[str, Any]]]:
    """By the network's name."""
    found: dict[str, list[dict[str, Any]]] = {}
    for port in ports:
        kinds = [(each, "fixed") for each in port.addresses] + [(each, "floating") for each in port.floating]
        for address, kind in kinds:
            found.setdefault(port.network_name, []).append(
                {
                    "version": 6 if ":" in address else 4,
                    "addr": address,
                    "OS-EXT-IPS:type": kind,
                    "OS-EXT-IPS-MAC:mac_addr": port.mac,
                }
            )
    return found
