"""What users can do with a server on a machine, and what they are refused at once."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

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
    ironic.enrol("a-1", "a")
    reserve = request.param == "reservation"
    made = MetalYard(database_url, tmp_path / "agents", ironic, reserve=reserve)
    yield made
    made.stop()


def act(cloud: MetalYard, server: str, action: dict[str, Any]) -> tuple[int, str]:
    answer = cloud.api.simulate_post(f"/v2.1/servers/{server}/action", json=action)
    return answer.status_code, answer.text


def test_it_is_not_moved_but_interrupted_and_ironic_knows_whose_it_is(
    cloud: MetalYard, ironic: SimulatedIronic
) -> None:
    (server,) = cloud.boot_metal()
    cloud.await_status([server], "ACTIVE")
    live = {"host": None, "block_migration": "auto"}
    for action in ({"migrate": None}, {"os-migrateLive": live}, {"resize": {"flavorRef": "1"}}):
        status, said = act(cloud, server, action)
        assert (status, "cannot be moved" in said) == (400, True), said
    shown = cloud.server(server)
    assert (shown["status"], shown["OS-EXT-STS:task_state"]) == ("ACTIVE", None)
    (machine,) = ironic.holders(server)
    info = ironic.nodes[machine]["instance_info"]
    assert info["project_id"] == shown["tenant_id"]
    assert info["user_id"] == shown["user_id"]
    assert act(cloud, server, {"trigger_crash_dump": None})[0] == 202
    wait_until(lambda: ironic.interrupted == [machine], "the interrupt", 30)
    cloud.await_rest()


@pytest.mark.parametrize("cloud", ["scheduler"], indirect=True)
def test_tenants_are_told_no_addresses_and_administrators_are(
    cloud: MetalYard, ironic: SimulatedIronic
) -> None:
    (machine,) = ironic.nodes
    why = "can't fetch http://10.0.0.7:9292/secret"
    ironic.failing[machine] = why
    (server,) = cloud.boot_metal()
    cloud.await_status([server], "ERROR")
    fault = cloud.server(server)["fault"]
    assert "10.0.0.7" not in fault["message"]
    assert machine not in fault["message"]
    assert why in fault["details"], "an administrator asks here"
