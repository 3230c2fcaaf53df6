"""At every microversion, what a GET is answered with fits the reference's own schema of that answer, and it
takes the parameters that the reference takes.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any, NamedTuple
from urllib.parse import urlencode

import pytest
import requests

from moorage.compute_api import absent
from moorage.compute_api.microversions import Microversion
from moorage.compute_api.routes import ROUTES
from moorage.core.microversions import Version, text
from tests.conformance import reference_schemas
from tests.conformance.reference_schemas import Range
from tests.integration.embedded import Embedded, embedded
from tests.support.examples import examples
from tests.support.processes import wait_until

PATHS = [
    route.path
    for route in ROUTES
    if "GET" in route.methods
    and not route.path.startswith("/moorage-")
    and not route.path.endswith("/moorage-trace")
    and route.path not in {*absent.GONE, *absent.ELSEWHERE}
]
"""What is there, and the reference's."""
ABSENT = "aaaaaaaa-0000-4000-8000-00000000dead"
NOWHERE = {
    "/servers/{server_id}/shares/{share_id}": "there are no shares",
    "/os-hosts/{host_name}/startup": "no driver can",
    "/os-hosts/{host_name}/shutdown": "no driver can",
    "/os-hosts/{host_name}/reboot": "no driver can",
    "/servers/{server_id}/migrations/{migration_id}": "only while the server is on its way",
}
"""What has nothing to show here, and why."""
WRONG_THERE = {
    "hosts_not_run": "the reference has the names of hosts where its schema wants UUIDs",
    "scheduler_hints/query": "the reference has lists where its schema wants text",
}
"""What its answers are, unlike its schemas."""
LENIENT_THERE = {
    "/os-quota-sets/{project_id}/defaults",
    "/servers/{server_id}/tags",
    "/servers/{server_id}/tags/{tag}",
}
"""Which the reference has overlooked in 2.102, when everything else began to refuse unknown parameters."""


class Shown:
    """A cloud with something of everything."""

    def __init__(self, cloud: Embedded) -> None:
        self._cloud = cloud
        self._session = requests.Session()
        self._session.headers["x-auth-token"] = "admin"
        self.names = self._prepare()

    def call(self, method: str, path: str, body: Any = None, version: str = "2.104") -> requests.Response:
        headers = {"openstack-api-version": f"compute {version}"}
        url = f"{self._cloud.compute}/v2.1{path}"
        return self._session.request(method, url, json=body, headers=headers, timeout=60)

    def get(self, path: str, version: Version, query: str = "") -> requests.Response:
        names = self.names | self._older_names(path) if version < Microversion.HOSTS_BY_UUID else self.names
        return self.call("GET", path.format_map(names) + query, version=text(version))

    def _older_names(self, path: str) -> dict[str, str]:
        """Hypervisors had numbers once, and were found by parts of their names."""
        by_name = path.endswith(("/search", "/servers"))
        return {"hypervisor_id": "fake" if by_name else self.names["hypervisor_number"]}

    def _done(self, method: str, path: str, body: Any = None, version: str = "2.104") -> Any:
        answer = self.call(method, path, body, version)
        assert answer.ok, answer.text
        return answer.json() if answer.content else None

    def _prepare(self) -> dict[str, str]:
        flavor = {"name": "own", "ram": 4096, "vcpus": 1, "disk": 20, "os-flavor-access:is_public": False}
        flavor_id = self._done("POST", "/flavors", {"flavor": flavor})["flavor"]["id"]
        self._done("POST", f"/flavors/{flavor_id}/os-extra_specs", {"extra_specs": {"colour": "blue"}})
        self._done("POST", f"/flavors/{flavor_id}/action", {"addTenantAccess": {"tenant": "admin"}})
        self._done("POST", "/os-keypairs", {"keypair": {"name": "default"}}, "2.91")
        group = {"server_group": {"name": "apart", "policy": "anti-affinity"}}
        aggregate = {"aggregate": {"name": "rack", "availability_zone": "east"}}
        aggregate_id = self._done("POST", "/os-aggregates", aggregate)["aggregate"]["id"]
        self._done("POST", f"/os-aggregates/{aggregate_id}/action", {"add_host": {"host": "fake-1"}})
        group_id = self._done("POST", "/os-server-groups", group)["server_group"]["id"]
        server_id = self._boot(flavor_id, group_id)
        console = {"remote_console": {"protocol": "serial", "type": "serial"}}
        url = self._done("POST", f"/servers/{server_id}/remote-consoles", console)["remote_console"]["url"]
        interfaces = self._done("GET", f"/servers/{server_id}/os-interface")["interfaceAttachments"]
        acts = self._done("GET", f"/servers/{server_id}/os-instance-actions")["instanceActions"]
        hypervisors, numbered = (
            self._done("GET", "/os-hypervisors", version=version)["hypervisors"]
            for version in ("2.53", "2.52")
        )
        return {
            "flavor_id": flavor_id,
            "key": "colour",
            "name": "default",
            "aggregate_id": aggregate_id,
            "group_id": group_id,
            "server_id": server_id,
            "project_id": "admin",
            "host_name": "fake-1",
            "hypervisor_id": hypervisors[0]["id"],
            "hypervisor_number": str(numbered[0]["id"]),
            "before": "2026-01-01 00:00:00",
            "alias": "os-keypairs",
            "tag": "blue",
            "request_id": acts[0]["request_id"],
            "port_id": interfaces[0]["port_id"] if interfaces else "",
            "network": "private",
            "token": url.partition("token=")[2],
            "migration_id": "1",
            "share_id": ABSENT,
        }

    def _boot(self, flavor_id: str, group_id: str) -> str:
        """It has moved, and has everything that one can have."""
        images = self._session.get(f"{self._cloud.compute}/image/v2/images", timeout=60).json()["images"]
        server = {
            "name": "one",
            "flavorRef": flavor_id,
            "imageRef": images[0]["id"],
            "networks": "auto",
            "key_name": "default",
            "metadata": {"colour": "blue"},
            "tags": ["blue"],
            "description": "a server",
        }
        body = {"server": server, "os:scheduler_hints": {"group": group_id}}
        uuid = str(self._done("POST", "/servers", body)["server"]["id"])
        self._await(uuid, "ACTIVE")
        self._done("POST", f"/servers/{uuid}/action", {"migrate": None})
        self._await(uuid, "VERIFY_RESIZE")
        self._done("POST", f"/servers/{uuid}/action", {"confirmResize": None})
        self._await(uuid, "ACTIVE")
        return uuid

    def _await(self, uuid: str, status: str) -> None:
        path = f"/servers/{uuid}"
        wait_until(
            lambda: self._done("GET", path)["server"]["status"] == status, f"the server to be {status}"
        )


