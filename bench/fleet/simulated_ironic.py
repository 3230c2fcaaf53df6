"""An Ironic that only lists nodes, quickly: for fleets that a real one could not hold on this machine.

python -m bench.fleet.simulated_ironic PORT NODES
"""

from __future__ import annotations

import sys
import uuid
from collections.abc import Callable, Iterable
from datetime import UTC, datetime, timedelta
from typing import Any
from urllib.parse import parse_qs

import msgspec
from cheroot import wsgi

VERSION = "1.82"
_NAMESPACE = uuid.UUID("4b0c2a6e-0c0e-4a8e-9f1d-5d8f5f8d3c11")
_ENROLLED = datetime(2026, 1, 1, tzinfo=UTC)
Reply = Callable[[str, list[tuple[str, str]]], Any]


class SimulatedIronic:
    """Every node is encoded once; a page is a slice. Each changed a second after the one before it."""

    def __init__(self, count: int) -> None:
        uuids = [str(uuid.uuid5(_NAMESPACE, str(number))) for number in range(count)]
        self._nodes = [msgspec.json.encode(_node(found, number)) for number, found in enumerate(uuids)]
        self._place = {found: place for place, found in enumerate(uuids)}

    def __call__(self, environ: dict[str, Any], start: Reply) -> Iterable[bytes]:
        path, query = environ["PATH_INFO"], parse_qs(environ["QUERY_STRING"])
        if path == "/v1":
            body = b"{}"
        elif path == "/v1/allocations":
            body = b'{"allocations":[]}'
        elif path == "/v1/nodes":
            page = [] if "instance_uuid" in query else self._page(query)
            body = b'{"nodes":[' + b",".join(page) + b"]}"
        else:
            body = self._nodes[self._place[path.rpartition("/")[2]]]
        headers = {
            "Content-Type": "application/json",
            "Content-Length": str(len(body)),
            "X-OpenStack-Ironic-API-Maximum-Version": VERSION,
        }
        start("200 OK", list(headers.items()))
        return [body]

    def _page(self, query: dict[str, list[str]]) -> list[bytes]:
        limit, marker = int(query.get("limit", ["1000"])[0]), query.get("marker")
        if query.get("sort_dir") == ["desc"]:
            last = self._place[marker[0]] if marker else len(self._nodes)
            return self._nodes[max(0, last - limit) : last][::-1]
        first = self._place[marker[0]] + 1 if marker else 0
        return self._nodes[first : first + limit]


def _node(found: str, number: int) -> dict[str, Any]:
    return {
        "uuid": found,
        "name": f"node-{number:06}",
        "resource_class": f"class-{number % 5}",
        "traits": ["CUSTOM_RACK"],
        "provision_state": "available",
        "power_state": "power off",
        "maintenance": False,
        "retired": False,
        "instance_uuid": None,
        "conductor_group": "",
        "shard": None,
        "updated_at": (_ENROLLED + timedelta(seconds=number)).isoformat(),
        "properties": {"cpus": 16, "memory_mb": 65536, "local_gb": 480, "cpu_arch": "x86_64"},
    }


if __name__ == "__main__":
    wsgi.Server(("127.0.0.1", int(sys.argv[1])), SimulatedIronic(int(sys.argv[2])), numthreads=16).start()
