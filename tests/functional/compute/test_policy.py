"""Policy: rules named as the reference names them, and files that operators have written for it."""

from __future__ import annotations

from pathlib import Path

from moorage.compute.api import policies
from moorage.compute.api.routes import FURTHER_RULES, ROUTES
from tests.support.compute import cloud_on

POLICY = """
"os_compute_api:os-services:list": "role:reader"
"os_compute_api:os-flavor-manage:create": "rule:admin_or_owner or role:member"
"os_compute_api:os-aggregates:index": "rule:project_reader_or_admin"
"os_compute_api:os-keypairs:index": "rule:admin_api"
"""


def test_every_rule_has_one_default() -> None:
    names = [rule.name for rule in policies.rules(ROUTES, FURTHER_RULES)]
    assert len(names) == len(set(names))


def test_an_operators_file_wins(tmp_path: Path, sqlite_url: str) -> None:
    (tmp_path / "policy.yaml").write_text(POLICY)
    configuration = tmp_path / "moorage.conf"
    configuration.write_text(f"[oslo_policy]\npolicy_file = {tmp_path / 'policy.yaml'}\n")
    with cloud_on(sqlite_url, files=[str(configuration)]) as cloud:
        member = cloud.member()
        assert member.get("/os-services").status == 200
        assert member.get("/os-keypairs").status == 403
        made = member.post("/flavors", {"flavor": {"name": "mine", "ram": 1, "vcpus": 1, "disk": 0}})
        assert made.status == 200
        assert member.get("/os-hypervisors").status == 403


def test_what_is_the_clouds_is_no_projects(tmp_path: Path, sqlite_url: str) -> None:
    """As in the reference: a rule about the project opens nothing that belongs to none."""
    (tmp_path / "policy.yaml").write_text(POLICY)
    configuration = tmp_path / "moorage.conf"
    configuration.write_text(f"[oslo_policy]\npolicy_file = {tmp_path / 'policy.yaml'}\n")
    with cloud_on(sqlite_url, files=[str(configuration)]) as cloud:
        assert cloud.member().get("/os-aggregates").status == 403
        assert cloud.admin.get("/os-aggregates").status == 200
