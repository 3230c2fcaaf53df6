"""What a host may do before it was told what it owns."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from moorage.core import uuids
from moorage.drivers.contract import NotOursError
from moorage.drivers.ironic.nodes.partition import Partition
from moorage.drivers.ironic.reservations.choosing import ChoosingDriver
from moorage.drivers.ironic.reservations.reserving import ReservingDriver
from moorage.drivers.ironic.settings import IronicSettings
from tests.support import simulated_ironic
from tests.support.simulated_ironic import SimulatedIronic


@pytest.fixture
def ironic() -> Iterator[SimulatedIronic]:
    with simulated_ironic.running() as made:
        yield made


@pytest.mark.parametrize("kind", [ChoosingDriver, ReservingDriver])
def test_a_server_that_is_to_be_ended_is_not_taken_for_another_hosts(
    ironic: SimulatedIronic, kind: type[ReservingDriver]
) -> None:
    """Who restarts sees machines before conductors say whose they are."""
    server = uuids.generate()
    machine = ironic.enrol("a-1", "a", provision_state="active", instance_uuid=server)
    settings = IronicSettings(poll_interval=0.05, retries=2, ownership_patience=0.1)
    driver = kind(ironic.client(), Partition("a"), "metal-1", settings)
    driver.look()
    with pytest.raises(NotOursError):
        driver.destroy(server, machine)
    assert ironic.holders(server) == [machine]
    driver.close()
