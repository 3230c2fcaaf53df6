"""As much of Neutron as a boot needs, in this process: who asked for what is written down.

The real one is in `tests/integration`; this one is there for the many ways in which an upgrade or a fault can
go, each of them in a fraction of a second.
"""

from __future__ import annotations

import itertools
import json
import threading
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler
from typing import Any
from urllib.parse import parse_qsl, urlencode, urlsplit

from keystoneauth1.adapter import Adapter
from keystoneauth1.noauth import NoAuth
from keystoneauth1.session import Session

from moorage.network.neutron import NeutronNetwork
from moorage.network.neutron_link import NeutronLink
from tests.support.closing_server import ClosingHTTPServer

NETWORK = "11111111-0000-4000-8000-000000000001"
SEGMENT = "33333333-0000-4000-8000-000000000001"
_SUBNET = "22222222-0000-4000-8000-000000000001"
_A_SUBNET = {
    "id": _SUBNET,
    "ip_version": 4,
    "cidr": "10.9.0.0/16",
    "gateway_ip": "10.9.0.1",
    "dns_nameservers": ["10.9.0.2"],
    "host_routes": [{"destination": "10.8.0.0/16", "nexthop": "10.9.0.3"}],
    "enable_dhcp": True,
    "ipv6_address_mode": None,
}
_WHO = "X-Asker"
_MADE_FOR = ("description", "device_id", "device_owner", "name")
PAGE = 2
"""No list is longer, as in a Neutron with `pagination_max_limit`."""
_ELSEWHERE = "https://neutron.internal.invalid:9696/v2.0"
"""Where Neutron thinks it is, behind a proxy that nobody told it of: its links lead nowhere."""
Json = dict[str, Any]


class Refusal(Exception):
    def __init__(self, status: int, kind: str) -> None:
        super().__init__(kind)
        self.status = status
        self.kind = kind


