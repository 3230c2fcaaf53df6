"""The driver and a real Ironic, with what goes wrong between them."""

from __future__ import annotations

import dataclasses
import json
import socket
import subprocess
import threading
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

from moorage.core import uuids
from moorage.drivers.contract import (
    RUNNING,
    SHUT_DOWN,
    Driver,
    DriverClosedError,
    DriverError,
    ServerSpec,
    UnchangedError,
)
from moorage.drivers.ironic.api.client import IronicError
from moorage.drivers.ironic.api.record import REPORT_FIELDS
from moorage.drivers.ironic.driver import IronicDriver
from moorage.drivers.ironic.nodes import machines
from moorage.drivers.ironic.nodes.partition import Partition
from moorage.drivers.ironic.servers import deployment, mark
from moorage.drivers.ironic.settings import IronicSettings
from moorage.drivers.machine_failures import AvoidedMachines
from moorage.drivers.machines import MachineState
from moorage.drivers.parts import ConsoleAddress, ConsoleType
from moorage.drivers.testing import DriverContract, DriverStand
from tests.integration.ironic.lines import client, port_of, provisions
from tests.lab.ironic import service as ironic
from tests.lab.ironic.nodes import Nodes
from tests.lab.ironic.older import OlderIronic
from tests.support import moorage
from tests.support.faulty_proxy import Fault, FaultyProxy
from tests.support.postgres import Postgres
from tests.support.processes import free_port, wait_until

LOCKED = Fault(
    409,
    json.dumps({"error_message": {"faultstring": "Node 1 is locked by host 2, please retry"}}).encode(),
    method="PUT",
    path="/states/provision",
    times=3,
)
NO_CARD = json.dumps({"error_message": {"faultstring": "no free physical port is left"}}).encode()
LOST = Fault(works=True, method="PUT", path="/states/provision", times=1)


@pytest.fixture(scope="module")
def metal(tmp_path_factory: pytest.TempPathFactory, postgres: Postgres) -> Iterator[Nodes]:
    """Three nodes of group a, one of which is in a shard; one node of group b."""
    with ironic.running(tmp_path_factory.mktemp("ironic"), postgres, deploy_delay=1, utc=True) as nodes:
        line = {"lab_console_port": free_port()}
        nodes.enrol("a-1", "a", traits=["CUSTOM_FAST"], console_interface="lab", driver_info=line)
        nodes.enrol("a-2", "a", management_interface="lab")
        nodes.enrol("a-3", "a", shard="s1", console_interface="fake-graphical")
        nodes.enrol("b-1", "b")
        yield nodes
        postgres.drop_database("ironic")


@pytest.fixture
def driver(proxy: FaultyProxy) -> IronicDriver:
    return owning(proxy.port, Partition("a"))


def owning(port: int, partition: Partition) -> IronicDriver:
    """A driver that was told to keep all that it sees."""
    made = IronicDriver(client(port), partition, IronicSettings(poll_interval=0.2, retries=10))
    made.look()
    made.keep(made.eligible())
    return made


def named(driver: IronicDriver) -> dict[str | None, str]:
    return {record.name: uuid for uuid, record in driver.fleet.listed().items()}


def spec(metal: Nodes, node: str, **extra_specs: str) -> ServerSpec:
    source = {"baremetal:image_source": metal.image("image"), "baremetal:image_type": "whole-disk"}
    flavor = {"vcpus": 1, "ram": 64, "disk": 1, "extra_specs": extra_specs}
    port = {"id": uuids.generate(), "mac": "fa:16:3e:00:00:01", "addresses": ["10.0.0.5"]}
    image = {"id": "image-1", "properties": source}
    return ServerSpec(uuids.generate(), "s", "p", "u", node, flavor, image, [port], config_drive=True)


def remove(metal: Nodes, driver: IronicDriver, server: ServerSpec) -> None:
    driver.destroy(server.uuid, server.node_uuid)
    assert metal.show(server.node_uuid)["instance_uuid"] is None
    wait_until(lambda: metal.show(server.node_uuid)["provision_state"] == "available", "the cleaning", 60)


