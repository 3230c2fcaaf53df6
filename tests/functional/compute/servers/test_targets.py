"""Every rule of the table of routes is asked about the owner of what it protects, so that none is forgotten.

An administrator goes through the whole table, on things that are alice's, and each question to oslo.policy is
written down.
"""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa

from moorage.compute_api import policies
from moorage.compute_api.microversions import Microversion
from moorage.compute_api.routes import FURTHER_RULES, ROUTES
from moorage.compute_api.servers.server_actions import ACTIONS
from moorage.core.microversions import Version
from moorage.db.tables import compute as tables
from moorage.http.caller import Caller
from moorage.http.policy import Authorizer, Target
from tests.functional.compute.servers.conftest import ABSENT, IMAGE, Cloud, User, cloud_on

ALICE = {"project_id": "red", "user_id": "alice"}
ROOT = {"project_id": "cloud", "user_id": "root"}
NODE = "cccccccc-0000-4000-8000-000000000001"
KEY = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIJRnPOLvDn4wUuLDgDkIZcgVJTA3TkO7MqRGGxDQfkVW somebody"

OWNERS: tuple[tuple[str, Target], ...] = (
    ("{server_id}", ALICE),
    ("{group_id}", ALICE),
    ("/os-keypairs", {"user_id": "alice"}),
    ("/os-quota-sets/{project_id}", {"project_id": "red"}),
    ("/os-simple-tenant-usage/{project_id}", {"project_id": "red"}),
    ("/moorage-plan", {"project_id": "red", "user_id": "root"}),
)
"""What has an owner, by a part of its path."""
OF_THE_CLOUD = frozenset(
    {"flavor_id", "service_id", "hypervisor_id", "aggregate_id", "host_name", "name", "id", "token"}
    | {"alias", "before", "drain_id", "audit_id", "operation_id"}
)
"""In paths: things that belong to nobody."""

BODIES: dict[tuple[str, str], Any] = {
    ("POST", "/flavors"): {"flavor": {"name": "new", "ram": 1, "vcpus": 1, "disk": 1}},
    ("PUT", "/flavors/{flavor_id}"): {"flavor": {"description": "neat"}},
    ("POST", "/flavors/{flavor_id}/action"): {"addTenantAccess": {"tenant": "red"}},
    ("POST", "/flavors/{flavor_id}/os-extra_specs"): {"extra_specs": {"hw:mem_page_size": "large"}},
    ("PUT", "/flavors/{flavor_id}/os-extra_specs/{key}"): {"k": "v"},
    ("POST", "/os-keypairs"): {
        "keypair": {"name": "new", "type": "ssh", "public_key": KEY, "user_id": "alice"}
    },
    ("PUT", "/os-services/{service_id}"): {"status": "enabled"},
    ("PUT", "/os-hosts/{host_name}"): {"maintenance_mode": "enable"},
    ("POST", "/os-aggregates"): {"aggregate": {"name": "new"}},
    ("POST", "/moorage-adoptions"): {"adoption": {"server_id": NODE, "host": "nowhere"}},
    ("PUT", "/os-aggregates/{aggregate_id}"): {"aggregate": {"name": "renamed"}},
    ("POST", "/os-aggregates/{aggregate_id}/action"): {"set_metadata": {"metadata": {"a": "b"}}},
    ("POST", "/os-aggregates/{aggregate_id}/images"): {"cache": [{"id": IMAGE}]},
    ("POST", "/os-server-groups"): {"server_group": {"name": "new", "policy": "affinity"}},
    ("PUT", "/os-quota-sets/{project_id}"): {"quota_set": {"instances": 20}},
    ("PUT", "/os-quota-class-sets/{name}"): {"quota_class_set": {"instances": 20}},
    ("POST", "/servers"): {
        "server": {"name": "new", "imageRef": IMAGE, "flavorRef": "small", "networks": "auto"}
    },
    ("PUT", "/servers/{server_id}"): {"server": {"name": "renamed"}},
    ("POST", "/servers/{server_id}/action"): {"lock": None},
    ("POST", "/servers/{server_id}/metadata"): {"metadata": {"a": "b"}},
    ("PUT", "/servers/{server_id}/metadata"): {"metadata": {"a": "b"}},
    ("PUT", "/servers/{server_id}/metadata/{key}"): {"meta": {"k": "v"}},
    ("PUT", "/servers/{server_id}/tags"): {"tags": ["a"]},
    ("POST", "/servers/{server_id}/migrations/{migration_id}/action"): {"force_complete": None},
    ("POST", "/servers/{server_id}/remote-consoles"): {
        "remote_console": {"protocol": "serial", "type": "serial"}
    },
    ("POST", "/servers/{server_id}/shares"): {"share": {"share_id": ABSENT}},
    ("POST", "/servers/{server_id}/os-interface"): {"interfaceAttachment": {"port_id": ABSENT}},
    ("POST", "/moorage-plan"): {"plan": {"flavorRef": "small", "imageRef": ABSENT, "project_id": "red"}},
    ("POST", "/moorage-drains"): {"drain": {"host": "host1"}},
    ("POST", "/moorage-drains/plan"): {"drain": {"host": "host1"}},
    ("POST", "/moorage-drains/{drain_id}/action"): {"cancel": None},
    ("POST", "/moorage-rebalances"): {
        "rebalance": {"moves": [{"server": ABSENT, "source": "host1", "target": "host2"}]}
    },
    ("POST", "/moorage-rebalances/plan"): {"rebalance": {}},
    ("POST", "/moorage-audits"): {"audit": {}},
    ("POST", "/moorage-operations/{operation_id}/action"): {"retry": None},
    ("POST", "/os-server-external-events"): {"events": [{"name": "network-changed", "server_uuid": ABSENT}]},
}

