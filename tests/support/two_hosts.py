"""Two hosts in one Placement, and all that somebody tries there who has the credentials of the first."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from falcon.testing import Result, TestClient

from moorage.core import uuids

VERSION = "1.39"
RACK = "a0000000-0000-4000-8000-000000000001"
OWNER = {"project_id": "p", "user_id": "u", "consumer_type": "INSTANCE"}
HeadersOf = Callable[[str], dict[str, str]]


class TwoHosts:
    """A tree and a server on each of host-1 and host-2. Each pair is new, and on a Placement that others use,
    too: `ADMIN`, `host-1` and `host-2` are users there, the latter two with the role of agents."""

    ADMIN = "admin"

    def __init__(self, api: TestClient, headers_of: HeadersOf) -> None:
        self._api = api
        self._headers_of = headers_of
        self.mark = uuids.generate()[:8].upper()
        self.gpu = f"CUSTOM_GPU_{self.mark}"
        self.roots = {host: uuids.generate() for host in ("host-1", "host-2")}
        self.children = {host: uuids.generate() for host in self.roots}
        self.servers = {host: uuids.generate() for host in self.roots}

    def ask(self, user: str, method: str, path: str, body: Any = None, version: str = VERSION) -> Result:
        headers = {"OpenStack-API-Version": f"placement {version}", **self._headers_of(user)}
        more = {} if body is None else {"json": body}
        return self._api.simulate_request(method, path, headers=headers, **more)

    def good(self, user: str, method: str, path: str, body: Any = None) -> Any:
        answer = self.ask(user, method, path, body)
        assert answer.status_code < 300, answer.text
        return answer.json if answer.content else None

    def make(self) -> TwoHosts:
        """Each agent tells of its own host, then a server is put on each."""
        for host in self.roots:
            self.good(host, "POST", "/moorage/v1/providers", {"providers": self.report(host)})
        for host in self.roots:
            self.good(self.ADMIN, "PUT", f"/allocations/{self.servers[host]}", self.claim(host))
        return self

    def report(self, host: str, **more: Any) -> list[dict[str, Any]]:
        """What its agent says of it."""
        root = {"uuid": self.roots[host], "name": self.name(host), "inventories": {"VCPU": {"total": 8}}}
        child = {
            "uuid": self.children[host],
            "name": f"{self.name(host)}-gpu",
            "parent_provider_uuid": self.roots[host],
            "inventories": {self.gpu: {"total": 2}},
        }
        return [{**root, **more}, child]

    def name(self, host: str) -> str:
        return f"{host}-{self.mark}"

    def claim(self, host: str, generation: int | None = None, **more: Any) -> dict[str, Any]:
        held = {self.roots[host]: {"resources": {"VCPU": 2}}}
        return {"allocations": held, "consumer_generation": generation, **OWNER, **more}

    def generation(self, uuid: str) -> int:
        return int(self.good(self.ADMIN, "GET", f"/resource_providers/{uuid}")["generation"])

    def state(self, host: str = "host-2") -> list[Any]:
        """All that a host, and the server on it, have there."""
        told = [
            self.good(self.ADMIN, "GET", f"/resource_providers?in_tree={self.roots[host]}"),
            self.good(self.ADMIN, "GET", f"/allocations/{self.servers[host]}"),
        ]
        for uuid in (self.roots[host], self.children[host]):
            for part in ("", "/inventories", "/traits", "/aggregates", "/allocations"):
                told.append(self.good(self.ADMIN, "GET", f"/resource_providers/{uuid}{part}"))
        return told

    def unchanged(self) -> dict[str, Any]:
        """For a reshape that is about allocations only, but has to have inventories."""
        return {self.children["host-1"]: {self.gpu: {"total": 2}}}

    def reshape(self, user: str, inventories: dict[str, Any], allocations: dict[str, Any]) -> Result:
        """`inventories` by provider, at their present generations."""
        wanted = {
            uuid: {"resource_provider_generation": self.generation(uuid), "inventories": each}
            for uuid, each in inventories.items()
        }
        return self.ask(user, "POST", "/reshaper", {"inventories": wanted, "allocations": allocations})


Attempt = Callable[[TwoHosts], int]
"""Answers with the status."""


def _put(part: str, key: str, value: Any) -> Attempt:
    def attempt(hosts: TwoHosts) -> int:
        uuid = hosts.roots["host-2"]
        body = {"resource_provider_generation": hosts.generation(uuid), key: value}
        return hosts.ask("host-1", "PUT", f"/resource_providers/{uuid}/{part}", body).status_code

    return attempt


def _inventory(hosts: TwoHosts) -> int:
    uuid = hosts.roots["host-2"]
    body = {"resource_provider_generation": hosts.generation(uuid), "total": 2}
    return hosts.ask("host-1", "PUT", f"/resource_providers/{uuid}/inventories/VCPU", body).status_code


def _rename(hosts: TwoHosts) -> int:
    path = f"/resource_providers/{hosts.roots['host-2']}"
    return hosts.ask("host-1", "PUT", path, {"name": f"gone-{hosts.mark}"}).status_code


def _move(what: Callable[[TwoHosts], tuple[str, str]], parent: Callable[[TwoHosts], str | None]) -> Attempt:
    def attempt(hosts: TwoHosts) -> int:
        uuid, name = what(hosts)
        body = {"name": name, "parent_provider_uuid": parent(hosts)}
        return hosts.ask("host-1", "PUT", f"/resource_providers/{uuid}", body).status_code

    return attempt


def _root(host: str) -> Callable[[TwoHosts], tuple[str, str]]:
    return lambda hosts: (hosts.roots[host], hosts.name(host))


def _child(host: str) -> Callable[[TwoHosts], tuple[str, str]]:
    return lambda hosts: (hosts.children[host], f"{hosts.name(host)}-gpu")


def _delete(hosts: TwoHosts) -> int:
    return hosts.ask("host-1", "DELETE", f"/resource_providers/{hosts.children['host-2']}").status_code


def _child_below(hosts: TwoHosts) -> int:
    body = {"name": f"mine-{hosts.mark}", "parent_provider_uuid": hosts.roots["host-2"]}
    return hosts.ask("host-1", "POST", "/resource_providers", body).status_code


def _many_aggregates(hosts: TwoHosts) -> int:
    """Each provider on its own merits: who is refused is in the answer."""
    uuid = hosts.roots["host-2"]
    one = {"uuid": uuid, "generation": hosts.generation(uuid), "aggregates": [RACK]}
    answer = hosts.ask("host-1", "PUT", "/moorage/v1/aggregates/providers", {"providers": [one]})
    refused = answer.json["refused"]
    return int(refused[uuid]["status"]) if refused else answer.status_code


def _report(*providers: Callable[[TwoHosts], dict[str, Any]]) -> Attempt:
    def attempt(hosts: TwoHosts) -> int:
        body = {"providers": [each(hosts) for each in providers]}
        return hosts.ask("host-1", "POST", "/moorage/v1/providers", body).status_code

    return attempt


def _said_of_2(**more: Any) -> Callable[[TwoHosts], dict[str, Any]]:
    return lambda hosts: hosts.report("host-2", **more)[0]


def _reshaped(hosts: TwoHosts) -> int:
    return hosts.reshape("host-1", {hosts.children["host-2"]: {}}, {}).status_code


def _freed(hosts: TwoHosts) -> int:
    """A reshape that is about allocations only: the server on host-2 shall hold nothing."""
    claim = hosts.claim("host-2", generation=1, allocations={})
    return hosts.reshape("host-1", hosts.unchanged(), {hosts.servers["host-2"]: claim}).status_code


def _stolen(hosts: TwoHosts) -> int:
    held = {hosts.roots["host-1"]: {"resources": {"VCPU": 2}}}
    claim = hosts.claim("host-2", generation=1, allocations=held)
    return hosts.reshape("host-1", hosts.unchanged(), {hosts.servers["host-2"]: claim}).status_code


def _given_away(hosts: TwoHosts) -> int:
    claim = hosts.claim("host-2", generation=1, project_id="another")
    return hosts.reshape("host-1", hosts.unchanged(), {hosts.servers["host-2"]: claim}).status_code


def _filled(hosts: TwoHosts) -> int:
    """Its own server takes all the room of host-2."""
    held = {
        hosts.roots["host-1"]: {"resources": {"VCPU": 2}},
        hosts.roots["host-2"]: {"resources": {"VCPU": 6}},
    }
    claim = hosts.claim("host-1", generation=1, allocations=held)
    return hosts.reshape("host-1", hosts.unchanged(), {hosts.servers["host-1"]: claim}).status_code


def _invented(hosts: TwoHosts) -> int:
    """Somebody whom nobody knows takes all the room of host-2."""
    held = {hosts.roots["host-2"]: {"resources": {"VCPU": 6}}}
    claim = hosts.claim("host-2", allocations=held)
    return hosts.reshape("host-1", hosts.unchanged(), {uuids.generate(): claim}).status_code


def _renamed_class(hosts: TwoHosts) -> int:
    path, body = f"/resource_classes/{hosts.gpu}", {"name": f"CUSTOM_X_{hosts.mark}"}
    return hosts.ask("host-1", "PUT", path, body, version="1.6").status_code


ATTEMPTS: dict[str, Attempt] = {
    "rename host-2's provider": _rename,
    "move host-2's provider below its own": _move(_root("host-2"), lambda hosts: hosts.roots["host-1"]),
    "move host-2's child below its own": _move(_child("host-2"), lambda hosts: hosts.roots["host-1"]),
    "take host-2's child out of its tree": _move(_child("host-2"), lambda _hosts: None),
    "move its own provider below host-2's": _move(_root("host-1"), lambda hosts: hosts.roots["host-2"]),
    "move its own child below host-2's": _move(_child("host-1"), lambda hosts: hosts.children["host-2"]),
    "delete host-2's child": _delete,
    "make a child below host-2's": _child_below,
    "set host-2's inventories": _put("inventories", "inventories", {"VCPU": {"total": 2}}),
    "set one inventory of host-2": _inventory,
    "set host-2's traits": _put("traits", "traits", ["COMPUTE_STATUS_DISABLED"]),
    "set host-2's aggregates": _put("aggregates", "aggregates", [RACK]),
    "set host-2's aggregates, with many": _many_aggregates,
    "report host-2": _report(_said_of_2(inventories={"VCPU": {"total": 2}})),
    "report host-2 behind its own": _report(
        lambda hosts: hosts.report("host-1", traits=["COMPUTE_NODE"])[0],
        _said_of_2(traits=["COMPUTE_STATUS_DISABLED"]),
    ),
    "report host-2 as it is": _report(_said_of_2()),
    "report host-2 below its own": _report(
        lambda hosts: hosts.report("host-2", parent_provider_uuid=hosts.roots["host-1"])[0]
    ),
    "report its own below host-2": _report(
        lambda hosts: hosts.report("host-1", parent_provider_uuid=hosts.roots["host-2"])[0]
    ),
    "report a new child below host-2's": _report(
        lambda hosts: {
            "uuid": uuids.generate(),
            "name": f"mine-{hosts.mark}",
            "parent_provider_uuid": hosts.roots["host-2"],
        }
    ),
    "reshape host-2": _reshaped,
    "free what a server has of host-2": _freed,
    "draw a server of host-2 to itself": _stolen,
    "give a server of host-2 to another project": _given_away,
    "take host-2's room for its own server": _filled,
    "take host-2's room for nobody": _invented,
    "rename a resource class that host-2 has": _renamed_class,
}
"""Each is answered with 2xx where agents are not kept apart; with 403 where they are."""
