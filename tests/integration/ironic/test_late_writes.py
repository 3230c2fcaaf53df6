"""What was ordered before a driver froze reaches Ironic when all has changed: it does no harm there."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterator

import msgspec
import pytest

from moorage.drivers.contract import RUNNING, DriverError, NotOursError, ServerSpec
from tests.integration.ironic.late import (
    MODES,
    SETTINGS,
    Driver,
    at_work,
    empty,
    held,
    keeper,
    rebuilt,
    secret_on,
    spec,
    wait_for_strike,
    wait_until_free,
)
from tests.integration.ironic.lines import port_of, provisions
from tests.lab.ironic import service as ironic
from tests.lab.ironic.nodes import Nodes
from tests.support.faulty_proxy import FaultyProxy
from tests.support.postgres import Postgres
from tests.support.processes import wait_until


@pytest.fixture(scope="module")
def metal(tmp_path_factory: pytest.TempPathFactory, postgres: Postgres) -> Iterator[Nodes]:
    """A single node: whoever comes next gets the one that was just left."""
    with ironic.running(tmp_path_factory.mktemp("ironic"), postgres, ("a",), deploy_delay=0) as nodes:
        nodes.enrol("a-1", "a")
        yield nodes
        postgres.drop_database("ironic")


@pytest.fixture
def node(metal: Nodes) -> Iterator[str]:
    (found,) = metal.all()
    yield found
    empty(metal, found)


@pytest.mark.parametrize("mode", MODES)
def test_a_spawn_that_was_overtaken_by_a_destroy_orders_nothing(
    metal: Nodes, proxy: FaultyProxy, node: str, mode: str
) -> None:
    driver, server = keeper(mode, proxy.port), spec(metal, mode, node, "overtaken")
    with held(proxy, "GET", "/validate") as late, at_work(lambda: driver.spawn(server)) as failures:
        wait_for_strike(proxy)
        driver.destroy(server.uuid, server.node_uuid)
        late.set()
    assert [type(error) for error in failures] == [DriverError]
    assert provisions(proxy) == 0
    wait_until_free(metal, node)
    assert metal.ask("GET", "allocations")["allocations"] == []


@pytest.mark.parametrize("mode", MODES)
def test_a_late_deployment_is_the_one_that_the_node_is_set_aside_for(
    metal: Nodes, proxy: FaultyProxy, node: str, postgres: Postgres, mode: str
) -> None:
    """It starts what the next tenant wants, a little early, and brings nothing along."""
    first, heir = keeper(mode, proxy.port), keeper(mode, proxy.port)
    left, server = spec(metal, mode, node, "left"), spec(metal, mode, node, "next")
    with (
        held(proxy, "PUT", "/states/provision") as late,
        at_work(lambda: first.spawn(left)),
    ):
        wait_for_strike(proxy)
        heir.destroy(left.uuid, left.node_uuid)
        with held(proxy, "GET", "/validate") as validated, at_work(lambda: heir.spawn(server)) as failures:
            wait_for_strike(proxy)
            late.set()
            wait_until(lambda: metal.show(node)["provision_state"] == "active", "the late order", 60)
            validated.set()
    assert failures == []
    assert (metal.show(node)["instance_uuid"], secret_on(postgres, node)) == (
        server.uuid,
        "the secret of next",
    )
    heir.destroy(server.uuid, server.node_uuid)
    wait_until_free(metal, node)


@pytest.mark.parametrize("mode", MODES)
def test_a_late_tear_down_does_not_reach_the_next_server(
    metal: Nodes, proxy: FaultyProxy, node: str, mode: str
) -> None:
    first, heir = keeper(mode, proxy.port), keeper(mode, port_of(metal))
    left, server = spec(metal, mode, node, "left"), spec(metal, mode, node, "next")
    assert first.spawn(left) == RUNNING
    heir.look()
    with (
        held(proxy, "PUT", "/states/provision", b"deleted") as late,
        at_work(lambda: first.destroy(left.uuid, left.node_uuid)),
    ):
        wait_for_strike(proxy)
        heir.destroy(left.uuid, left.node_uuid)
        wait_until_free(metal, node)
        heir.look()
        assert heir.spawn(server) == RUNNING
        late.set()
    shown = metal.show(node)
    assert (shown["provision_state"], shown["instance_uuid"]) == ("active", server.uuid)
    heir.destroy(server.uuid, server.node_uuid)
    wait_until_free(metal, node)


@pytest.mark.parametrize("mode", MODES)
def test_a_node_that_is_let_go_late_stays_with_the_next_server(
    metal: Nodes, proxy: FaultyProxy, node: str, mode: str
) -> None:
    first, heir = keeper(mode, proxy.port), keeper(mode, port_of(metal))
    left, server = spec(metal, mode, node, "left"), spec(metal, mode, node, "next")
    with held(proxy, "GET", "/validate") as validated, at_work(lambda: first.spawn(left)):
        wait_for_strike(proxy)
        with held(proxy, "PATCH", "/nodes/", b"remove") as late:
            validated.set()
            with at_work(lambda: first.destroy(left.uuid, left.node_uuid)):
                wait_for_strike(proxy)
                heir.look()
                heir.destroy(left.uuid, left.node_uuid)
                heir.look()
                assert heir.spawn(server) == RUNNING
                late.set()
    shown = metal.show(node)
    assert (shown["provision_state"], shown["instance_uuid"]) == ("active", server.uuid)
    heir.destroy(server.uuid, server.node_uuid)
    wait_until_free(metal, node)


def test_a_late_rebuild_reaches_neither_the_next_server_nor_the_same_one(
    metal: Nodes, proxy: FaultyProxy, node: str, postgres: Postgres
) -> None:
    first, heir = keeper("scheduler", proxy.port), keeper("scheduler", port_of(metal))
    server = spec(metal, "scheduler", node, "first")
    assert first.spawn(server) == RUNNING
    wanted = rebuilt(server, "rebuilt", "2")
    with (
        held(proxy, "PUT", "/states/provision", b"rebuild") as late,
        at_work(lambda: first.rebuild(wanted)),
    ):
        wait_for_strike(proxy)
        assert heir.rebuild(wanted) == RUNNING
        done = metal.show(node)["provision_updated_at"]
        late.set()
    assert metal.show(node)["provision_updated_at"] == done, (
        "what was written to the disk since is still there"
    )
    assert secret_on(postgres, node) == "the secret of rebuilt"
    heir.destroy(server.uuid, node)
    wait_until_free(metal, node)


def refused_rebuild(server: ServerSpec, source: str) -> ServerSpec:
    """To an image of which Ironic can't tell the type, which it finds out only when it is ordered. It adds
    nothing that would have to be taken away again: Ironic refuses that on another server's node anyway."""
    image = {"id": "image-2", "properties": {"baremetal:image_source": source}}
    return msgspec.structs.replace(server, image=image, work="2")


