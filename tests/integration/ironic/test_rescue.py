"""Rescues on a real Ironic: whose password it is, what fails, who dies, and orders that come too late."""

from __future__ import annotations

import json
from collections.abc import Iterator

import msgspec
import psycopg
import pytest

from moorage.drivers.contract import (
    RUNNING,
    SHUT_DOWN,
    BrokenServerError,
    DriverClosedError,
    DriverError,
    MachineFailedError,
    ServerSpec,
)
from tests.integration.ironic.late import (
    MODES,
    Driver,
    at_work,
    empty,
    held,
    keeper,
    spec,
    wait_for_strike,
    wait_until_free,
)
from tests.integration.ironic.lines import port_of, provisions
from tests.lab.ironic import service as ironic
from tests.lab.ironic.nodes import Nodes
from tests.support.faulty_proxy import Fault, FaultyProxy
from tests.support.postgres import Postgres
from tests.support.processes import wait_until


@pytest.fixture(scope="module")
def metal(tmp_path_factory: pytest.TempPathFactory, postgres: Postgres) -> Iterator[Nodes]:
    with ironic.running(tmp_path_factory.mktemp("ironic"), postgres, ("a",), deploy_delay=0) as nodes:
        nodes.enrol("a-1", "a", rescue_interface="lab")
        yield nodes
        postgres.drop_database("ironic")


@pytest.fixture
def node(metal: Nodes) -> Iterator[str]:
    (found,) = metal.all()
    yield found
    empty(metal, found)


def rescued(server: ServerSpec, work: str = "7", password: str = "let me in") -> ServerSpec:
    return msgspec.structs.replace(server, work=work, admin_password=password)


def state(metal: Nodes, node: str) -> tuple[str, str]:
    shown = metal.show(node)
    return shown["provision_state"], shown["power_state"]


def notes(metal: Nodes, node: str) -> list[str]:
    """Of orders that may still come."""
    return [name for name in metal.show(node)["extra"] if name.startswith("moorage_rescue_order_")]


def password_on(postgres: Postgres, node: str) -> str | None:
    """What Ironic was told: its API does not tell."""
    with psycopg.connect(postgres.database_url("ironic").replace("+psycopg", "")) as connection:
        row = connection.execute("SELECT instance_info FROM nodes WHERE uuid = %s", (node,)).fetchone()
    assert row is not None
    found: str | None = json.loads(row[0]).get("rescue_password")
    return found


@pytest.mark.parametrize("mode", MODES)
def test_the_password_is_the_one_that_is_asked_for_and_everything_may_be_asked_twice(
    metal: Nodes, proxy: FaultyProxy, node: str, postgres: Postgres, mode: str
) -> None:
    driver, server = keeper(mode, proxy.port), spec(metal, mode, node, "s")
    driver.spawn(server)
    ordered = provisions(proxy)
    for _ in range(2):
        assert driver.rescue(rescued(server)) == RUNNING
    assert provisions(proxy) == ordered + 1
    assert state(metal, node) == ("rescue", "power on")
    assert password_on(postgres, node) == "let me in"
    assert notes(metal, node) == []
    assert driver.rescue(rescued(server, "8", "another")) == RUNNING, "as of a server in error"
    assert password_on(postgres, node) == "another"
    for _ in range(2):
        assert driver.unrescue(server.uuid, server.node_uuid) == RUNNING
    assert state(metal, node) == ("active", "power on")
    assert driver.rescue(rescued(server, "9")) == RUNNING
    driver.destroy(server.uuid, server.node_uuid)
    wait_until_free(metal, node)


@pytest.mark.parametrize("runs", [True, False])
def test_a_server_that_could_not_be_rescued_is_what_it_was(
    metal: Nodes, proxy: FaultyProxy, node: str, runs: bool
) -> None:
    driver = keeper("scheduler", proxy.port)
    server = spec(metal, "scheduler", node, "s")
    server = msgspec.structs.replace(server, power_on=runs)
    driver.spawn(server)
    before = (metal.show(node)["instance_info"], state(metal, node))
    metal.change(node, **{"extra/lab_rescue_fails": True})
    with pytest.raises(MachineFailedError, match="the ramdisk does not call back"):
        driver.rescue(rescued(server))
    assert state(metal, node) == before[1]
    assert driver.power(server.uuid, node) == (RUNNING if runs else SHUT_DOWN)
    refusal = json.dumps({"error_message": {"faultstring": "Validation failed: no ramdisk"}}).encode()
    proxy.fail(Fault(400, refusal, method="PUT", path="/states/provision", times=1))
    with pytest.raises(DriverError, match="no ramdisk"):
        driver.rescue(rescued(server, "8"))
    proxy.fail(None)
    assert state(metal, node) == before[1]
    assert notes(metal, node) == []
    info = {name: said for name, said in metal.show(node)["instance_info"].items() if "rescue" not in name}
    assert info == before[0]
    driver.destroy(server.uuid, node)
    wait_until_free(metal, node)


def test_a_server_that_is_neither_rescued_nor_itself_is_broken_and_can_be_rescued_again(
    metal: Nodes, proxy: FaultyProxy, node: str
) -> None:
    driver, server = keeper("scheduler", proxy.port), spec(metal, "scheduler", node, "s")
    driver.spawn(server)
    metal.change(node, **{"extra/lab_rescue_fails": True})
    refusal = json.dumps({"error_message": {"faultstring": "no power"}}).encode()
    proxy.fail(Fault(400, refusal, method="PUT", path="/states/provision", body_has=b"unrescue"))
    with pytest.raises(BrokenServerError, match="no power"):
        driver.rescue(rescued(server))
    proxy.fail(None)
    assert state(metal, node)[0] == "rescue failed"
    metal.change(node, **{"extra/lab_rescue_fails": False})
    assert driver.rescue(rescued(server, "8")) == RUNNING
    assert driver.unrescue(server.uuid, node) == RUNNING
    assert state(metal, node) == ("active", "power on")
    driver.destroy(server.uuid, node)
    wait_until_free(metal, node)