class RealStand(DriverStand):
    driver: IronicDriver
    consoles = ()
    """Fake hardware does not say where they are."""
    keeps_logs = False

    def __init__(self, metal: Nodes) -> None:
        self._metal = metal
        self.driver = owning(port_of(metal), Partition("a"))

    def spec(self, driver: Driver | None = None) -> ServerSpec:
        return spec(self._metal, named(self.driver)["a-2"])

    def rescue_spec(self, spec: ServerSpec) -> ServerSpec:
        return msgspec.structs.replace(spec, admin_password="let me in")

    def slow_spec(self) -> ServerSpec:
        return self.spec()

    def is_at_work(self, spec: ServerSpec) -> bool:
        return bool(self._metal.show(spec.node_uuid)["provision_state"] == "deploying")

    def restart(self) -> None:
        self.driver.close()
        self.driver = owning(port_of(self._metal), Partition("a"))

    def forget(self, spec: ServerSpec) -> None:
        remove(self._metal, self.driver, spec)


class TestContract(DriverContract):
    @pytest.fixture
    def stand(self, metal: Nodes) -> RealStand:
        return RealStand(metal)


def test_only_the_partition_is_listed_on_every_page(metal: Nodes) -> None:
    port = port_of(metal)
    assert set(named(owning(port, Partition("a")))) == {"a-1", "a-2", "a-3"}
    assert set(named(owning(port, Partition("b")))) == {"b-1"}
    assert set(named(owning(port, Partition("a", "s1")))) == {"a-3"}
    assert set(named(owning(port, Partition("b", "s1")))) == set()
    assert set(named(owning(port, Partition()))) == {"a-1", "a-2", "a-3", "b-1"}
    assert set(named(owning(port, Partition("")))) == set(), "none is in the unnamed group"
    everything = [machines.describe(one) for page in client(port).pages({}, REPORT_FIELDS) for one in page]
    assert {(one.name, one.group, one.state) for one in everything} == {
        (name, name[0], MachineState.FREE) for name in ("a-1", "a-2", "a-3", "b-1")
    }


def just_enrolled(metal: Nodes, *names: str) -> dict[str, str]:
    """New nodes of group a that nobody has touched since, by name."""
    node = {"driver": "fake-hardware", "conductor_group": "a", "resource_class": "gold"}
    return {name: metal.ask("POST", "nodes", {**node, "name": name})["uuid"] for name in names}


def test_nodes_that_go_while_they_are_listed_hide_no_others(metal: Nodes) -> None:
    """Those after which the next page was to begin."""
    passing = just_enrolled(metal, *(f"passing-{number}" for number in range(5)))
    found, gone = set(), set()
    for page in client(port_of(metal)).pages({"conductor_group": "a"}):
        found |= {record.name for record in page}
        if page and page[-1].name in passing:
            gone.add(page[-1].name)
            metal.ask("DELETE", f"nodes/{page[-1].uuid}")
    assert len(gone) > 1
    assert found == {"a-1", "a-2", "a-3", *passing}
    for name in passing.keys() - gone:
        metal.ask("DELETE", f"nodes/{passing[name]}")


def test_reservations_that_go_while_they_are_listed_hide_no_others(metal: Nodes) -> None:
    names = [f"passing-{number}" for number in range(5)]
    wanted = {
        metal.ask("POST", "allocations", {"name": name, "resource_class": "none"})["uuid"] for name in names
    }
    found, gone = [], set()
    for record in client(port_of(metal)).reservations():
        found.append(record.uuid)
        if len(found) % 2 == 0:
            gone.add(record.uuid)
            metal.ask("DELETE", f"allocations/{record.uuid}")
    assert len(gone) > 1
    assert sorted(found) == sorted(wanted)
    for uuid in wanted - gone:
        metal.ask("DELETE", f"allocations/{uuid}")


def test_a_change_is_seen_behind_nodes_that_never_changed(metal: Nodes) -> None:
    """Sorted by the time of the last change, nodes without one fill the first page."""
    driver = owning(port_of(metal), Partition("a"))
    untouched = just_enrolled(metal, "untouched-1", "untouched-2", "untouched-3")
    (changed,) = just_enrolled(metal, "changed").values()
    metal.change(changed, resource_class="silver")
    driver.look()
    listed = driver.fleet.listed()
    assert {"untouched-1", "untouched-2", "untouched-3"} <= {record.name for record in listed.values()}
    assert listed[changed].resource_class == "silver"
    for uuid in (changed, *untouched.values()):
        metal.ask("DELETE", f"nodes/{uuid}")