@pytest.fixture(scope="module")
def shown(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shown]:
    with embedded(tmp_path_factory.mktemp("shown"), auth="none", hosts=2) as cloud:
        yield Shown(cloud)


def edges(found: list[Range]) -> list[tuple[Version, Range]]:
    """The first and the last version of each schema."""
    return [(version, one) for one in found for version in dict.fromkeys((one.low, one.high))]


@pytest.mark.parametrize("path", PATHS)
def test_answers_fit_the_reference_s_schemas(shown: Shown, path: str) -> None:
    found = reference_schemas.ranges(path, "answer")
    assert found, "the reference has no schema of it"
    faults, answered = [], 0
    for version, one in edges(found):
        answer = shown.get(path, version)
        if answer.ok:
            answered += 1
            faults += [
                f"{text(version)}: {fault}"
                for fault in one.faults(answer.json() if answer.content else None)
                if not any(name in fault for name in WRONG_THERE)
            ]
    assert faults == []
    assert (answered > 0) == (path not in NOWHERE)


VALUES = (
    ("",),
    ("x",),
    ("1",),
    ("-1",),
    ("true",),
    (ABSENT,),
    ("2026-01-01T00:00:00Z",),
    ("1", "1"),
    ("x", "1"),
)


class Question(NamedTuple):
    version: Version
    query: str
    refused: bool
    """By the reference's schema."""


def questions(path: str) -> list[Question]:
    found = reference_schemas.ranges(path, "query")
    names = {name for one in found for name in one.schema.get("properties", ())} | {"colour"}
    return [
        Question(version, urlencode([(name, value) for value in values]), bool(one.faults({name: [*values]})))
        for version, one in edges(found)
        for name in sorted(names)
        for values in VALUES
    ]


@pytest.mark.parametrize("path", [path for path in PATHS if path not in NOWHERE])
def test_parameters_are_those_of_the_reference(shown: Shown, path: str) -> None:
    """What its schema refuses is refused, and what it knows is known; values may be refused for more."""
    every = questions(path)
    there = {version: shown.get(path, version).ok for version in {one.version for one in every}}
    wrong = []
    for one in random.Random(path).sample(every, min(len(every), examples(len(every)))):
        if not there[one.version]:
            continue
        answer = shown.get(path, one.version, f"?{one.query}")
        unknown = "Additional properties" in answer.text and path not in LENIENT_THERE
        if answer.status_code != 400 if one.refused else unknown:
            wrong.append(f"{text(one.version)} {one.query}: {answer.status_code}")
    assert wrong == []
