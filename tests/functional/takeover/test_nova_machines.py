"""A server of Nova's on a machine of Ironic's stays when its cloud is taken over, and is ours to manage."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from moorage.cli.manage.manage import commands
from tests.functional.conductor.metal_yard import MetalYard
from tests.lab.nova.rows import NovaRows, uuid
from tests.support import moorage, simulated_ironic
from tests.support.postgres import Postgres
from tests.support.processes import wait_until
from tests.support.simulated_ironic import SimulatedIronic

HOST = "fake-1"
SERVER = uuid(1)


@pytest.fixture
def ironic() -> Iterator[SimulatedIronic]:
    with simulated_ironic.running() as made:
        yield made


@pytest.fixture
def machine(ironic: SimulatedIronic) -> str:
    """As Nova's driver leaves a node that it has deployed."""
    nova_says = {"image_source": "image", "display_name": "server-1", "nova_host_id": HOST}
    return ironic.enrol(
        "a-1",
        "a",
        instance_uuid=SERVER,
        instance_info=nova_says,
        provision_state="active",
        power_state="power on",
    )


@pytest.fixture
def cloud(
    postgres: Postgres, postgres_url: str, ironic: SimulatedIronic, machine: str, tmp_path: Path
) -> Iterator[MetalYard]:
    nova = NovaRows.made(postgres, "metal", (HOST,))
    nova.cells[0].execute(
        "UPDATE compute_nodes SET uuid = :machine, hypervisor_hostname = :machine, "
        "hypervisor_type = 'ironic'",
        machine=machine,
    )
    nova.add_server(1, node=machine)
    config = moorage.configure(tmp_path / "moorage", postgres_url)
    words = ["--config-file", str(config), "compute", "import", "--api-database", nova.api.url]
    ran = CliRunner().invoke(commands, words)
    assert ran.exit_code == 0, ran.output
    nova.close()
    made = MetalYard(postgres_url, tmp_path / "agents", ironic, reserve=False)
    yield made
    made.stop()


def _act(cloud: MetalYard, **action: Any) -> None:
    answer = cloud.api.simulate_post(f"/v2.1/servers/{SERVER}/action", json=action)
    assert answer.status_code == 202, answer.text


def test_it_stays_and_is_stopped_started_and_deleted(
    cloud: MetalYard, ironic: SimulatedIronic, machine: str
) -> None:
    cloud.await_status([SERVER], "ACTIVE")
    shown = cloud.server(SERVER)
    assert (shown["OS-EXT-SRV-ATTR:host"], shown["OS-EXT-SRV-ATTR:hypervisor_hostname"]) == (HOST, machine)
    _act(cloud, **{"os-stop": None})
    cloud.await_status([SERVER], "SHUTOFF")
    assert ironic.nodes[machine]["power_state"] == "power off"
    _act(cloud, **{"os-start": None})
    cloud.await_status([SERVER], "ACTIVE")
    assert ironic.holders(SERVER) == [machine]
    cloud.delete(SERVER)
    cloud.await_gone([SERVER])
    assert ironic.nodes[machine]["instance_uuid"] is None
    wait_until(lambda: ironic.nodes[machine]["provision_state"] == "available", "the machine to be free", 30)