@pytest.mark.parametrize("mode", MODES)
def test_what_a_node_said_before_a_rebuild_does_not_reach_the_next_server(
    metal: Nodes, proxy: FaultyProxy, node: str, postgres: Postgres, mode: str
) -> None:
    """The frozen driver was about to write it down again, since Ironic had refused the rebuild."""
    first, heir = keeper(mode, proxy.port), keeper(mode, port_of(metal))
    left, server = spec(metal, mode, node, "left"), spec(metal, mode, node, "next")
    assert first.spawn(left) == RUNNING
    wanted = refused_rebuild(left, metal.image("other"))
    with (
        held(proxy, "PATCH", "/nodes/", b"protected_reason") as late,
        at_work(lambda: first.rebuild(wanted)) as failures,
    ):
        wait_for_strike(proxy)
        heir.look()
        heir.destroy(left.uuid, left.node_uuid)
        wait_until_free(metal, node)
        heir.look()
        assert heir.spawn(server) == RUNNING
        before = metal.show(node)
        late.set()
    assert [type(error) for error in failures] == [DriverError]
    after = metal.show(node)
    for field in ("instance_uuid", "instance_info", "protected", "protected_reason", "provision_state"):
        assert after[field] == before[field]
    assert secret_on(postgres, node) == "the secret of next"
    heir.destroy(server.uuid, server.node_uuid)
    wait_until_free(metal, node)


