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


def require_free(host: str, port: int) -> None:
    """ConfigError if nobody can listen there, for who leaves the listening to a library that would not say so
    in a sentence. Workers share the port, as those of a reload do with their predecessors."""
    try:
        family, kind, _, _, found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        with socket.socket(family, kind) as trial:
            trial.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            trial.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
            trial.bind(found)
    except OSError as error:
        raise ConfigError(f"can't listen on {url(host, port)}: {error}") from error


def url(host: str, port: int, scheme: str = "http") -> str:
    return f"{scheme}://[{host}]:{port}" if ":" in host else f"{scheme}://{host}:{port}"
