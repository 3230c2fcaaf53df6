"""An operator moves servers with the official client, on the cloud that `moorage up` makes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tests.integration.embedded import Embedded, embedded
from tests.lab.client.openstack import ClientError, openstack, order
from tests.support.processes import wait_until

IMAGE = "cirros-0.6.3-x86_64-disk"
OTHER_IMAGE = "debian-12-generic-amd64"


@pytest.fixture(scope="module")
def cloud(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Embedded]:
    with embedded(tmp_path_factory.mktemp("cloud")) as running:
        yield running


class Operator:
    def __init__(self, cloud: Embedded) -> None:
        self._clouds_file = cloud.clouds_file

    def __call__(self, command: str) -> Any:
        return openstack(self._clouds_file, "moorage", *self._words(command))

    def order(self, command: str) -> None:
        order(self._clouds_file, "moorage", *self._words(command))

    def _words(self, command: str) -> list[str]:
        return ["--os-compute-api-version", "2.96", *command.split()]

    def server(self) -> tuple[str, str]:
        shown = self("server show mover")
        return shown["OS-EXT-SRV-ATTR:host"], shown["status"]


@pytest.fixture(scope="module")
def run(cloud: Embedded) -> Operator:
    operator = Operator(cloud)
    operator.order(f"server create --flavor m1.tiny --image {IMAGE} --host fake-1 --wait mover")
    assert operator.server() == ("fake-1", "ACTIVE")
    return operator


def test_a_cold_migration_to_a_host_is_confirmed(run: Operator) -> None:
    run.order("server migrate --host fake-2 --wait mover")
    assert run.server() == ("fake-2", "VERIFY_RESIZE")
    run.order("server migration confirm mover")
    (listed,) = run("server migration list --server mover --type cold-migration")
    assert (listed["Source Compute"], listed["Dest Compute"]) == ("fake-1", "fake-2")


def test_a_live_migration_to_a_host(run: Operator) -> None:
    run.order("server migrate --live-migration --host fake-3 --wait mover")
    assert run.server() == ("fake-3", "ACTIVE")
    with pytest.raises(ClientError, match="current host"):
        run.order("server migrate --live-migration --host fake-3 mover")


def test_a_resize_is_reverted_then_confirmed(run: Operator) -> None:
    run.order("server resize --flavor m1.small --wait mover")
    assert run.server()[1] == "VERIFY_RESIZE"
    run.order("server resize revert mover")
    run.order("server resize --flavor m1.small --wait mover")
    run.order("server resize confirm mover")
    shown = run("server show mover")
    assert shown["flavor"]["original_name"] == "m1.small"


def test_a_rebuild_with_another_image(run: Operator) -> None:
    run.order(f"server rebuild --image {OTHER_IMAGE} --wait mover")
    assert OTHER_IMAGE in run("server show mover")["image"]


def test_an_evacuation_from_a_host_that_is_down(run: Operator) -> None:
    host, _ = run.server()
    with pytest.raises(ClientError, match="still in use"):
        run.order("server evacuate mover")
    run.order(f"compute service set --down {host} nova-compute")
    run.order("server evacuate mover")  # whose --wait would wait for it to run, which it does not since 2.95
    wait_until(lambda: run.server()[1] == "SHUTOFF", "the evacuation", 60)
    assert run.server()[0] != host
    run.order(f"compute service set --up {host} nova-compute")
    actions = [event["Action"] for event in run("server event list mover")]
    assert actions[:2] == ["evacuate", "rebuild"]