def test_a_machine_that_can_not_be_rescued_is_left_alone(metal: Nodes, proxy: FaultyProxy, node: str) -> None:
    driver, server = keeper("scheduler", proxy.port), spec(metal, "scheduler", node, "s")
    driver.spawn(server)
    changes = sum(method != "GET" for method, _ in proxy.requests)
    metal.ask("PUT", f"nodes/{node}/maintenance", {"reason": "mine"})
    with pytest.raises(DriverError, match="maintenance"):
        driver.rescue(rescued(server))
    metal.ask("DELETE", f"nodes/{node}/maintenance")
    assert sum(method != "GET" for method, _ in proxy.requests) == changes
    driver.destroy(server.uuid, node)
    wait_until_free(metal, node)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize(
    "where", [("PATCH", "/nodes/"), ("PUT", "/states/power"), ("PUT", "/states/provision")]
)
def test_who_goes_on_where_another_died_rescues_once(
    metal: Nodes, proxy: FaultyProxy, node: str, postgres: Postgres, mode: str, where: tuple[str, str]
) -> None:
    first, server = keeper(mode, proxy.port), spec(metal, mode, node, "s")
    first.spawn(server)
    proxy.fail(Fault(503, b"{}", method=where[0], path=where[1]))
    with at_work(lambda: first.rescue(rescued(server))) as failures:
        wait_until(lambda: proxy.struck > 0, "the call that finds nobody", 60)
        first.close()
    assert [type(error) for error in failures] == [DriverClosedError]
    proxy.fail(None)
    heir = keeper(mode, proxy.port)
    ordered = provisions(proxy)
    assert heir.rescue(rescued(server)) == RUNNING
    assert provisions(proxy) == ordered + 1
    assert (state(metal, node)[0], password_on(postgres, node)) == ("rescue", "let me in")
    assert heir.unrescue(server.uuid, server.node_uuid) == RUNNING
    heir.destroy(server.uuid, server.node_uuid)
    wait_until_free(metal, node)


@pytest.mark.parametrize("mode", MODES)
def test_a_late_rescue_of_the_next_server_is_undone(
    metal: Nodes, proxy: FaultyProxy, node: str, mode: str
) -> None:
    """Whoever gave the order may be dead: the owner of the node sees to it."""
    first, heir = keeper(mode, proxy.port), keeper(mode, port_of(metal))
    left, server = spec(metal, mode, node, "left"), spec(metal, mode, node, "next")
    first.spawn(left)
    heir.look()
    with (
        held(proxy, "PUT", "/states/provision", b"rescue_password") as late,
        at_work(lambda: first.rescue(rescued(left))),
    ):
        wait_for_strike(proxy)
        heir.destroy(left.uuid, left.node_uuid)
        wait_until_free(metal, node)
        heir.look()
        heir.spawn(server)
        first.close()
        late.set()
        wait_until(lambda: state(metal, node)[0] == "rescue", "the late order", 60)
    unrescued_by_its_owner(metal, heir, node)
    assert heir.power(server.uuid, server.node_uuid) == RUNNING
    assert metal.show(node)["instance_uuid"] == server.uuid
    heir.destroy(server.uuid, server.node_uuid)
    wait_until_free(metal, node)


@pytest.mark.parametrize("mode", MODES)
def test_a_late_rescue_of_the_same_server_is_undone(
    metal: Nodes, proxy: FaultyProxy, node: str, mode: str
) -> None:
    first, heir = keeper(mode, proxy.port), keeper(mode, port_of(metal))
    server = spec(metal, mode, node, "s")
    first.spawn(server)
    heir.look()
    with (
        held(proxy, "PUT", "/states/provision", b"rescue_password") as late,
        at_work(lambda: first.rescue(rescued(server))),
    ):
        wait_for_strike(proxy)
        assert heir.rescue(rescued(server)) == RUNNING
        heir.look()
        assert state(metal, node)[0] == "rescue", "it is wanted"
        assert heir.unrescue(server.uuid, server.node_uuid) == RUNNING
        first.close()
        late.set()
        wait_until(lambda: state(metal, node)[0] == "rescue", "the late order", 60)
    unrescued_by_its_owner(metal, heir, node)
    heir.destroy(server.uuid, server.node_uuid)
    wait_until_free(metal, node)


def unrescued_by_its_owner(metal: Nodes, owner: Driver, node: str) -> None:
    def is_itself() -> bool:
        owner.look()
        return state(metal, node)[0] == "active" and notes(metal, node) == []

    wait_until(is_itself, "the node to be unrescued", 60)


def test_what_an_operator_rescues_by_hand_is_left_alone(metal: Nodes, node: str) -> None:
    driver, server = keeper("scheduler", port_of(metal)), spec(metal, "scheduler", node, "s")
    driver.spawn(server)
    body = {"target": "rescue", "rescue_password": "mine"}
    metal.ask("PUT", f"nodes/{node}/states/provision", body)
    wait_until(lambda: state(metal, node)[0] == "rescue", "the operator", 60)
    for _ in range(2):
        driver.look()
    assert state(metal, node)[0] == "rescue"
    driver.destroy(server.uuid, node)
    wait_until_free(metal, node)