ARGUMENTS: dict[str, list[Any]] = {
    "reboot": [{"type": "SOFT"}],
    "os-resetState": [{"state": "error"}],
    "rebuild": [{"imageRef": IMAGE}, {"imageRef": IMAGE, "trusted_image_certificates": ["a"]}],
    "resize": [{"flavorRef": "big"}],
    "migrate": [None, {"host": "host2"}],
    "os-migrateLive": [
        {"host": None, "block_migration": "auto"},
        {"host": "host2", "block_migration": "auto"},
    ],
    "evacuate": [{}],
    "os-getConsoleOutput": [{}],
    "os-getVNCConsole": [{"type": "novnc"}],
    "os-getSerialConsole": [{"type": "serial"}],
    "os-getSPICEConsole": [{"type": "spice-html5"}],
    "createImage": [{"name": "i"}],
    "createBackup": [{"name": "b", "backup_type": "daily", "rotation": 1}],
    "unshelve": [None, {"host": "host1"}],
    "changePassword": [{"adminPass": "secret"}],
    "addSecurityGroup": [{"name": "web"}],
    "removeSecurityGroup": [{"name": "web"}],
    "addFixedIp": [{"networkId": ABSENT}],
    "removeFixedIp": [{"address": "10.0.0.1"}],
    "addFloatingIp": [{"address": "192.0.2.1"}],
    "removeFloatingIp": [{"address": "192.0.2.1"}],
}


@dataclass
class Book:
    """Which rule was asked about whose thing, in the order of the questions."""

    asked: list[tuple[str, Target]] = field(default_factory=list)

    def taken(self) -> list[tuple[str, Target]]:
        """All since the last look; whether somebody is an administrator is no question about a thing."""
        taken, self.asked = self.asked, []
        return [(rule, target) for rule, target in taken if rule != "context_is_admin"]


@pytest.fixture(scope="module")
def book() -> Iterator[Book]:
    written, answer = Book(), Authorizer.allows

    def allows(authorizer: Authorizer, rule: str, caller: Caller, target: Target) -> bool:
        written.asked.append((rule, dict(target)))
        return answer(authorizer, rule, caller, target)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Authorizer, "allows", allows)
        yield written