def test_what_a_node_said_before_a_rebuild_does_not_reach_the_next_rebuild(
    metal: Nodes, proxy: FaultyProxy, node: str, postgres: Postgres
) -> None:
    first, heir = keeper("scheduler", proxy.port), keeper("scheduler", port_of(metal))
    server = spec(metal, "scheduler", node, "first")
    assert first.spawn(server) == RUNNING
    wanted = refused_rebuild(server, metal.image("other"))
    with (
        held(proxy, "PATCH", "/nodes/", b"protected_reason") as late,
        at_work(lambda: first.rebuild(wanted)) as failures,
    ):
        wait_for_strike(proxy)
        assert heir.rebuild(rebuilt(server, "rebuilt", "3")) == RUNNING
        before = metal.show(node)
        first.interrupt(server.uuid)  # it would try the rebuild again
        late.set()
    assert [type(error) for error in failures] == [DriverError]
    after = metal.show(node)
    assert after["instance_info"] == before["instance_info"]
    assert after["provision_updated_at"] == before["provision_updated_at"]
    assert secret_on(postgres, node) == "the secret of rebuilt"
    heir.destroy(server.uuid, node)
    wait_until_free(metal, node)


@pytest.mark.parametrize("mode", MODES)
def test_what_is_deployed_for_nobody_is_swept(metal: Nodes, proxy: FaultyProxy, node: str, mode: str) -> None:
    """The order comes when the server has left the node: fake hardware takes it all the same."""
    first, heir = keeper(mode, proxy.port), keeper(mode, port_of(metal))
    left = spec(metal, mode, node, "left")
    with held(proxy, "PUT", "/states/provision") as late, at_work(lambda: first.spawn(left)):
        wait_for_strike(proxy)
        heir.look()
        heir.destroy(left.uuid, left.node_uuid)
        late.set()
        wait_until(lambda: metal.show(node)["provision_state"] == "active", "the late order", 60)
    assert metal.show(node)["instance_uuid"] is None
    sweep(heir, left.uuid)
    wait_until_free(metal, node)


@pytest.mark.parametrize("mode", MODES)
def test_what_is_set_aside_for_nobody_is_swept(
    metal: Nodes, proxy: FaultyProxy, node: str, mode: str
) -> None:
    first, heir = keeper(mode, proxy.port), keeper(mode, port_of(metal))
    left = spec(metal, mode, node, "left")
    with held(proxy, "PATCH", "/nodes/") as late, at_work(lambda: first.spawn(left)):
        wait_for_strike(proxy)
        heir.look()
        heir.destroy(left.uuid, left.node_uuid)
        first.close()
        late.set()
        wait_until(lambda: metal.show(node)["instance_uuid"] == left.uuid, "the late association", 60)
    sweep(heir, left.uuid)
    wait_until_free(metal, node)
    assert metal.show(node)["instance_info"] == {}


def test_a_machine_that_is_reserved_for_nobody_is_swept(metal: Nodes, proxy: FaultyProxy, node: str) -> None:
    first, heir = keeper("reservation", proxy.port), keeper("reservation", port_of(metal))
    left = spec(metal, "reservation", node, "left")
    with held(proxy, "POST", "/allocations") as late, at_work(lambda: first.spawn(left)):
        wait_for_strike(proxy)
        heir.destroy(left.uuid, left.node_uuid)
        first.close()
        late.set()
        wait_until(lambda: metal.show(node)["instance_uuid"] == left.uuid, "the late reservation", 60)
    sweep(heir, left.uuid)
    wait_until_free(metal, node)
    assert metal.ask("GET", "allocations")["allocations"] == []


@pytest.mark.parametrize("mode", MODES)
def test_what_an_operator_deploys_is_left_alone(metal: Nodes, node: str, mode: str) -> None:
    """On a node that has our mark from before: with an image, for somebody, or protected."""
    driver, left = keeper(mode, port_of(metal)), spec(metal, mode, node, "left")
    driver.spawn(left)
    driver.destroy(left.uuid, left.node_uuid)
    wait_until_free(metal, node)
    assert metal.show(node)["extra"]["moorage"]["server"] == left.uuid
    others = {"image_source": metal.image("own"), "image_type": "whole-disk"}
    somebody = spec(metal, mode, node, "somebody").uuid
    for wanted in ({"instance_info": others}, {"instance_uuid": somebody}):
        metal.change(node, **wanted)
        metal.provision(node, "active", "active")
        driver.look()
        assert sweep(driver, left.uuid, somebody) == 0
        assert metal.show(node)["provision_state"] == "active"
        metal.provision(node, "deleted", "available")
    metal.provision(node, "active", "active")
    metal.change(node, protected=True, protected_reason="mine")
    assert sweep(driver, left.uuid) == 0
    metal.change(node, protected=False)
    assert sweep(driver, left.uuid) == 1
    wait_until_free(metal, node)


