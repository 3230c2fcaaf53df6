"""Machines that are held in Ironic for servers which are gone: an audit names them, hosts let go of them."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from moorage.compute.audits.audit import CheckName
from tests.functional.conductor import auditing
from tests.functional.conductor.metal_yard import MetalYard
from tests.support import simulated_ironic
from tests.support.processes import wait_until
from tests.support.simulated_ironic import SimulatedIronic

Make = Callable[[bool], MetalYard]


@pytest.fixture
def ironic() -> Iterator[SimulatedIronic]:
    with simulated_ironic.running() as made:
        yield made


@pytest.fixture
def metal(ironic: SimulatedIronic, database_url: str, tmp_path: Path) -> Iterator[Make]:
    made: list[MetalYard] = []
    options = {"conductor.audit_grace": 0, "conductor.audit_interval": 0}

    def make(reserve: bool) -> MetalYard:
        for number in range(2):
            ironic.enrol(f"a-{number}", "a")
        made.append(MetalYard(database_url, tmp_path / "agents", ironic, reserve=reserve, options=options))
        return made[0]

    yield make
    for one in made:
        one.stop()


@pytest.mark.parametrize("reserve", [True, False], ids=["reserved", "associated"])
def test_a_machine_that_is_held_for_a_deleted_server(
    metal: Make, ironic: SimulatedIronic, reserve: bool
) -> None:
    """As by a call that was delayed until the server was deleted: it is its machine again, though nothing was
    deployed there."""
    cloud = metal(reserve)
    (lives, uuid) = cloud.boot_metal(2)
    cloud.await_status([lives, uuid], "ACTIVE")
    cloud.await_rest()
    (machine,) = ironic.holders(uuid)
    held = copy.deepcopy((ironic.nodes[machine], ironic.reservations.get(uuid)))
    cloud.delete(uuid)
    cloud.await_gone([uuid])
    cloud.await_rest()
    assert auditing.audit(cloud) == ([], {})

    ironic.nodes[machine].update({**held[0], "provision_state": "available", "power_state": "power off"})
    if held[1] is not None:
        ironic.reservations[uuid] = held[1]
    wait_until(lambda: named(cloud) == {uuid}, "hosts to see it", 30)
    auditing.check(cloud, CheckName.MACHINES, f"for server {uuid}, which is deleted")
    assert (ironic.holders(uuid), len(ironic.holders(lives))) == ([], 1)
    assert cloud.server(lives)["status"] == "ACTIVE"


def named(cloud: MetalYard) -> set[str]:
    """Servers that an audit of machines names."""
    found, _ = auditing.audit(cloud, CheckName.MACHINES)
    return {word.rstrip(",") for one in found for word in one["sentence"].split() if word.endswith(",")}