@dataclass(frozen=True)
class Stage:
    cloud: Cloud
    book: Book

    @property
    def admin(self) -> User:
        return self.cloud.admin

    def server(self) -> str:
        """One of alice's that runs, with an action that had a step."""
        self.cloud.limit("red", instances=-1, cores=-1, ram=-1)
        uuid = self.cloud.alice.booted()
        self.cloud.run(uuid, node_uuid=NODE)
        step = {"event": "compute__do_build", "start_time": "2026-01-01T00:00:00+00:00"}
        self.cloud.write(sa.update(tables.actions).values(events=[step]))
        return uuid

    def group(self) -> str:
        body = {"server_group": {"name": "hers", "policy": "affinity"}}
        return str(self.cloud.alice.call("POST", "/os-server-groups", body).json["server_group"]["id"])

    def fill(self, path: str) -> str:
        """A path to things that exist."""
        values = {
            **dict.fromkeys(("migration_id", "aggregate_id", "id"), "1"),
            "key": "k",
            "tag": "t",
            "token": "t",
            "name": "mine",
            "network": "private",
            "project_id": "red",
            "flavor_id": "spare",
            "port_id": ABSENT,
            "share_id": ABSENT,
            "service_id": "bbbbbbbb-0000-4000-8000-000000000001",
            "hypervisor_id": NODE,
            "host_name": "host1",
            "alias": "os-hosts",
            "before": "2026-01-01 00:00:00",
            **dict.fromkeys(("drain_id", "audit_id"), ABSENT),
            "operation_id": "1",
        }
        if "{server_id}" in path:
            values["server_id"] = uuid = self.server()
            shown = self.cloud.alice.get(f"/servers/{uuid}/os-instance-actions")["instanceActions"]
            values["request_id"] = shown[0]["request_id"]
        if "{group_id}" in path:
            values["group_id"] = self.group()
        return path.format(**values)

    def ask(
        self, method: str, path: str, body: Any = None, version: Version | None = None
    ) -> list[tuple[str, Target]]:
        """What was asked while an administrator did this."""
        filled = self.fill(path)
        self.book.taken()
        spoken = ".".join(map(str, version or Microversion.highest()))
        answer = self.admin.call(method, filled, body, version=spoken)
        asked = self.book.taken()
        assert answer.status_code not in (403, 405, 415), (filled, answer.text)
        return asked


@pytest.fixture(scope="module")
def stage(tmp_path_factory: pytest.TempPathFactory, sqlite_template: Path, book: Book) -> Iterator[Stage]:
    """One for all lines: what a line deletes, others don't need. The databases have no part in this."""
    copied = shutil.copy(sqlite_template, tmp_path_factory.mktemp("targets") / "moorage.sqlite")
    with cloud_on(f"sqlite:///{copied}") as cloud:
        body = {"keypair": {"name": "mine", "type": "ssh", "public_key": KEY}}
        assert cloud.alice.call("POST", "/os-keypairs", body).status_code == 201
        yield Stage(cloud, book)


LINES = [
    (route.path, method)
    for route in ROUTES
    for method, endpoint in route.methods.items()
    if "absent" not in endpoint.handler.__module__
]


def owner(path: str) -> Target | None:
    """Whose the things of a path are; None for the cloud's and for lists."""
    for part, whose in OWNERS:
        if part in path:
            return whose
    unknown = set(re.findall(r"{(\w+)}", path)) - OF_THE_CLOUD - {"key"}
    assert not unknown, f"say in OWNERS or in OF_THE_CLOUD whose a thing is that {path} names"
    return None


def newest(dropped: Version | None) -> Version:
    """The newest version that has what one version dropped."""
    return Microversion.highest() if dropped is None else (dropped[0], dropped[1] - 1)