def sweep(driver: Driver, *servers: str) -> int:
    """As if conductors had said that these servers are not there; how much there was to do."""
    driver.look()
    return sum(driver.sweep(one) for one in driver.held() if one.server_uuid in servers)


@pytest.mark.parametrize("mode", MODES)
def test_what_was_to_be_swept_and_has_another_server_is_left_alone(
    metal: Nodes, node: str, mode: str
) -> None:
    driver, left = keeper(mode, port_of(metal)), spec(metal, mode, node, "left")
    server = spec(metal, mode, node, "next")
    driver.spawn(left)
    driver.look()
    (doubtful,) = driver.held()
    driver.destroy(left.uuid, left.node_uuid)
    wait_until_free(metal, node)
    driver.look()
    driver.spawn(server)
    assert not driver.sweep(doubtful)
    assert metal.show(node)["instance_uuid"] == server.uuid
    driver.destroy(server.uuid, server.node_uuid)
    wait_until_free(metal, node)


def test_a_deployment_of_an_earlier_attempt_is_not_taken_for_ones_own(
    metal: Nodes, node: str, postgres: Postgres
) -> None:
    """It is torn down; who asks again before the node is clean is sent elsewhere, and afterwards gets it."""
    driver, first = keeper("scheduler", port_of(metal)), spec(metal, "scheduler", node, "first")
    second = rebuilt(first, "second", "1-2")
    driver.spawn(first)

    def spawned() -> bool:
        try:
            return driver.spawn(second) == RUNNING
        except DriverError as error:
            if not error.retry_elsewhere or "not available" not in str(error):
                raise
            return False

    wait_until(spawned, "the second attempt's own deployment", 60)
    assert secret_on(postgres, node) == "the secret of second"
    driver.destroy(second.uuid, node)
    wait_until_free(metal, node)


def test_an_operators_protection_is_respected(metal: Nodes, node: str) -> None:
    driver, server = keeper("scheduler", port_of(metal)), spec(metal, "scheduler", node, "kept")
    driver.spawn(server)
    assert server.uuid in metal.show(node)["protected_reason"]
    metal.change(node, protected=True, protected_reason="do not touch")
    with pytest.raises(DriverError, match="do not touch"):
        driver.destroy(server.uuid, node)
    assert metal.show(node)["provision_state"] == "active"
    metal.change(node, protected=False)
    driver.destroy(server.uuid, node)
    wait_until_free(metal, node)


@pytest.mark.parametrize("mode", MODES)
def test_who_does_not_know_any_more_what_it_owns_changes_nothing(
    metal: Nodes, proxy: FaultyProxy, node: str, mode: str
) -> None:
    """As after a stop, until it is told."""
    driver = keeper(mode, proxy.port, dataclasses.replace(SETTINGS, ownership_patience=0.1))
    server, other = spec(metal, mode, node, "here"), spec(metal, mode, node, "not here")
    driver.spawn(server)
    changes = sum(method != "GET" for method, _ in proxy.requests)
    driver.extend_lease(0.0)
    for call in (
        lambda: driver.spawn(other),
        lambda: driver.rebuild(rebuilt(server, "here", "2")),
        lambda: driver.reboot(server.uuid, server.node_uuid, hard=True),
        lambda: driver.destroy(server.uuid, server.node_uuid),
    ):
        with pytest.raises(NotOursError):
            call()
    assert sum(method != "GET" for method, _ in proxy.requests) == changes
    driver.extend_lease(math.inf)
    driver.destroy(server.uuid, server.node_uuid)
    wait_until_free(metal, node)