class StageNeutron:
    """One network that every project may use, and the ports on it."""

    def __init__(self) -> None:
        self.ports: dict[str, Json] = {}
        self.bindings: dict[str, list[Json]] = {}
        """By port: those beside the one that counts."""
        self.asked: list[tuple[str, str, str]] = []
        """Who, with which method, for what."""
        self.request_ids: list[tuple[str, str]] = []
        """Of those who changed something: with which method, and as part of what."""
        self.unbindable: set[str] = set()
        """Hosts at which nothing can be bound."""
        self.hides = False
        """Whether whoever asks lacks the role to see what is not their own."""
        self.unplugged: set[str] = set()
        """Hosts at which no port comes up."""
        self.heeds_tags = True
        """Of a new port; else they have to be set afterwards."""
        self.floating: dict[str, Json] = {}
        """Addresses elsewhere, by ID."""
        self.routed = False
        """The network has a segment, and a port gets its address when it is bound."""
        self.needs: Json | None = None
        """What new ports say that they need of their host."""
        self._numbers = itertools.count(10)
        self._lock = threading.Lock()

    # ------------------------------------------------------------ for tests

    def add_port(self, project_id: str) -> str:
        """One that a user made."""
        made = self._create({"network_id": NETWORK, "project_id": project_id, "name": "mine"})
        return str(made["id"])

    def copy_port(self, port_id: str) -> str:
        """Another one that was made for the same server."""
        with self._lock:
            alike = {name: self._port(port_id)[name] for name in ("network_id", "project_id", *_MADE_FOR)}
            return str(self._create(alike)["id"])

    def add_floating(self, address: str) -> Json:
        """One that leads nowhere."""
        identity = str(uuid.uuid4())
        made: Json = {"id": identity, "floating_ip_address": address, "port_id": None, "revision_number": 1}
        self.floating[identity] = made
        return made

    def ports_of(self, server_uuid: str) -> list[Json]:
        with self._lock:
            return [dict(port) for port in self.ports.values() if port["device_id"] == server_uuid]

    def owned(self) -> list[Json]:
        """The ports that belong to any server."""
        with self._lock:
            return [dict(port) for port in self.ports.values() if port["device_id"]]

    def who(self, method: str, resource: str = "ports") -> set[str]:
        with self._lock:
            return {who for who, how, what in self.asked if (how, what) == (method, resource)}

    # ------------------------------------------------------------ for clients

    def answer(self, who: str, method: str, target: str, body: Json, if_match: str) -> tuple[int, Json]:
        parts = urlsplit(target)
        _, _, *path = parts.path.split("/")
        query = parse_qsl(parts.query)
        with self._lock:
            self.asked.append((who, method, path[0]))
            try:
                return self._answer(method, path, query, body, if_match)
            except Refusal as refusal:
                told = {"type": refusal.kind, "message": f"the stage says {refusal.kind}", "detail": ""}
                return refusal.status, {"NeutronError": told}

    def _answer(
        self, method: str, path: list[str], query: list[tuple[str, str]], body: Json, if_match: str
    ) -> tuple[int, Json]:
        match method, path:
            case "GET", ["networks"]:
                return 200, _page("networks", [_network()], query)
            case "GET", ["networks", _]:
                return 200, {"network": _network()}
            case "GET", ["subnets"]:
                segment = SEGMENT if self.routed else None
                return 200, _page("subnets", [{**_A_SUBNET, "segment_id": segment}], query)
            case "GET", ["network-ip-availabilities", _]:
                count = {"subnet_id": _SUBNET, "total_ips": 65_000, "used_ips": len(self.ports)}
                return 200, {"network_ip_availability": {"subnet_ip_availability": [count]}}
            case "GET", ["quotas"] if self.hides:
                raise Refusal(403, "PolicyNotAuthorized")
            case "GET", ["quotas"]:
                return 200, {"quotas": []}
            case "GET", ["ports"] if self.hides:
                return 200, _page("ports", [], query)
            case "GET", ["quotas", _, _]:
                return 200, {"quota": {"port": {"limit": -1, "used": 0, "reserved": 0}}}
            case "GET", ["ports"]:
                return 200, _page("ports", list(self.ports.values()), query)
            case "POST", ["ports"]:
                return 201, {"port": self._create(body["port"])}
            case "GET", ["ports", port_id]:
                return 200, {"port": self._port(port_id)}
            case "PUT", ["ports", port_id]:
                return 200, {"port": self._update(port_id, body["port"], if_match)}
            case "DELETE", ["ports", port_id]:
                self._port(port_id)
                del self.ports[port_id]
                return 204, {}
            case "PUT", ["ports", port_id, "tags"]:
                self._port(port_id)["tags"] = body["tags"]
                return 200, body
            case "GET", ["ports", port_id, "bindings"]:
                return 200, {"bindings": self._bindings(port_id)}
            case "POST", ["ports", port_id, "bindings"]:
                return 201, {"binding": self._add_binding(port_id, body["binding"])}
            case "GET", ["ports", port_id, "bindings", host]:
                return 200, {"binding": self._binding(port_id, host)}
            case "DELETE", ["ports", port_id, "bindings", host]:
                self.bindings[port_id].remove(self._binding(port_id, host))
                return 204, {}
            case "PUT", ["ports", port_id, "bindings", host, "activate"]:
                return 200, self._activate(port_id, host)
            case "GET", ["floatingips"]:
                return 200, _page("floatingips", list(self.floating.values()), query)
            case "PUT", ["floatingips", floating_id]:
                floating = self.floating[floating_id]
                _require_revision(floating, if_match)
                floating.update(body["floatingip"], revision_number=floating["revision_number"] + 1)
                return 200, {"floatingip": floating}
        raise Refusal(404, "HTTPNotFound")

    def _create(self, values: Json) -> Json:
        number = next(self._numbers)
        address = {"subnet_id": _SUBNET, "ip_address": _address(number)}
        port = {
            "id": str(uuid.uuid4()),
            "mac_address": f"fa:16:3e:00:{number // 256:02x}:{number % 256:02x}",
            "fixed_ips": [] if self.routed else [address],
            "ip_allocation": "deferred" if self.routed else "immediate",
            "device_id": "",
            "device_owner": "",
            "binding:host_id": "",
            "binding:vif_type": "unbound",
            "binding:vif_details": {},
            "binding:vnic_type": "normal",
            "binding:profile": {},
            "status": "DOWN",
            "revision_number": 1,
            "created_at": f"{number:08}",
            "resource_request": self.needs,
            **values,
            "tags": values.get("tags", []) if self.heeds_tags else [],
        }
        self.ports[port["id"]] = port
        return port

    def _bindings(self, port_id: str) -> list[Json]:
        """Those that don't count yet: that of the host that counts is in the port."""
        self._port(port_id)
        return self.bindings.setdefault(port_id, [])

    def _binding(self, port_id: str, host: str) -> Json:
        for binding in self._bindings(port_id):
            if binding["host"] == host:
                return binding
        raise Refusal(404, "PortBindingNotFound")

    def _add_binding(self, port_id: str, values: Json) -> Json:
        known = {binding["host"] for binding in self._bindings(port_id)}
        if values["host"] in known | {self._port(port_id)["binding:host_id"]}:
            raise Refusal(409, "PortBindingAlreadyExists")
        if values["host"] in self.unbindable:
            raise Refusal(500, "PortBindingError")
        binding = {**values, "status": "INACTIVE", **vif_at(values["host"])}
        self._bindings(port_id).append(binding)
        return binding

    def _activate(self, port_id: str, host: str) -> Json:
        port = self._port(port_id)
        if port["binding:host_id"] == host:
            raise Refusal(409, "PortBindingAlreadyActive")
        chosen = self._binding(port_id, host)
        before = {"host": port["binding:host_id"], "profile": port["binding:profile"], "status": "INACTIVE"}
        self._bindings(port_id).remove(chosen)
        self._bindings(port_id).append(before)
        port.update({"binding:host_id": host, "binding:profile": chosen["profile"]})
        port.update({f"binding:{name}": value for name, value in vif_at(host).items()})
        return chosen

    def _port(self, port_id: str) -> Json:
        if port_id not in self.ports:
            raise Refusal(404, "PortNotFound")
        return self.ports[port_id]

    def _update(self, port_id: str, values: Json, if_match: str) -> Json:
        port = self._port(port_id)
        _require_revision(port, if_match)
        port.update(values)
        port["fixed_ips"] = [
            {"ip_address": _address(next(self._numbers)), **fixed} for fixed in port["fixed_ips"]
        ]
        port["revision_number"] += 1
        host = port["binding:host_id"]
        failed = host in self.unbindable
        port["binding:vif_type"] = "binding_failed" if failed else "ovs" if host else "unbound"
        port["binding:vif_details"] = vif_at(host)["vif_details"] if host and not failed else {}
        down = failed or host in self.unplugged
        port["status"] = "ACTIVE" if host and not down else "DOWN"
        return port