def walk(stage: Stage, path: str, method: str) -> list[tuple[str, Target]]:
    (endpoint,) = [route.methods[method] for route in ROUTES if route.path == path]
    body = BODIES.get((method, path))
    assert body is not None or not endpoint.reads_json, f"give {method} {path} a body in BODIES"
    query = "?user_id=alice" if path.startswith("/os-keypairs") and method != "POST" else ""
    asked = stage.ask(method, path + query, body, newest(endpoint.dropped))
    if endpoint.policy is not None:
        assert endpoint.policy in [rule for rule, _ in asked]
    return asked


@pytest.mark.parametrize(("path", "method"), LINES, ids=[f"{method} {path}" for path, method in LINES])
def test_a_rule_is_asked_about_the_owner(stage: Stage, path: str, method: str) -> None:
    whose = owner(path)
    for rule, target in walk(stage, path, method):
        assert target in ([whose] if whose is not None else [{}, ROOT]), rule


@pytest.mark.parametrize("name", ACTIONS)
def test_an_action_is_asked_about_the_owner_of_the_server(stage: Stage, name: str) -> None:
    for argument in ARGUMENTS.get(name, [None]):
        asked = act(stage, name, argument)
        assert asked
        for rule, target in asked:
            assert target == ALICE, rule


def act(stage: Stage, name: str, argument: Any) -> list[tuple[str, Target]]:
    version = newest(ACTIONS[name].dropped)
    return stage.ask("POST", "/servers/{server_id}/action", {name: argument}, version)


def test_every_rule_is_asked_about_somewhere(stage: Stage) -> None:
    """A rule that nothing asks about would only look as if it protected something."""
    asked = {rule for path, method in LINES for rule, _ in walk(stage, path, method)}
    for name in ACTIONS:
        asked |= {rule for argument in ARGUMENTS.get(name, [None]) for rule, _ in act(stage, name, argument)}
    asked |= further(stage)
    personas = {persona.name for persona in policies.PERSONAS}
    assert asked == {rule.name for rule in policies.rules(ROUTES, FURTHER_RULES)} - personas


def further(stage: Stage) -> set[str]:
    """Rules about more than a path and a method."""
    server = {"name": "new", "imageRef": IMAGE, "flavorRef": "small", "networks": "none"}
    device = {"boot_index": 0, "uuid": IMAGE, "source_type": "image", "destination_type": "local"}
    requests: list[tuple[str, str, Any]] = [
        ("GET", "/servers?all_tenants=1", None),
        ("GET", "/servers/detail?all_tenants=1", None),
        ("GET", "/os-migrations?host=host1", None),
        ("GET", "/os-server-groups?all_projects=1", None),
        ("GET", "/limits?tenant_id=red", None),
        ("POST", "/os-aggregates/1/action", {"add_host": {"host": "nowhere"}}),
        ("POST", "/os-aggregates/1/action", {"remove_host": {"host": "nowhere"}}),
        ("POST", "/flavors/secret/action", {"addTenantAccess": {"tenant": "red"}}),
        ("POST", "/flavors/secret/action", {"removeTenantAccess": {"tenant": "red"}}),
        ("POST", "/servers", {"server": {**server, "availability_zone": "nova:host1"}}),
        ("POST", "/servers", {"server": {**server, "host": "host1"}}),
        ("POST", "/servers", {"server": {**server, "block_device_mapping_v2": [device]}}),
        ("POST", "/servers", {"server": {**server, "trusted_image_certificates": ["a"]}}),
        ("POST", "/servers", {"server": {**server, "flavorRef": "diskless"}}),
    ]
    stage.book.taken()
    for method, path, body in requests:
        answer = stage.admin.call(method, path, body)
        assert answer.status_code in (200, 202, 404), (path, answer.text)
    locked = stage.server()
    assert stage.admin.call("POST", f"/servers/{locked}/action", {"lock": None}).status_code == 202
    stage.cloud.alice.refused(403, "POST", f"/servers/{locked}/action", {"unlock": None})
    asked = stage.book.taken()
    assert dict(asked)["os_compute_api:os-lock-server:unlock:unlock_override"] == ALICE
    return {rule for rule, _ in asked}