def test_between_two_listings_only_changes_are_asked_for(metal: Nodes, proxy: FaultyProxy) -> None:
    """Each kind of change that matters, made by somebody else, and nothing that did not change."""
    driver = owning(proxy.port, Partition("a"))
    node, leaver = metal.enrol("new", "a"), metal.enrol("leaver", "a")
    seen: list[tuple[object, ...]] = []

    def look() -> None:
        del proxy.requests[:]
        driver.look()
        record = driver.fleet.listed()[node]
        seen.append((record.traits, record.power_state, record.maintenance, record.resource_class))
        assert all("sort_key=updated_at" in path for _, path in proxy.requests), proxy.requests

    look()
    metal.ask("PUT", f"nodes/{node}/traits", {"traits": ["CUSTOM_NEW"]})
    look()
    metal.ask("PUT", f"nodes/{node}/states/power", {"target": "power on"})
    wait_until(lambda: metal.show(node)["power_state"] == "power on", "the power", 30)
    look()
    metal.change(node, maintenance=True, resource_class="silver")
    look()
    assert seen == [
        ([], "power off", False, "gold"),
        (["CUSTOM_NEW"], "power off", False, "gold"),
        (["CUSTOM_NEW"], "power on", False, "gold"),
        (["CUSTOM_NEW"], "power on", True, "silver"),
    ]
    eligible = driver.eligible()
    look()
    assert driver.eligible() is eligible, "nothing has changed"
    metal.change(leaver, conductor_group="b")
    look()
    assert leaver not in driver.eligible()
    everything = IronicDriver(client(proxy.port), Partition("a"), IronicSettings(full_listing_interval=0))
    everything.look()
    assert everything.fleet.listed() == driver.fleet.listed()
    for uuid in (node, leaver):
        metal.provision(uuid, "manage", "manageable")
        metal.ask("DELETE", f"nodes/{uuid}")
    del proxy.requests[:]
    everything.look()
    assert not any("sort_key" in path for _, path in proxy.requests)
    assert not {node, leaver} & everything.fleet.listed().keys()


def test_only_a_node_that_ironic_does_not_have_is_gone(metal: Nodes, driver: IronicDriver) -> None:
    node = metal.enrol("nameless", "a")
    metal.ask("PATCH", f"nodes/{node}", [{"op": "remove", "path": "/resource_class"}])
    driver.look()
    assert node not in driver.eligible()
    found = driver.look_up_missing(node)
    assert found is not None
    assert found.free
    metal.provision(node, "manage", "manageable")
    metal.ask("DELETE", f"nodes/{node}")
    assert driver.look_up_missing(node) is None


@pytest.mark.parametrize("fault", [LOCKED, LOST], ids=["locked", "lost"])
def test_a_deployment_survives_locks_and_lost_answers(
    metal: Nodes, proxy: FaultyProxy, driver: IronicDriver, fault: Fault
) -> None:
    server = spec(metal, named(driver)["a-1"], **{"trait:CUSTOM_FAST": "required"})
    proxy.fail(fault)
    assert driver.spawn(server) == RUNNING
    assert provisions(proxy) == (4 if fault is LOCKED else 1)
    assert driver.spawn(server) == RUNNING, "done already"
    assert driver.servers() == {server.uuid: RUNNING}
    shown = metal.show(server.node_uuid)
    assert (shown["provision_state"], shown["instance_info"]["traits"]) == ("active", ["CUSTOM_FAST"])
    assert driver.stop(server.uuid, server.node_uuid) == SHUT_DOWN
    assert driver.power(server.uuid, server.node_uuid) == SHUT_DOWN
    assert driver.servers() == {server.uuid: SHUT_DOWN}
    remove(metal, driver, server)
    assert driver.servers() == {}


def test_a_port_is_attached_to_the_node_once_that_is_not_locked(
    metal: Nodes, proxy: FaultyProxy, driver: IronicDriver
) -> None:
    """The lab's nodes have no real network, so that Ironic takes ports and lists none."""
    server = spec(metal, named(driver)["a-2"])
    driver.spawn(server)
    vifs = ("POST", f"/v1/nodes/{server.node_uuid}/vifs")
    before = proxy.requests.count(vifs)
    proxy.fail(dataclasses.replace(LOCKED, method="POST", path="/vifs", times=2))
    driver.attach_interface(server.uuid, server.node_uuid, {"id": uuids.generate()})
    assert proxy.requests.count(vifs) == before + 3
    driver.detach_interface(server.uuid, server.node_uuid, uuids.generate())
    with pytest.raises(DriverError, match="has server"):
        driver.attach_interface(uuids.generate(), server.node_uuid, {"id": uuids.generate()})
    remove(metal, driver, server)


