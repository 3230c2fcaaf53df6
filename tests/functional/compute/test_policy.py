"""Policy: rules named as the reference names them, and files that operators have written for it."""

from __future__ import annotations

from pathlib import Path

from moorage.compute_api import policies
from moorage.compute_api.routes import FURTHER_RULES, ROUTES
from tests.support.compute import cloud_on

FLAVORS = """
"os_compute_api:os-flavor-manage:update": "@"
"os_compute_api:os-flavor-manage:delete": "@"
"os_compute_api:os-flavor-access": "@"
"os_compute_api:os-flavor-access:add_tenant_access": "@"
"os_compute_api:os-flavor-access:remove_tenant_access": "@"
"os_compute_api:os-flavor-extra-specs:create": "@"
"os_compute_api:os-flavor-extra-specs:update": "@"
"os_compute_api:os-flavor-extra-specs:delete": "@"
"""
POLICY = """
"os_compute_api:os-services:list": "role:reader"
"os_compute_api:os-flavor-manage:create": "rule:admin_or_owner or role:member"
"os_compute_api:os-aggregates:index": "rule:project_reader_or_admin"
"os_compute_api:os-keypairs:index": "rule:admin_api"
"""


def test_every_rule_has_one_default() -> None:
    names = [rule.name for rule in policies.rules(ROUTES, FURTHER_RULES)]
    assert len(names) == len(set(names))


def configured(directory: Path, rules: str) -> list[str]:
    (directory / "policy.yaml").write_text(rules)
    path = directory / "moorage.conf"
    path.write_text(f"[oslo_policy]\npolicy_file = {directory / 'policy.yaml'}\n")
    return [str(path)]


def test_an_operators_file_wins(tmp_path: Path, sqlite_url: str) -> None:
    with cloud_on(sqlite_url, files=configured(tmp_path, POLICY)) as cloud:
        member = cloud.member()
        assert member.get("/os-services").status == 200
        assert member.get("/os-keypairs").status == 403
        made = member.post("/flavors", {"flavor": {"name": "mine", "ram": 1, "vcpus": 1, "disk": 0}})
        assert made.status == 200
        assert member.get("/os-hypervisors").status == 403


def test_what_is_the_clouds_is_no_projects(tmp_path: Path, sqlite_url: str) -> None:
    """As in the reference: a rule about the project opens nothing that belongs to none."""
    with cloud_on(sqlite_url, files=configured(tmp_path, POLICY)) as cloud:
        assert cloud.member().get("/os-aggregates").status == 403
        assert cloud.admin.get("/os-aggregates").status == 200


def test_whatever_a_file_opens_a_private_flavor_is_not_there_for_others(
    tmp_path: Path, sqlite_url: str
) -> None:
    with cloud_on(sqlite_url, files=configured(tmp_path, FLAVORS)) as cloud:
        flavor = {
            "name": "s",
            "id": "s",
            "ram": 1,
            "vcpus": 1,
            "disk": 0,
            "os-flavor-access:is_public": False,
        }
        assert cloud.admin.post("/flavors", {"flavor": flavor}).status == 200
        specs = {"extra_specs": {"hw:cpu_policy": "shared"}}
        assert cloud.admin.post("/flavors/s/os-extra_specs", specs).status == 200
        member = cloud.member()
        requests = (
            ("PUT", "", {"flavor": {"description": "seen"}}),
            ("GET", "/os-flavor-access", None),
            ("POST", "/action", {"addTenantAccess": {"tenant": "wonderland"}}),
            ("POST", "/action", {"removeTenantAccess": {"tenant": "wonderland"}}),
            ("POST", "/os-extra_specs", specs),
            ("PUT", "/os-extra_specs/hw:cpu_policy", {"hw:cpu_policy": "dedicated"}),
            ("DELETE", "/os-extra_specs/hw:cpu_policy", None),
            ("DELETE", "", None),
        )
        for method, path, body in requests:
            hidden, absent = (member.call(method, f"/flavors/{name}{path}", body) for name in "sx")
            assert hidden.status == absent.status == 404, (method, path, hidden.text)
            assert hidden.text.replace("lavor s ", "lavor x ") == absent.text
        assert cloud.admin.get("/flavors/s").json["flavor"]["extra_specs"] == specs["extra_specs"]
