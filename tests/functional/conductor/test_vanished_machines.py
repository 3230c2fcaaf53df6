"""A machine that is deleted in Ironic under its server: what becomes of server, provider and claims."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa

from moorage.db.tables.backlog import placement_backlog
from moorage.db.tables.compute import nodes
from moorage.placement.client.contract import ConsumerClaim
from tests.functional.conductor.metal_yard import MetalYard
from tests.support import simulated_ironic
from tests.support.processes import wait_until
from tests.support.simulated_ironic import SimulatedIronic


@pytest.fixture
def ironic() -> Iterator[SimulatedIronic]:
    with simulated_ironic.running() as made:
        yield made


@pytest.fixture(params=["scheduler", "reservation"])
def cloud(
    ironic: SimulatedIronic, database_url: str, tmp_path: Path, request: pytest.FixtureRequest
) -> Iterator[MetalYard]:
    for name in ("a-1", "a-2"):
        ironic.enrol(name, "a")
    reserve = request.param == "reservation"
    made = MetalYard(
        database_url, tmp_path / "agents", ironic, reserve=reserve, full_listing_interval=0, retries=2
    )
    yield made
    made.stop()


def act(cloud: MetalYard, server: str, **action: Any) -> tuple[int, str]:
    answer = cloud.api.simulate_post(f"/v2.1/servers/{server}/action", json=action)
    return answer.status_code, answer.text


def known(cloud: MetalYard) -> set[str]:
    with cloud.placement.database.read() as connection:
        return set(connection.execute(sa.select(nodes.c.uuid)).scalars())


def provider_exists(cloud: MetalYard, uuid: str) -> bool:
    return bool(cloud.client.tree(uuid))


def test_its_server_is_in_error_can_not_be_used_and_goes_without_a_trace(
    cloud: MetalYard, ironic: SimulatedIronic
) -> None:
    (server,) = cloud.boot_metal()
    cloud.await_status([server], "ACTIVE")
    (machine,) = ironic.holders(server)
    ironic.vanish(machine)
    cloud.await_status([server], "ERROR")
    fault = cloud.server(server)["fault"]
    assert fault["message"] == "The machine that the server was on does not exist any more."
    assert "Ironic has no machine any more for node" in fault["details"]
    for action in ({"reboot": {"type": "HARD"}}, {"os-stop": None}, {"rebuild": {"imageRef": cloud.image()}}):
        status, said = act(cloud, server, **action)
        assert (status, "can only be deleted" in said) == (409, True), said
    assert act(cloud, server, **{"os-getConsoleOutput": {}})[0] in (409, 501)
    cloud.delete(server)
    cloud.await_gone([server])
    assert cloud.holders() == set()
    wait_until(lambda: machine not in known(cloud), "the record of the node to go", 30)
    wait_until(lambda: not provider_exists(cloud, machine), "the provider to go", 30)


def test_a_machine_that_comes_back_with_its_server_is_used_again(
    cloud: MetalYard, ironic: SimulatedIronic
) -> None:
    """An agent that asks a wrong Ironic for a while ends no server."""
    (server,) = cloud.boot_metal()
    cloud.await_status([server], "ACTIVE")
    (machine,) = ironic.holders(server)
    record, reservation = ironic.nodes[machine], ironic.reservations.get(server)
    ironic.vanish(machine)
    cloud.await_status([server], "ERROR")
    ironic.nodes[machine] = record
    if reservation is not None:
        ironic.reservations[server] = reservation
    cloud.await_status([server], "ACTIVE")
    assert act(cloud, server, reboot={"type": "HARD"})[0] == 202
    cloud.await_rest()
    cloud.await_status([server], "ACTIVE")
    cloud.delete(server)
    cloud.await_gone([server])


@pytest.mark.parametrize("cloud", ["scheduler"], indirect=True)
def test_a_provider_that_can_not_be_removed_is_tried_again(cloud: MetalYard, ironic: SimulatedIronic) -> None:
    machine = next(uuid for uuid, node in ironic.nodes.items() if node["name"] == "a-1")
    held = {machine: {"CUSTOM_GOLD": 1}}
    squatter = ConsumerClaim("6f0c2f2e-6c5f-4f0a-9d51-0a4b7f1c2d3e", held, "p", "u")
    assert cloud.client.claim([squatter]) == [None]
    ironic.vanish(machine)
    wait_until(lambda: machine not in known(cloud), "the record of the node to go", 30)

    def tried() -> bool:
        with cloud.placement.database.read() as connection:
            return any(connection.execute(sa.select(placement_backlog.c.tries)).scalars())

    wait_until(tried, "a try that is refused", 30)
    assert provider_exists(cloud, machine)
    cloud.client.release([squatter.consumer_uuid])
    wait_until(lambda: not provider_exists(cloud, machine), "the provider to go", 60)
