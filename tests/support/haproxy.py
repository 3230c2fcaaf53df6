"""A real load balancer in front of processes of ours, set up as the page on draining says, only quicker."""

from __future__ import annotations

import csv
import io
import socket
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from tests.support import debian
from tests.support.processes import Service, free_port, start_service, wait_until

PROGRAM = debian.program("haproxy")
_CONFIGURATION = """\
global
    stats socket {directory}/stats.sock mode 600 level admin
    maxconn 512
defaults
    mode http
    timeout connect 5s
    timeout client 60s
    timeout server 60s
    timeout check 5s
    retries 3
    option redispatch
    http-reuse always
    option httpchk GET /readyz
    http-check expect status 200
    default-server check inter {inter} fall 1 rise 1 pool-purge-delay 60s
"""
"""It is as hostile as may be: a request goes to any connection that lies idle, however long it has."""


class HAProxy:
    def __init__(self, directory: Path, service: Service, ports: Mapping[str, int]) -> None:
        self._directory = directory
        self.service = service
        self.ports = ports
        """Where it listens, by the name of a group."""

    def url(self, group: str) -> str:
        return f"http://127.0.0.1:{self.ports[group]}"

    def up(self, group: str) -> set[str]:
        """The servers of a group that requests go to."""
        with socket.socket(socket.AF_UNIX) as asked:
            asked.connect(str(self._directory / "stats.sock"))
            asked.sendall(b"show stat\n")
            answer = b"".join(iter(lambda: asked.recv(65536), b""))
        rows = csv.DictReader(io.StringIO(answer.decode().removeprefix("# ")))
        return {
            row["svname"]
            for row in rows
            if row["pxname"] == group and row["svname"] != "BACKEND" and row["status"] == "UP"
        }


@contextmanager
def in_front_of(
    directory: Path,
    groups: Mapping[str, Mapping[str, int]],
    ports: Mapping[str, int] | None = None,
    inter: str = "200ms",
) -> Iterator[HAProxy]:
    """`groups`: the ports of the servers of each, by name; `ports`: where it is to listen, if that is known
    already. Raises `debian.Unavailable`."""
    debian.install("haproxy")
    ports = ports or {group: free_port() for group in groups}
    text = _CONFIGURATION.format(directory=directory, inter=inter)
    for group, servers in groups.items():
        text += f"listen {group}\n    bind 127.0.0.1:{ports[group]}\n"
        text += "".join(f"    server {name} 127.0.0.1:{port}\n" for name, port in servers.items())
    config = directory / "haproxy.cfg"
    config.write_text(text)
    command: list[str | Path] = [PROGRAM, "-db", "-f", config]
    first = next(iter(ports.values()))
    with start_service(command, first, directory / "haproxy.log") as service:
        # Its port answers before the socket has its name.
        wait_until((directory / "stats.sock").exists, "HAProxy's socket", 10)
        yield HAProxy(directory, service, ports)