def test_a_node_that_stays_locked_is_given_up_after_a_while(
    metal: Nodes, proxy: FaultyProxy, driver: IronicDriver
) -> None:
    server = spec(metal, named(driver)["a-1"])
    proxy.fail(dataclasses.replace(LOCKED, times=1_000_000))
    with pytest.raises(DriverError, match="locked") as error:
        driver.spawn(server)
    assert error.value.retry_elsewhere
    assert provisions(proxy) == 11, "as many looks as it is told to have patience for"
    assert metal.show(server.node_uuid)["instance_uuid"] is None


def test_a_node_that_ironic_does_not_take_is_left_as_it_was(metal: Nodes, driver: IronicDriver) -> None:
    server = spec(metal, named(driver)["a-2"], **{"trait:CUSTOM_FAST": "required"})
    with pytest.raises(DriverError, match="CUSTOM_FAST") as error:
        driver.spawn(server)
    assert error.value.retry_elsewhere
    assert metal.show(server.node_uuid)["instance_uuid"] is None


def test_what_a_driver_was_at_another_one_ends(
    metal: Nodes, proxy: FaultyProxy, driver: IronicDriver
) -> None:
    server = spec(metal, named(driver)["a-2"])
    ended: list[BaseException] = []

    def deploy() -> None:
        try:
            driver.spawn(server)
        except DriverClosedError as error:
            ended.append(error)

    thread = threading.Thread(target=deploy)
    thread.start()
    wait_until(lambda: metal.show(server.node_uuid)["provision_state"] == "deploying", "the deployment", 30)
    assert driver.progress()[server.uuid] > 0
    driver.close()
    thread.join(30)
    assert len(ended) == 1
    successor = owning(proxy.port, Partition("a"))
    assert successor.spawn(server) == RUNNING
    assert provisions(proxy) == 1
    remove(metal, successor, server)


def test_a_deployment_that_fails_is_undone_and_says_why(
    metal: Nodes, proxy: FaultyProxy, driver: IronicDriver
) -> None:
    server = spec(metal, named(driver)["a-2"])
    failed = {"instance_uuid": server.uuid, "provision_state": "deploy failed", "last_error": "no such disk"}
    info = deployment.whole_info(server, mark.of(server, server.node_uuid))
    answer = json.dumps(metal.show(server.node_uuid) | failed | {"instance_info": info}).encode()
    # Unless the node is locked for a moment, the third look at it is the first one after the order.
    proxy.fail(Fault(200, answer, method="GET", path=f"/nodes/{server.node_uuid}?", after=2, times=1))
    with pytest.raises(DriverError, match="no such disk") as error:
        driver.spawn(server)
    assert error.value.retry_elsewhere
    noted = driver.machine_failures.failures()
    assert [(one.machine_uuid, one.step) for one in noted] == [(server.node_uuid, "deploy")]
    assert metal.show(server.node_uuid)["instance_uuid"] is None
    wait_until(lambda: metal.show(server.node_uuid)["provision_state"] == "available", "the cleaning", 60)


def test_a_port_that_can_not_be_attached_is_no_failure_of_the_machine(
    metal: Nodes, proxy: FaultyProxy, driver: IronicDriver
) -> None:
    server = spec(metal, named(driver)["a-2"])
    proxy.fail(Fault(400, NO_CARD, method="POST", path="/vifs", times=1))
    with pytest.raises(DriverError, match="free physical port") as error:
        driver.spawn(server)
    assert error.value.retry_elsewhere
    assert driver.machine_failures.failures() == []
    left = metal.show(server.node_uuid)
    assert (left["provision_state"], left["instance_uuid"]) == ("available", None)


def test_a_machine_whose_network_refuses_everything_is_given_back(metal: Nodes, driver: IronicDriver) -> None:
    """Ironic asks a Neutron that is not there even before it tells which ports are attached."""
    server = spec(metal, named(driver)["a-2"])
    metal.change(server.node_uuid, network_interface="flat")
    with pytest.raises(DriverError, match="cleaning_network") as error:
        driver.spawn(server)
    assert error.value.retry_elsewhere
    assert driver.machine_failures.failures() == [], "a Neutron that is away is no fault of all machines"
    left = metal.show(server.node_uuid)
    assert (left["provision_state"], left["instance_uuid"]) == ("available", None)
    metal.change(server.node_uuid, network_interface="noop")


