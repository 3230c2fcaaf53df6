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


def refuse_open_door(host: str, strategy: str) -> None:
    """Without authentication everybody who can reach the address is an administrator."""
    if strategy == "none" and not is_loopback(host):
        raise ConfigError(
            f"authentication `none` is allowed on a loopback address only, and {host} is not one; "
            "use basic or keystone"
        )


def url(host: str, port: int) -> str:
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"
