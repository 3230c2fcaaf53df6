"""A request to make a port hangs until its server has another one, or is deleted: no port is left of it."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from moorage.conductor.ports.late_ports import LatePorts
from moorage.network.contract import ServerPorts
from moorage.network.neutron import NeutronNetwork
from tests.support import stage_neutron
from tests.support.crossing import PROJECT, Crossing
from tests.support.faulty_proxy import Fault, FaultyProxy
from tests.support.processes import wait_until
from tests.support.stage_neutron import StageNeutron

pytestmark = pytest.mark.usefixtures("soon", "nothing_is_left")


@pytest.fixture(scope="module")
def cloud(
    stage: StageNeutron, proxy: FaultyProxy, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Crossing]:
    """Its conductor waits for Neutron for a second."""
    directory: Path = tmp_path_factory.mktemp("late")

    def network(who: str) -> NeutronNetwork:
        return stage_neutron.network_at(proxy.target if who == "api" else proxy.port, who, 1.0)

    crossing = Crossing(f"sqlite:///{directory / 'moorage.sqlite'}", directory / "agents", network)
    crossing.start_conductor()
    crossing.start_agent("host-1")
    yield crossing
    crossing.stop()


@pytest.fixture
def sweeper(cloud: Crossing, proxy: FaultyProxy) -> LatePorts:
    return LatePorts(cloud.database, stage_neutron.network_at(proxy.target, "conductor"))


@pytest.fixture
def released(proxy: FaultyProxy) -> Iterator[threading.Event]:
    """The first request for a port hangs until this is set."""
    event = threading.Event()
    proxy.fail(Fault(works=True, until=event, method="POST", path="/ports", times=1))
    yield event
    event.set()


def booted(cloud: Crossing) -> str:
    server = cloud.settled(cloud.boot())
    assert server["status"] == "ACTIVE", server.get("fault")
    return str(server["id"])


def test_one_that_comes_when_the_server_runs_is_deleted(
    cloud: Crossing, stage: StageNeutron, released: threading.Event, sweeper: LatePorts
) -> None:
    uuid = booted(cloud)
    (port,) = stage.ports_of(uuid)
    released.set()
    wait_until(lambda: len(stage.ports_of(uuid)) == 2, "the late port", 10)
    sweeper.sweep([uuid])
    assert [left["id"] for left in stage.ports_of(uuid)] == [port["id"]]


def test_one_that_comes_during_the_build_is_deleted_by_it(
    cloud: Crossing, stage: StageNeutron, proxy: FaultyProxy, released: threading.Event
) -> None:
    """While the second one is being bound, say."""
    uuid = cloud.boot()
    wait_until(lambda: proxy.struck == 1, "the first request", 30)
    binding = threading.Event()
    proxy.fail(Fault(works=True, until=binding, method="PUT", path="/ports/", times=1))
    wait_until(lambda: len(stage.ports_of(uuid)) == 1, "the second request", 30)
    released.set()
    wait_until(lambda: len(stage.ports_of(uuid)) == 2, "the late port", 10)
    binding.set()
    server = cloud.settled(uuid)
    assert server["status"] == "ACTIVE", server.get("fault")
    (port,) = stage.ports_of(uuid)
    assert port["binding:host_id"] == "host-1"


def test_one_that_comes_after_the_server_was_deleted_is_deleted(
    cloud: Crossing, stage: StageNeutron, released: threading.Event, sweeper: LatePorts
) -> None:
    uuid = booted(cloud)
    cloud.delete(uuid)
    assert stage.ports_of(uuid) == []
    released.set()
    wait_until(lambda: len(stage.ports_of(uuid)) == 1, "the late port", 10)
    sweeper.sweep([uuid])
    assert stage.ports_of(uuid) == []


def test_conductors_look_at_what_something_was_done_to_lately(cloud: Crossing, sweeper: LatePorts) -> None:
    running, gone = booted(cloud), booted(cloud)
    cloud.delete(gone)
    assert {running, gone} <= set(sweeper._changed_lately())


def test_ports_that_are_not_ours_or_are_known_are_left_alone(
    cloud: Crossing, stage: StageNeutron, proxy: FaultyProxy, sweeper: LatePorts
) -> None:
    uuid = booted(cloud)
    (port,) = stage.ports_of(uuid)
    theirs = stage.add_port(PROJECT)
    stage.ports[theirs]["device_id"] = uuid  # somebody else's tool plugged it
    sweeper.sweep([uuid])
    assert {left["id"] for left in stage.ports_of(uuid)} == {port["id"], theirs}
    network = stage_neutron.network_at(proxy.target, "conductor")
    assert network.strays([ServerPorts(uuid, [])]) == [[port["id"]]]
    del stage.ports[theirs]


def test_what_an_operation_is_making_is_left_alone(
    cloud: Crossing, stage: StageNeutron, proxy: FaultyProxy, sweeper: LatePorts
) -> None:
    held = threading.Event()
    proxy.fail(Fault(works=True, until=held, method="PUT", path="/ports/", times=1))
    uuid = cloud.boot()
    wait_until(lambda: proxy.struck > 0, "the binding", 30)
    sweeper.sweep([uuid])
    assert len(stage.ports_of(uuid)) == 1
    held.set()
    assert cloud.settled(uuid)["status"] == "ACTIVE"