def test_a_server_that_was_sent_before_a_quarantine_does_not_land(metal: Nodes, driver: IronicDriver) -> None:
    server = spec(metal, named(driver)["a-2"])
    driver.machine_failures.avoid(AvoidedMachines(frozenset({server.node_uuid})))
    with pytest.raises(DriverError, match="in quarantine") as error:
        driver.spawn(server)
    assert error.value.retry_elsewhere
    assert driver.machine_failures.failures() == []


def test_a_deployment_that_takes_too_long_has_failed(metal: Nodes, driver: IronicDriver) -> None:
    hasty = IronicDriver(
        client(port_of(metal)),
        Partition("a"),
        IronicSettings(poll_interval=0.1, retries=10, deploy_timeout=0.01),
    )
    hasty.look()
    hasty.keep(hasty.eligible())
    server = spec(metal, named(driver)["a-2"])
    with pytest.raises(DriverError, match="was not done after") as error:
        hasty.spawn(server)
    assert error.value.retry_elsewhere
    remove(metal, driver, server)


def test_a_destroy_ends_a_deployment(metal: Nodes, driver: IronicDriver) -> None:
    server = spec(metal, named(driver)["a-2"])
    failures: list[DriverError] = []

    def deploy() -> None:
        try:
            driver.spawn(server)
        except DriverError as error:
            failures.append(error)

    thread = threading.Thread(target=deploy)
    thread.start()
    wait_until(lambda: metal.show(server.node_uuid)["provision_state"] == "deploying", "the deployment", 30)
    remove(metal, driver, server)
    thread.join(30)
    assert len(failures) == 1
    assert driver.progress() == {}


def test_a_rebuild_that_two_hosts_are_asked_for_is_done_once(
    metal: Nodes, proxy: FaultyProxy, driver: IronicDriver
) -> None:
    server = spec(metal, named(driver)["a-2"])
    driver.spawn(server)
    first = provisions(proxy)
    rebuild = msgspec.structs.replace(server, work="7")
    assert driver.rebuild(rebuild) == RUNNING
    successor = owning(proxy.port, Partition("a"))
    assert successor.rebuild(rebuild) == RUNNING, "the first host died before it could say that it was done"
    assert provisions(proxy) == first + 1
    assert successor.rebuild(msgspec.structs.replace(server, work="8")) == RUNNING
    assert provisions(proxy) == first + 2
    remove(metal, successor, server)


def test_nodes_of_another_host_are_left_alone(metal: Nodes, driver: IronicDriver) -> None:
    first, second = named(driver)["a-1"], named(driver)["a-2"]
    server = spec(metal, first)
    driver.spawn(server)
    driver.keep({second})
    with pytest.raises(DriverError, match="not this host's") as error:
        driver.spawn(spec(metal, first))
    assert error.value.retry_elsewhere
    driver.destroy(server.uuid, first)
    assert metal.show(first)["instance_uuid"] == server.uuid
    assert driver.servers() == {}
    driver.keep({first, second})
    moved = spec(metal, second)
    remove(metal, driver, server)
    assert driver.spawn(moved) == RUNNING
    remove(metal, driver, moved)


def test_a_server_that_was_left_on_another_node_leaves_it_first(metal: Nodes, driver: IronicDriver) -> None:
    first, second = named(driver)["a-1"], named(driver)["a-2"]
    server = spec(metal, first)
    driver.spawn(server)
    elsewhere = ServerSpec(server.uuid, "s", "p", "u", second, server.flavor, server.image)
    assert driver.spawn(elsewhere) == RUNNING
    assert metal.show(first)["instance_uuid"] is None
    assert metal.show(second)["instance_uuid"] == server.uuid
    remove(metal, driver, elsewhere)
    wait_until(lambda: metal.show(first)["provision_state"] == "available", "the cleaning", 60)


@pytest.mark.parametrize(
    ("newest", "partition"), [((1, 45), Partition("a")), ((1, 81), Partition("a", "s1"))]
)
def test_an_ironic_that_can_not_filter_is_not_asked_for_everything(
    metal: Nodes, tmp_path: Path, newest: tuple[int, int], partition: Partition
) -> None:
    older = OlderIronic(port_of(metal), newest)
    older.start()
    try:
        driver = IronicDriver(client(older.port), partition)
        with pytest.raises(IronicError, match="too old"):
            driver.check(partition)
        with pytest.raises(DriverError, match="too old"):
            driver.look()
        config = tmp_path / "agent.conf"
        config.write_text(
            "[DEFAULT]\ntransport_url = rabbit://guest:guest@127.0.0.1:1/\n"
            "[placement_client]\nauth_type = none\nendpoint = http://127.0.0.1:1\n"
            f"[agent]\ndriver = ironic\nstate_directory = {tmp_path / 'state'}\n"
            f"[ironic]\nauth_type = none\nendpoint = http://127.0.0.1:{older.port}\n"
            f"partition_key = {partition.key}\nshard = {partition.shard}\n"
        )
        command = [str(moorage.PROGRAMS / "moorage-agent"), "--config-file", str(config)]
        run = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
        assert run.returncode == 1
        assert "too old" in run.stderr
        assert "Traceback" not in run.stderr
        assert not any("/v1/nodes" in path for _, path in older.requests)
        assert set(named(owning(older.port, Partition()))) == {"a-1", "a-2", "a-3", "b-1"}
    finally:
        older.stop()


