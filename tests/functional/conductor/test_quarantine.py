"""Machines that fail are kept out until somebody has looked at them; what befell them is written down."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from moorage.compute.hosts import machine_failures
from moorage.compute.hosts.machine_failures import FailureRecord
from moorage.drivers.ironic.reservations import pool
from moorage.drivers.machine_failures import MachineFailure, QuarantinePolicy
from tests.functional.conductor.metal_yard import MetalYard
from tests.support import simulated_ironic
from tests.support.processes import wait_until
from tests.support.simulated_ironic import SimulatedIronic

BROKEN = "the disk does not answer"


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
        database_url,
        tmp_path / "agents",
        ironic,
        reserve=reserve,
        full_listing_interval=0,
        quarantine_after=2,
    )
    yield made
    made.stop()


def named(ironic: SimulatedIronic, name: str) -> str:
    return next(uuid for uuid, node in ironic.nodes.items() if node["name"] == name)


def history(cloud: MetalYard) -> list[FailureRecord]:
    with cloud.placement.database.read() as connection:
        return machine_failures.history(connection)


def quarantined(cloud: MetalYard) -> set[str]:
    with cloud.placement.database.read() as connection:
        return set(machine_failures.quarantined(connection))


def deploy_until_quarantined(cloud: MetalYard, ironic: SimulatedIronic, broken: str) -> None:
    ironic.failing[broken] = BROKEN
    other = next(uuid for uuid in ironic.nodes if uuid != broken)
    ironic.nodes[other]["maintenance"] = True  # a machine that failed is tried only if there is no other
    for _ in range(2):
        if quarantined(cloud):  # both hosts have tried it for the first server
            break
        await_free(cloud, ironic, {broken})
        (server,) = cloud.boot_metal()
        cloud.await_status([server], "ERROR")
        cloud.delete(server)
        cloud.await_gone([server])
    wait_until(lambda: quarantined(cloud) == {broken}, "the quarantine", 30)
    await_free(cloud, ironic, set())  # a pool only counts: one that is free could still be the broken one
    ironic.nodes[other]["maintenance"] = False
    await_free(cloud, ironic, {other})


def await_free(cloud: MetalYard, ironic: SimulatedIronic, machines: set[str]) -> None:
    """Until Placement knows that these are free, and no others."""
    if cloud.reserve:
        for host in ("fake-1", "fake-2"):
            cloud.await_offer(pool.uuid_of(host), len(machines))
    else:
        for machine in ironic.nodes:
            cloud.await_offer(machine, int(machine in machines))


def test_a_machine_that_fails_too_often_is_kept_out_until_it_is_released(
    cloud: MetalYard, ironic: SimulatedIronic
) -> None:
    broken = named(ironic, "a-1")
    deploy_until_quarantined(cloud, ironic, broken)
    told = history(cloud)
    assert {(failure.machine_uuid, failure.step) for failure in told} == {(broken, "deploy")}
    assert all(BROKEN in failure.reason for failure in told)
    later = set()
    for _ in range(2):
        await_free(cloud, ironic, {named(ironic, "a-2")})
        (server,) = cloud.boot_metal()
        cloud.await_status([server], "ACTIVE")
        assert ironic.holders(server) == [named(ironic, "a-2")]
        later.add(server)
        cloud.delete(server)
        cloud.await_gone([server])
    assert not later & {failure.server_uuid for failure in history(cloud)}, "nothing came to it"
    del ironic.failing[broken]
    cloud.placement.database.transact(lambda connection: machine_failures.release(connection, [broken]))
    await_free(cloud, ironic, set(ironic.nodes))
    servers = cloud.boot_metal(2)
    cloud.await_status(servers, "ACTIVE")
    assert {failure.uuid for failure in told} <= {failure.uuid for failure in history(cloud)}
    assert all(failure.forgiven_at for failure in history(cloud)), "its history stays"


@pytest.mark.parametrize("cloud", ["scheduler"], indirect=True)
def test_clients_see_it_and_an_operator_ends_it_in_ironic(cloud: MetalYard, ironic: SimulatedIronic) -> None:
    broken = named(ironic, "a-1")
    deploy_until_quarantined(cloud, ironic, broken)
    shown = cloud.get(f"/v2.1/os-hypervisors/{broken}")["hypervisor"]
    assert shown["status"] == "disabled"
    assert "in quarantine: 2 failures in 24 h" in shown["service"]["disabled_reason"]
    assert BROKEN in shown["service"]["disabled_reason"]
    ironic.nodes[broken]["provision_state"] = "manageable"
    wait_until(lambda: quarantined(cloud) == set(), "the release", 30)
    assert cloud.get(f"/v2.1/os-hypervisors/{broken}")["hypervisor"]["status"] == "enabled"


def test_a_cleaning_that_fails_is_told_once_with_ironics_reason(
    cloud: MetalYard, ironic: SimulatedIronic
) -> None:
    (server,) = cloud.boot_metal()
    cloud.await_status([server], "ACTIVE")
    (machine,) = ironic.holders(server)
    ironic.unclean[machine] = "no ramdisk came up"
    cloud.delete(server)
    cloud.await_gone([server])
    wait_until(lambda: bool(history(cloud)), "the failure to be told", 30)
    told = [(one.machine_uuid, one.step, one.reason, one.server_uuid) for one in history(cloud)]
    assert told == [(machine, "clean", "no ramdisk came up", "")]


def failure(machine: str, number: int, server: str) -> MachineFailure:
    return MachineFailure(f"failure-{number}", machine, "deploy", BROKEN, server)


@pytest.mark.parametrize("cloud", ["scheduler"], indirect=True)
def test_an_image_that_runs_nowhere_keeps_no_machine_out(cloud: MetalYard, ironic: SimulatedIronic) -> None:
    first, second = ironic.nodes
    for machine in (first, second):
        ironic.failing[machine] = "the image is no image"
    server, other = cloud.boot_metal(2)
    cloud.await_status([server, other], "ERROR")
    wait_until(lambda: {one.machine_uuid for one in history(cloud)} == {first, second}, "failures", 30)
    policy = QuarantinePolicy(2, 3600.0)

    def tell(*told: Any) -> None:
        cloud.placement.database.transact(
            lambda connection: machine_failures.record(connection, "host", told, policy)
        )

    tell(*(failure(first, number, server) for number in range(5)))
    assert quarantined(cloud) == set()
    ironic.failing.clear()
    await_free(cloud, ironic, {first, second})
    (good,) = cloud.boot_metal()
    cloud.await_status([good], "ACTIVE")
    tell(failure(first, 6, server))
    assert quarantined(cloud) == {first}, "the same image runs elsewhere"
