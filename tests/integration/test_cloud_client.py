"""A user's day with the official client, on the cloud that `moorage up` makes."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.integration.embedded import Embedded, embedded
from tests.lab.client.openstack import ClientError, openstack, order

IMAGE = "cirros-0.6.3-x86_64-disk"
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

    def order(self, command: str) -> None:
        """For a command that shows nothing."""
        order(self._clouds_file, "moorage", *command.split())


@pytest.fixture(scope="module")
def run(cloud: Embedded) -> Client:
    return Client(cloud.clouds_file)


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