def _require_revision(found: Json, if_match: str) -> None:
    if if_match and if_match != f"revision_number={found['revision_number']}":
        raise Refusal(412, "RevisionNumberConstraintFailed")


def _address(number: int) -> str:
    return f"10.9.{number // 256}.{number % 256}"


def vif_at(host: str) -> Json:
    """How a port is plugged there."""
    return {"vif_type": "ovs", "vif_details": {"bridge_name": f"br-of-{host}"}, "vnic_type": "normal"}


def _network() -> Json:
    return {
        "id": NETWORK,
        "name": "stage",
        "subnets": [_SUBNET],
        "admin_state_up": True,
        "shared": True,
        "router:external": False,
        "tags": [],
        "mtu": 1442,
    }


def _page(name: str, entries: list[Json], query: list[tuple[str, str]]) -> Json:
    """As Neutron does it, down to the link to a page before the first."""
    asked = dict(query)
    filters = [(key, value) for key, value in query if key not in ("limit", "marker", "fields")]
    limit = min(PAGE, int(asked.get("limit", PAGE)))
    if "marker" in asked and asked["marker"] not in {entry["id"] for entry in entries}:
        raise Refusal(404, "PortNotFound")
    found = sorted((entry for entry in entries if _matches(entry, filters)), key=lambda entry: entry["id"])
    page = [entry for entry in found if entry["id"] > asked.get("marker", "")][:limit]
    links = [{"rel": "previous", "href": f"{_ELSEWHERE}/{name}?page_reverse=True"}]
    if len(page) == limit:
        onwards = urlencode([*filters, ("marker", page[-1]["id"])])
        links.append({"rel": "next", "href": f"{_ELSEWHERE}/{name}?{onwards}"})
    return {name: page, f"{name}_links": links}


def _matches(entry: Json, filters: list[tuple[str, str]]) -> bool:
    """Values of one filter are alternatives; a filter of what an entry does not have does not count."""
    wanted: dict[str, set[str]] = {}
    for name, value in filters:
        wanted.setdefault(name, set()).add(value)
    return all(entry[name] in values for name, values in wanted.items() if name in entry)


@contextmanager
def serving(neutron: StageNeutron) -> Iterator[int]:
    """The port that it is served on."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def handle_any(self) -> None:
            body = self.rfile.read(int(self.headers.get("content-length") or 0))
            if self.command != "GET":
                neutron.request_ids.append((self.command, self.headers.get("X-OpenStack-Request-Id", "")))
            status, told = neutron.answer(
                self.headers.get(_WHO, ""),
                self.command,
                self.path,
                json.loads(body) if body else {},
                self.headers.get("If-Match", ""),
            )
            content = json.dumps(told).encode() if status != 204 else b""
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            if status != 204:
                self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        do_GET = do_POST = do_PUT = do_DELETE = handle_any  # noqa: N815

        def log_message(self, format: str, *args: object) -> None:
            """The test shows what it did."""

    server = ClosingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True)
    thread.start()
    try:
        yield server.server_address[1]
    finally:
        server.shutdown()
        server.server_close()


def network_at(port: int, who: str, timeout: float = 10.0) -> NeutronNetwork:
    """What somebody has who was given credentials."""
    endpoint = f"http://127.0.0.1:{port}/v2.0"
    session = Session(auth=NoAuth(endpoint=endpoint), timeout=timeout, additional_headers={_WHO: who})
    return NeutronNetwork(NeutronLink(Adapter(session, endpoint_override=endpoint)))