def test_an_interrupt_goes_to_the_machine_of_the_server_alone(
    metal: Nodes, driver: IronicDriver, proxy: FaultyProxy
) -> None:
    """Fake hardware takes none, which Ironic says; what other hardware would say is put into its mouth."""
    server = spec(metal, named(driver)["a-1"])
    driver.spawn(server)
    with pytest.raises(DriverError, match="does not support inject_nmi"):
        driver.trigger_crash_dump(server.uuid, server.node_uuid)
    proxy.fail(Fault(204, b"", method="PUT", path="/management/inject_nmi", times=1))
    driver.trigger_crash_dump(server.uuid, server.node_uuid)
    with pytest.raises(DriverError, match="has server"):
        driver.trigger_crash_dump(uuids.generate(), server.node_uuid)
    driver.stop(server.uuid, server.node_uuid)
    with pytest.raises(DriverError, match="does not run"):
        driver.trigger_crash_dump(server.uuid, server.node_uuid)
    assert metal.show(server.node_uuid)["lessee"] == server.project_id, "Ironic knows whose it is"
    remove(metal, driver, server)
    assert metal.show(server.node_uuid)["lessee"] is None


def test_a_serial_console_is_there_until_its_server_is_gone(metal: Nodes, driver: IronicDriver) -> None:
    server = spec(metal, named(driver)["a-1"])
    driver.spawn(server)
    for _ in range(2):
        address = driver.console(server.uuid, server.node_uuid, ConsoleType.SERIAL)
    with socket.create_connection((address.host, address.port), 30) as line:
        line.sendall(b"anybody there?\n")
        assert b"anybody" in line.recv(100)
    with pytest.raises(DriverError, match="no screen"):
        driver.console(server.uuid, server.node_uuid, ConsoleType.NOVNC)
    with pytest.raises(DriverError):
        driver.console(uuids.generate(), server.node_uuid, ConsoleType.SERIAL)
    remove(metal, driver, server)
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection((address.host, address.port), 30)


def test_a_screen_is_where_ironic_s_own_proxy_connects_to(metal: Nodes, driver: IronicDriver) -> None:
    """Its fake containers are at an address of nobody's."""
    server = spec(metal, named(driver)["a-3"])
    driver.spawn(server)
    for _ in range(2):
        address = driver.console(server.uuid, server.node_uuid, ConsoleType.NOVNC)
        assert address == ConsoleAddress("192.0.2.1", 5900)
    with pytest.raises(DriverError, match="can't be connected to"):
        driver.console(server.uuid, server.node_uuid, ConsoleType.SERIAL)
    remove(metal, driver, server)


def test_a_rebuild_that_ironic_refuses_leaves_what_was_written_down(
    metal: Nodes, driver: IronicDriver
) -> None:
    """It refuses an image of which it can't tell the type."""
    server = spec(metal, named(driver)["a-2"])
    driver.spawn(server)
    before = metal.show(server.node_uuid)
    source = {"baremetal:image_source": metal.image("other"), "baremetal:x": "y"}
    wanted = msgspec.structs.replace(server, image={"id": "image-2", "properties": source}, work="2")
    with pytest.raises(UnchangedError, match="500"):
        driver.rebuild(wanted)
    after = metal.show(server.node_uuid)
    for field in ("provision_state", "provision_updated_at", "power_state", "protected"):
        assert after[field] == before[field]
    ours = ("moorage", "moorage_rebuild")
    assert {name: said for name, said in after["instance_info"].items() if name not in ours} == {
        name: said for name, said in before["instance_info"].items() if name not in ours
    }
    source["baremetal:image_type"] = "whole-disk"
    assert driver.rebuild(msgspec.structs.replace(wanted, work="3")) == RUNNING
    remove(metal, driver, server)
