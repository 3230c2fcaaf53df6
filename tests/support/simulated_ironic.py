"""An Ironic in memory, on a loopback port: as much of it as a compute driver sees, and everything at once.

For what drivers, agents and conductors make of it together. How Ironic really behaves, the tests with a real
one say.
"""

from __future__ import annotations

import copy
import re
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any
from urllib.parse import parse_qs

import msgspec
from cheroot import wsgi
from keystoneauth1 import session
from keystoneauth1.adapter import Adapter
from keystoneauth1.loading import get_plugin_loader

from moorage.core import uuids
from moorage.core.clock import utcnow
from moorage.drivers.ironic.api.client import IronicClient
from tests.support.processes import free_port

VERSION = "1.82"
PAGE = 2
"""No list is longer."""
Reply = Callable[[str, list[tuple[str, str]]], Any]
Answer = tuple[int, Any]
_POWERS = {"power on": "power on", "rebooting": "power on", "soft rebooting": "power on"}
_MISSING: Answer = (404, {"error_message": {"faultstring": "it could not be found"}})


class SimulatedIronic:
    def __init__(self) -> None:
        self.nodes: dict[str, dict[str, Any]] = {}
        self.reservations: dict[str, dict[str, Any]] = {}
        self.port = free_port()
        self.interrupted: list[str] = []
        """Nodes that got a non-maskable interrupt."""
        self.failing: dict[str, str] = {}
        """Nodes that can't be deployed, and why."""
        self.unclean: dict[str, str] = {}
        """Nodes that can't be cleaned, and why."""
        self.unrescuable: dict[str, str] = {}
        """Nodes that can't be rescued, and why."""
        self.passwords: dict[str, str] = {}
        """What the administrators of rescued nodes log in with."""
        self.requests: list[tuple[str, str]] = []
        """The methods and paths that were asked for, in order."""
        self._lock = threading.Lock()
        self._routes: tuple[tuple[str, str, Callable[..., Answer]], ...] = (
            ("GET", r"/v1", lambda body: (200, {})),
            ("GET", r"/v1/nodes", self._list_nodes),
            ("GET", r"/v1/nodes/([^/]+)", self._show),
            ("PATCH", r"/v1/nodes/([^/]+)", self._change),
            ("PUT", r"/v1/nodes/([^/]+)/states/provision", self._provision),
            ("PUT", r"/v1/nodes/([^/]+)/states/power", self._set_power),
            ("PUT", r"/v1/nodes/([^/]+)/management/inject_nmi", self._interrupt),
            ("GET", r"/v1/nodes/([^/]+)/validate", lambda body, uuid: (200, {})),
            ("GET", r"/v1/nodes/([^/]+)/vifs", lambda body, uuid: (200, {"vifs": []})),
            ("POST", r"/v1/nodes/([^/]+)/vifs", lambda body, uuid: (204, None)),
            ("GET", r"/v1/ports", lambda query: (200, {"ports": []})),
            ("GET", r"/v1/portgroups", lambda query: (200, {"portgroups": []})),
            ("GET", r"/v1/allocations", self._list_reservations),
            ("POST", r"/v1/allocations", self._reserve),
            ("GET", r"/v1/allocations/([^/]+)", self._show_reservation),
            ("DELETE", r"/v1/allocations/([^/]+)", self._release),
        )

    def enrol(self, name: str, group: str = "", resource_class: str = "gold", **more: Any) -> str:
        uuid: str = more.pop("uuid", None) or uuids.generate()
        self.nodes[uuid] = {
            "uuid": uuid,
            "name": name,
            "conductor_group": group,
            "resource_class": resource_class,
            "traits": [],
            "provision_state": "available",
            "power_state": "power off",
            "instance_uuid": None,
            "instance_info": {},
            "extra": {},
            "protected": False,
            "protected_reason": None,
            "properties": {"cpus": 4},
            "rescue_interface": "agent",
            **more,
        }
        return uuid

    def vanish(self, uuid: str) -> None:
        """It is deleted, and its reservation with it, as Ironic does."""
        with self._lock:
            self._forget_reservation(uuid)
            del self.nodes[uuid]

    def holders(self, server: str) -> list[str]:
        """The nodes that have a server."""
        with self._lock:
            return [uuid for uuid, node in self.nodes.items() if node["instance_uuid"] == server]

    def client(self) -> IronicClient:
        auth: Any = get_plugin_loader("none").load_from_options(endpoint=f"http://127.0.0.1:{self.port}")
        return IronicClient(Adapter(session.Session(auth=auth), service_type="baremetal"))

    def __call__(self, environ: dict[str, Any], start: Reply) -> Iterable[bytes]:
        length = int(environ.get("CONTENT_LENGTH") or 0)
        body = msgspec.json.decode(environ["wsgi.input"].read(length)) if length else None
        if environ["REQUEST_METHOD"] == "GET":
            body = {
                name: values[0]
                for name, values in parse_qs(environ["QUERY_STRING"], keep_blank_values=True).items()
            }
        status, answer = self._answer(environ["REQUEST_METHOD"], environ["PATH_INFO"], body)
        content = b"" if answer is None else msgspec.json.encode(answer)
        headers = {
            "Content-Type": "application/json",
            "Content-Length": str(len(content)),
            "X-OpenStack-Ironic-API-Maximum-Version": VERSION,
        }
        start(f"{status} -", list(headers.items()))
        return [content]

    def _answer(self, method: str, path: str, body: Any) -> Answer:
        self.requests.append((method, path))
        for known, pattern, handler in self._routes:
            match = re.fullmatch(pattern, path)
            if match and known == method:
                with self._lock:
                    return handler(body, *match.groups())
        return _MISSING

    def _list_nodes(self, query: dict[str, str]) -> Answer:
        found = list(self.nodes.values())
        for name in ("conductor_group", "provision_state", "instance_uuid"):
            if name in query:
                found = [node for node in found if node[name] == query[name]]
        if query.get("associated") == "false":
            found = [node for node in found if node["instance_uuid"] is None]
        return _page("nodes", self.nodes, found, query)

    def _show(self, query: dict[str, str], uuid: str) -> Answer:
        found = self.nodes.get(uuid) or next(
            (one for one in self.nodes.values() if one["name"] == uuid), None
        )
        return _MISSING if found is None else (200, found)

    def _change(self, patch: list[dict[str, Any]], uuid: str) -> Answer:
        """All of it or nothing."""
        node = copy.deepcopy(self.nodes[uuid])
        for change in patch:
            *way, name = change["path"].removeprefix("/").split("/")
            place: Any = node
            for part in way:
                place = place.get(part, {})
            if change["op"] in ("replace", "remove") and way and name not in place:
                return 400, {"error_message": {"faultstring": f"Couldn't apply patch {change}"}}
            if (name, change["op"]) == ("instance_uuid", "add") and node[name] not in (None, change["value"]):
                return 409, {"error_message": {"faultstring": f"it is associated with {node[name]}"}}
            if change["op"] == "remove" and way:
                del place[name]
                continue
            place[name] = change.get("value", {} if name == "instance_info" else None)
        self.nodes[uuid].update(node)
        if node["instance_uuid"] is None:
            self._forget_reservation(uuid)
        return 200, node

    def _provision(self, body: dict[str, Any], uuid: str) -> Answer:
        node = self.nodes[uuid]
        if body["target"] in ("rescue", "unrescue"):
            return self._rescue(body, node)
        if body["target"] != "active" and node["protected"]:
            return 403, {"error_message": {"faultstring": "it is protected and cannot be undeployed"}}
        node["provision_updated_at"] = utcnow().isoformat()
        if body["target"] == "deleted":
            node |= {"provision_state": "available", "instance_uuid": None, "power_state": "power off"}
            node["instance_info"] = {}
            self._forget_reservation(uuid)
            if uuid in self.unclean:
                fault = {"maintenance": True, "fault": "clean failure", "last_error": self.unclean[uuid]}
                node |= {"provision_state": "clean failed", **fault}
        elif body["target"] == "active" and uuid in self.failing:
            node |= {"provision_state": "deploy failed", "last_error": self.failing[uuid]}
        else:
            node |= {"provision_state": "active", "power_state": "power on"}
        return 202, None

    def _rescue(self, body: dict[str, Any], node: dict[str, Any]) -> Answer:
        rescue, uuid = body["target"] == "rescue", str(node["uuid"])
        if node["provision_state"] not in ("rescue", "rescue failed", *(("active",) if rescue else ())):
            return 400, {"error_message": {"faultstring": "it can't be done while it is in another state"}}
        node["provision_updated_at"] = utcnow().isoformat()
        if not rescue:
            node |= {"provision_state": "active", "power_state": "power on"}
            self.passwords.pop(uuid, None)
        elif uuid in self.unrescuable:
            node |= {"provision_state": "rescue failed", "last_error": self.unrescuable[uuid]}
        else:
            node |= {"provision_state": "rescue", "power_state": "power on"}
            self.passwords[uuid] = body["rescue_password"]
        return 202, None

    def _interrupt(self, body: Any, uuid: str) -> Answer:
        self.interrupted.append(uuid)
        return 204, None

    def _set_power(self, body: dict[str, Any], uuid: str) -> Answer:
        self.nodes[uuid]["power_state"] = _POWERS.get(body["target"], "power off")
        return 202, None

    def _list_reservations(self, query: dict[str, str]) -> Answer:
        return _page("allocations", self.reservations, list(self.reservations.values()), query)

    def _reserve(self, wanted: dict[str, Any]) -> Answer:
        """Decided when it is looked at next."""
        if wanted["uuid"] in self.reservations:
            return 409, {"error_message": {"faultstring": "it exists already"}}
        self.reservations[wanted["uuid"]] = {**wanted, "state": "allocating", "node_uuid": None}
        return 201, self.reservations[wanted["uuid"]]

    def _show_reservation(self, query: dict[str, str], uuid: str) -> Answer:
        found = self.reservations.get(uuid)
        if found is None:
            return _MISSING
        if found["state"] == "allocating":
            self._decide(found)
        return 200, found

    def _decide(self, reservation: dict[str, Any]) -> None:
        for uuid in reservation["candidate_nodes"]:
            node = self.nodes[uuid]
            if node["instance_uuid"] is None and node["provision_state"] == "available":
                node["instance_uuid"] = reservation["uuid"]
                reservation |= {"state": "active", "node_uuid": uuid}
                return
        reservation |= {"state": "error", "last_error": "none of the requested nodes are available"}

    def _release(self, body: Any, uuid: str) -> Answer:
        found = self.reservations.pop(uuid, None)
        if found is None:
            return _MISSING
        if found["node_uuid"] is not None:
            self.nodes[found["node_uuid"]]["instance_uuid"] = None
        return 204, None

    def _forget_reservation(self, node_uuid: str) -> None:
        for uuid, reservation in list(self.reservations.items()):
            if reservation["node_uuid"] == node_uuid:
                del self.reservations[uuid]


def _page(name: str, there: Mapping[str, Any], found: list[dict[str, Any]], query: dict[str, str]) -> Answer:
    """Of those found, in the order in which they were made, the ones after the marker."""
    order = list(there)
    if "marker" in query and query["marker"] not in there:
        return _MISSING
    begin = order.index(query["marker"]) + 1 if "marker" in query else 0
    onwards = set(order[begin:])
    return 200, {name: [entry for entry in found if entry["uuid"] in onwards][:PAGE]}


@contextmanager
def running() -> Iterator[SimulatedIronic]:
    made = SimulatedIronic()
    server = wsgi.Server(("127.0.0.1", made.port), made, numthreads=8)
    server.prepare()
    thread = threading.Thread(target=server.serve, daemon=True)
    thread.start()
    try:
        yield made
    finally:
        server.stop()
        thread.join(30)
