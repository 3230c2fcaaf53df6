"""Quotas by the unified limits of a real Keystone, counted here, on either database."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from oslo_upgradecheck.upgradecheck import Code

from moorage.cli import settings
from moorage.cli.status import Checks
from moorage.compute.errors import UnavailableError
from moorage.compute.quotas import unified
from moorage.compute.quotas.keystone_limits import (
    CALLS,
    KeystoneLimits,
    LimitsUnavailableError,
    OwnEndpoint,
)
from moorage.compute.quotas.options import UNIFIED
from moorage.compute.quotas.unified import UnifiedLimits
from moorage.core import openstack_services
from moorage.core.config import ConfigError
from tests.integration.clouds import keystone_clouds
from tests.lab.client.openstack import openstack, order
from tests.lab.keystone import service as keystone_service
from tests.lab.keystone.service import Keystone, Person
from tests.lab.keystone.settings import REGION
from tests.support.compute import Answer, Cloud, User, cloud_on
from tests.support.processes import free_port
from tests.support.profiles import ini

REGISTERED = {
    "servers": 2,
    "class:VCPU": 4,
    "class:MEMORY_MB": 8192,
    "class:CUSTOM_GOLD": 3,
    "server_metadata_items": 2,
    "server_injected_files": 1,
    "server_injected_file_content_bytes": 12,
    "server_injected_file_path_bytes": 9,
    "server_key_pairs": 1,
    "server_groups": 1,
    "server_group_members": 1,
}
CALLERS = 8


@dataclass
class Site:
    keystone: Keystone
    directory: Path
    moorage: Person
    projects: Iterator[int]

    def project(self, **limits: int) -> str:
        """A new one, with limits of its own."""
        project_id = self.keystone.add_project(f"team-{next(self.projects)}")
        if limits:
            self.keystone.limit_project("compute", project_id, limits)
        return project_id

    def section(self, person: Person) -> dict[str, str]:
        return {"auth_type": "password", "region_name": REGION, **person.auth(self.keystone.url)}

    def config(self, person: Person) -> str:
        """A file with what an operator configures."""
        path = self.directory / f"{person.name}.conf"
        path.write_text(ini({"quota": {"driver": UNIFIED}, "oslo_limit": self.section(person)}))
        return str(path)

    def wire(self, person: Person, **which: Any) -> KeystoneLimits:
        conf = settings.read([Path(self.config(person))])
        adapter = openstack_services.adapter(conf, "oslo_limit", "identity", 5)
        return KeystoneLimits(adapter, OwnEndpoint(**which))


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    directory = tmp_path_factory.mktemp("limits")
    keystone = keystone_service.start(directory / "keystone")
    try:
        keystone.add_service("compute", "moorage", f"http://127.0.0.1:{free_port()}/v2.1")
        keystone.register_limits("compute", REGISTERED)
        moorage = keystone.add_person("moorage", "service", "service")
        yield Site(keystone, directory, moorage, iter(range(1000)))
    finally:
        keystone.stop()


@pytest.fixture(scope="module")
def cloud(site: Site, module_database_url: str) -> Iterator[Cloud]:
    with furnished(site, module_database_url) as running:
        yield running


@pytest.fixture(scope="module")
def small_cloud(site: Site) -> Iterator[Cloud]:
    """For what no database has to do with."""
    with furnished(site, f"sqlite:///{site.directory / 'small.sqlite'}") as running:
        yield running


@contextmanager
def furnished(site: Site, database_url: str) -> Iterator[Cloud]:
    overrides: dict[str, object] = {"quota.unified_limits_cache_seconds": 0.0}
    with cloud_on(database_url, overrides, [site.config(site.moorage)]) as running:
        for name, vcpus, specs in (
            ("small", 1, {}),
            ("large", 4, {}),
            ("golden", 1, {"resources:CUSTOM_GOLD": "2"}),
        ):
            flavor = {"name": name, "id": name, "vcpus": vcpus, "ram": 512, "disk": 1}
            assert running.admin.post("/flavors", {"flavor": flavor}).status == 200
            if specs:
                running.admin.post(f"/flavors/{name}/os-extra_specs", {"extra_specs": specs})
        yield running


def boot(user: User, flavor: str = "small", hints: dict[str, str] | None = None, **more: Any) -> Answer:
    listed = user.client.simulate_get("/image/v2/images", headers={"X-Auth-Token": "ann:images"})
    image = next(one["id"] for one in listed.json["images"] if one["name"].startswith("cirros"))
    wanted = {"name": "s", "flavorRef": flavor, "imageRef": image, **more}
    if user.version is None or user.version >= "2.37":
        wanted["networks"] = "none"
    return user.post("/servers", {"server": wanted, "os:scheduler_hints": hints or {}})


def test_limits_that_the_official_client_sets_are_held(site: Site, small_cloud: Cloud) -> None:
    clouds = site.directory / "clouds.yaml"
    clouds.write_text(keystone_clouds(site.keystone, site.keystone.admin))
    project, where = site.project(), f"--service compute --region {REGION}"
    (found,) = openstack(clouds, "admin", *f"registered limit list {where} --resource-name servers".split())
    assert found["Default Limit"] == 2
    order(clouds, "admin", *f"limit create {where} --project {project} --resource-limit 1 servers".split())
    user = small_cloud.member("ann", project)
    assert small_cloud.admin.get(f"/os-quota-sets/{project}").json["quota_set"]["instances"] == 1
    assert boot(user).status == 202
    assert boot(user).fault == (
        "forbidden",
        f"Project {project} is over a limit for [Resource servers is over limit of 1 due to current usage 1 "
        "and delta 1]",
    )
    name = f"gpu-{project[:6]}"
    order(clouds, "admin", *f"registered limit create {where} --default-limit 7 class:CUSTOM_{name}".split())
    assert site.wire(site.moorage).registered()[f"class:CUSTOM_{name}"] == 7


def test_all_that_servers_use_is_counted_at_once(site: Site, cloud: Cloud) -> None:
    project = site.project(servers=9)
    user = cloud.member("ann", project)
    assert boot(user, "large", min_count=1, max_count=3).status == 202, "as many as fit"
    detail = cloud.admin.get(f"/os-quota-sets/{project}/detail").json["quota_set"]
    assert detail["instances"] == {"limit": 9, "in_use": 1, "reserved": 0}
    assert detail["cores"] == {"limit": 4, "in_use": 4, "reserved": 0}
    assert detail["ram"] == {"limit": 8192, "in_use": 512, "reserved": 0}
    assert (
        boot(user)
        .fault[1]
        .endswith("[Resource class:VCPU is over limit of 4 due to current usage 4 and delta 1]")
    )
    absolute = user.get("/limits").json["limits"]["absolute"]
    assert (absolute["maxTotalInstances"], absolute["totalCoresUsed"], absolute["maxTotalKeypairs"]) == (
        9,
        4,
        1,
    )


def test_any_resource_class_may_have_a_limit(site: Site, cloud: Cloud) -> None:
    user = cloud.member("ann", site.project(servers=9))
    assert boot(user, "golden").status == 202
    assert boot(user).status == 202, "it has no gold"
    assert (
        boot(user, "golden")
        .fault[1]
        .endswith("[Resource class:CUSTOM_GOLD is over limit of 3 due to current usage 2 and delta 2]")
    )
    rich = cloud.member("ann", site.project(**{"servers": 9, "class:CUSTOM_GOLD": -1}))
    assert [boot(rich, "golden").status for _ in range(3)] == [202] * 3


def test_what_is_no_projects_goes_by_what_is_registered(site: Site, small_cloud: Cloud) -> None:
    project = site.project(servers=9, server_groups=9)
    user = small_cloud.member(f"user-of-{project}", project)
    old = user.at("2.56")

    def over(resource: str, limit: int, used: int, more: int) -> tuple[str, str]:
        return (
            "forbidden",
            f"Project None is over a limit for [Resource {resource} is over limit of {limit} due to current "
            f"usage {used} and delta {more}]",
        )

    key = {"keypair": {"name": "one", "type": "ssh"}}
    assert user.at("2.91").post("/os-keypairs", key).status == 201
    key["keypair"]["name"] = "two"
    assert user.at("2.91").post("/os-keypairs", key).fault == over("server_key_pairs", 1, 1, 1)
    group = {"server_group": {"name": "g", "policy": "affinity"}}
    made = user.post("/os-server-groups", group).json["server_group"]["id"]
    assert user.post("/os-server-groups", group).fault == over("server_groups", 1, 1, 1)
    assert boot(user, hints={"group": made}).status == 202
    assert boot(user, hints={"group": made}).fault == over("server_group_members", 1, 1, 1)
    many = {"a": "1", "b": "2", "c": "3"}
    assert boot(user, metadata=many).fault == over("server_metadata_items", 2, 0, 3)
    file = {"path": "/etc/motd", "contents": "SGVsbG8="}
    assert boot(old, personality=[file]).status == 202
    assert boot(old, personality=[file, file]).fault == over("server_injected_files", 1, 0, 2)
    long = {**file, "path": "/etc/motd.1"}
    assert boot(old, personality=[long]).fault == over("server_injected_file_path_bytes", 9, 0, 11)
    large = {**file, "contents": "SGVsbG8gd29ybGQhIQ=="}
    assert boot(old, personality=[large]).fault == over("server_injected_file_content_bytes", 12, 0, 20)


def test_quotas_are_shown_here_and_set_in_keystone(site: Site, small_cloud: Cloud) -> None:
    project = site.project(**{"class:VCPU": 40})
    path = f"/os-quota-sets/{project}"
    before = small_cloud.admin.get(path).json["quota_set"]
    assert (before["instances"], before["cores"], before["ram"], before["key_pairs"]) == (2, 40, 8192, 1)
    changed = small_cloud.admin.put(path, {"quota_set": {"instances": 99, "cores": 1}})
    assert (changed.status, changed.json["quota_set"]["instances"]) == (200, 2)
    assert small_cloud.admin.put(path, {"quota_set": {"instances": "many"}}).status == 400
    assert small_cloud.admin.delete(path).status == 202
    assert small_cloud.admin.get(path).json["quota_set"] == before
    assert small_cloud.admin.get(f"{path}?user_id=ann").json["quota_set"] == before
    assert small_cloud.admin.get(f"{path}/defaults").json["quota_set"]["cores"] == 4
    classes = small_cloud.admin.put("/os-quota-class-sets/default", {"quota_class_set": {"cores": 77}})
    assert (classes.status, classes.json["quota_class_set"]["cores"]) == (200, 4)


def test_limits_hold_when_everybody_boots_at_once(site: Site, cloud: Cloud) -> None:
    """Of two that fit one by one, and not together, one gets its server."""
    users = [cloud.member("ann", site.project(**{"servers": 9, "class:VCPU": 4})) for _ in range(2)]
    wishes = [(user, flavor) for user in users for flavor in ("large", "small", "large", "golden")]
    with ThreadPoolExecutor(CALLERS) as pool:
        answers = list(pool.map(lambda wish: (wish[0].project_id, wish[1], boot(*wish).status), wishes))
    for user in users:
        got = Counter(
            flavor for project, flavor, status in answers if (project, status) == (user.project_id, 202)
        )
        cores = got["large"] * 4 + got["small"] + got["golden"]
        assert 2 <= cores <= 4, got
        used = cloud.admin.get(f"/os-quota-sets/{user.project_id}/detail").json["quota_set"]["cores"]
        assert used["in_use"] == cores


def test_gold_holds_when_everybody_boots_at_once(site: Site, cloud: Cloud) -> None:
    user = cloud.member("ann", site.project(**{"servers": 99, "class:VCPU": 99, "class:CUSTOM_GOLD": 5}))
    with ThreadPoolExecutor(CALLERS) as pool:
        answers = Counter(pool.map(lambda _: boot(user, "golden").status, range(CALLERS)))
    assert answers == {202: 2, 403: CALLERS - 2}


def test_who_may_not_see_all_limits_is_told_so(site: Site) -> None:
    """To them projects would seem to have no limits of their own."""
    blind = site.keystone.add_person("blind", "member", "blind")
    with pytest.raises(LimitsUnavailableError, match="needs the role service, or reader with system_scope"):
        site.wire(blind).registered()
    with pytest.raises(LimitsUnavailableError, match="has no endpoints like that"):
        site.wire(site.moorage, service_type="cooking").registered()
    assert site.wire(site.moorage, region_name=REGION, interface="internal").registered()["servers"] == 2


def test_the_upgrade_check_looks_at_the_limits(site: Site) -> None:
    conf = settings.read([Path(site.config(site.moorage))])
    assert Checks(conf).limits().code == Code.SUCCESS
    conf.set_override("unified_limits_resource_list", ["servers", "class:PGPU"], group="quota")
    lacking = Checks(conf).limits()
    assert (lacking.code, "registered in Keystone for class:PGPU" in str(lacking.details)) == (
        Code.WARNING,
        True,
    )
    conf.set_override("username", "nobody", group="oslo_limit")
    assert Checks(conf).limits().code == Code.FAILURE
    assert Checks(settings.read([])).limits().code == Code.SUCCESS, "ours hold"


def test_without_credentials_nothing_starts(tmp_path: Path) -> None:
    path = tmp_path / "moorage.conf"
    path.write_text(ini({"quota": {"driver": UNIFIED}}))
    with pytest.raises(ConfigError, match=r"\[oslo_limit\] has no credentials"):
        unified.connect(settings.read([path]))


def test_a_keystone_that_is_away_is_told_and_what_it_said_is_good_for_a_while(
    site: Site, small_cloud: Cloud
) -> None:
    project = site.project()
    user = small_cloud.member("ann", project)
    kept = UnifiedLimits(site.wire(site.moorage), seconds=600)
    kept.fetch(project)
    failed = CALLS.labels("registered_limits", "failed")
    before = failed._value.get()
    site.keystone.stop()
    try:
        refused = boot(user)
        assert refused.fault[0] == "serviceUnavailable"
        assert "identity service does not tell the limits" in refused.fault[1]
        assert user.get("/servers").json == {"servers": []}
        assert user.get("/limits").status == 503
        assert failed._value.get() > before
        kept.fetch(project)
        with pytest.raises(UnavailableError):
            kept.fetch("another")
    finally:
        site.keystone.start_again()
    assert boot(user).status == 202
