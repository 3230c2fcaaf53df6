"""Addresses that a service listens on."""

from __future__ import annotations

import ipaddress
import socket

from moorage.core.config import ConfigError


def is_loopback(host: str) -> bool:
    """Whether every address that `host` stands for is reachable from this machine only."""
    try:
        found = {info[4][0] for info in socket.getaddrinfo(host, None)}
    except OSError as error:
        raise ConfigError(f"can't listen on {host}: {error}") from error
    return all(ipaddress.ip_address(str(address).split("%")[0]).is_loopback for address in found)


def url(host: str, port: int, scheme: str = "http") -> str:
    return f"{scheme}://[{host}]:{port}" if ":" in host else f"{scheme}://{host}:{port}"
