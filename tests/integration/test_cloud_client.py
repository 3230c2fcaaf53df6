"""A user's day with the official client, on the cloud that `moorage up` makes."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.integration.embedded import Embedded, embedded
from tests.lab.client.openstack import ClientError, openstack, order
from tests.support.processes import wait_until

IMAGE = "cirros-0.6.3-x86_64-disk"
OTHER_IMAGE = "debian-12-generic-amd64"
HOSTS = {"fake-1", "fake-2", "fake-3"}


@pytest.fixture(scope="module")
def cloud(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Embedded]:
    with embedded(tmp_path_factory.mktemp("cloud")) as running:
        yield running


class Client:
    def __init__(self, clouds_file: Path) -> None:
        self._clouds_file = clouds_file

    def __call__(self, command: str) -> Any:
        """What a command that shows something shows."""
        return openstack(self._clouds_file, "moorage", *command.split())

    def order(self, command: str) -> str:
        """For a command that shows nothing that could be decoded."""
        return order(self._clouds_file, "moorage", *command.split())

    def await_status(self, server: str, status: str) -> None:
        wait_until(lambda: self(f"server show {server}")["status"] == status, f"{server} to be {status}")


@pytest.fixture(scope="module")
def run(cloud: Embedded) -> Client:
    return Client(cloud.clouds_file)


@pytest.fixture(scope="module")
def actor(run: Client) -> Iterator[str]:
    """A server that all sorts of things are done to."""
    run(f"server create --flavor m1.tiny --image {IMAGE} --wait actor")
    yield "actor"
    run.order("server delete --wait actor")


def test_what_a_new_cloud_has(run: Client) -> None:
    assert "m1.tiny" in [flavor["Name"] for flavor in run("flavor list")]
    assert IMAGE in [image["Name"] for image in run("image list")]
    assert {node["Hypervisor Hostname"] for node in run("hypervisor list")} == HOSTS
    services = run("compute service list --service nova-compute")
    assert {(service["Host"], service["State"]) for service in services} == {(host, "up") for host in HOSTS}
    assert {provider["name"] for provider in run("resource provider list")} == HOSTS


def test_the_life_of_a_server(run: Client) -> None:
    made = run(f"server create --flavor m1.tiny --image {IMAGE} --property colour=red --wait one")
    assert made["status"] == "ACTIVE"
    (listed,) = run("server list")
    assert (listed["Name"], listed["Status"], listed["Flavor"]) == ("one", "ACTIVE", "m1.tiny")
    assert listed["Image"] == IMAGE
    shown = run("server show one")
    assert shown["OS-EXT-SRV-ATTR:host"] in HOSTS
    assert shown["properties"] == {"colour": "red"}
    assert list(shown["addresses"]) == ["private"]
    run.order("server reboot --hard --wait one")
    assert [event["Action"] for event in run("server event list one")] == ["reboot", "create"]
    run.order("server delete --wait one")
    assert run("server list") == []
    usage = [run(f"resource provider usage show {row['uuid']}") for row in run("resource provider list")]
    assert {row["usage"] for rows in usage for row in rows} == {0}


@pytest.mark.parametrize(
    ("there", "status", "back"),
    [
        ("pause", "PAUSED", "unpause"),
        ("suspend", "SUSPENDED", "resume"),
        ("stop", "SHUTOFF", "start"),
        (f"rescue --image {OTHER_IMAGE}", "RESCUE", "unrescue"),
        ("shelve --offload --wait", "SHELVED_OFFLOADED", "unshelve --availability-zone nova --wait"),
        ("shelve --offload --wait", "SHELVED_OFFLOADED", "unshelve --host fake-2 --wait"),
    ],
)
def test_a_server_is_taken_somewhere_and_back(
    run: Client, actor: str, there: str, status: str, back: str
) -> None:
    run.order(f"server {there} {actor}")
    run.await_status(actor, status)
    with pytest.raises(ClientError, match=r"409: .*Cannot 'pause'"):
        run.order(f"server pause {actor}")
    run.order(f"server {back} {actor}")
    run.await_status(actor, "ACTIVE")
    if "--host" in back:
        assert run(f"server show {actor}")["OS-EXT-SRV-ATTR:host"] == "fake-2"


@pytest.mark.parametrize(
    "command", ["unpause", "resume", "start", "unrescue", "restore", "resize confirm", "resize revert"]
)
def test_what_its_state_does_not_allow_is_a_conflict(run: Client, actor: str, command: str) -> None:
    with pytest.raises(ClientError, match=r"409: .*while it is in vm_state active"):
        run.order(f"server {command} {actor}")


def test_images_of_a_server(run: Client, actor: str) -> None:
    assert run(f"server image create --name golden --wait {actor}")["status"] == "active"
    for number in (1, 2, 3):
        run(f"server backup create --name nightly-{number} --type daily --rotate 2 --wait {actor}")

    def own() -> set[str]:
        return {image["Name"] for image in run("image list --private")}

    wait_until(lambda: own() == {"golden", "nightly-2", "nightly-3"}, "the first backup to go")


def test_what_a_host_is_asked_for(run: Client, actor: str) -> None:
    run.order(f"server set --password secret {actor}")
    run.order(f"server dump create {actor}")
    assert "Linux" in run.order(f"console log show {actor}")
    assert run(f"console url show --serial {actor}")["url"].startswith("ws://")
    with pytest.raises(ClientError, match=r"400: .*Unavailable console type novnc"):
        run(f"console url show {actor}")
    actions = {event["Action"] for event in run(f"server event list {actor}")}
    assert {"changePassword", "trigger_crash_dump"} <= actions


def test_what_servers_used_is_told(run: Client, actor: str) -> None:
    (used,) = run("usage list")
    assert used["Project"] == "admin"
    assert used["CPU Hours"] >= 0


def test_a_command_may_ask_for_an_older_version(run: Client, actor: str) -> None:
    """Which a `default_microversion` in the cloud's file would forbid."""
    shown = [run(f"{version} server show {actor}") for version in ("", "--os-compute-api-version 2.46")]
    assert ["original_name" in one["flavor"] for one in shown] == [True, False]


def test_an_administrator_makes_and_removes_a_flavor(run: Client) -> None:
    made = run("flavor create --ram 64 --disk 1 --vcpus 1 --private --property hw:cpu_policy=shared nano")
    assert made["properties"] == {"hw:cpu_policy": "shared"}
    assert "nano" not in [flavor["Name"] for flavor in run("flavor list --public")]
    run.order("flavor delete nano")
    with pytest.raises(ClientError, match="nano"):
        run("flavor show nano")


def test_a_disabled_host_is_shown_so(run: Client) -> None:
    run.order("compute service set --disable --disable-reason rain fake-1 nova-compute")
    (first,) = run("compute service list --long --host fake-1")
    assert (first["Status"], first["Disabled Reason"]) == ("disabled", "rain")
    run.order("compute service set --enable fake-1 nova-compute")
    assert run("hypervisor show fake-1")["status"] == "enabled"


def test_what_does_not_exist_is_told(run: Client) -> None:
    with pytest.raises(ClientError, match="nothing"):
        run(f"server create --flavor nothing --image {IMAGE} x")
    with pytest.raises(ClientError, match="nothing"):
        run("server create --flavor m1.tiny --image nothing x")
