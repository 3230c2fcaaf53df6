"""The contract of drivers, held by both ways to use an Ironic: a simulated one, which is quick."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator

import msgspec
import pytest

from moorage.drivers.contract import Driver, ServerSpec
from moorage.drivers.ironic.driver import IronicDriver
from moorage.drivers.ironic.nodes.partition import Partition
from moorage.drivers.ironic.reservations import pool
from moorage.drivers.ironic.reservations.reserving import ReservingDriver
from moorage.drivers.ironic.settings import IronicSettings
from moorage.drivers.testing import DriverContract, DriverStand
from tests.support import simulated_ironic
from tests.support.simulated_ironic import SimulatedIronic

QUICK = IronicSettings(poll_interval=0.01, ownership_patience=1.0)
IMAGE = {"id": "image", "properties": {"baremetal:image_source": "file:///image"}}


class SimulatedStand(DriverStand):
    consoles = ()
    keeps_logs = False

    def __init__(self, make: Callable[[], IronicDriver | ReservingDriver]) -> None:
        self._make = make
        self.driver: IronicDriver | ReservingDriver = make()

    def spec(self, driver: Driver | None = None) -> ServerSpec:
        node = (driver or self.driver).nodes()[0].uuid
        flavor = {"vcpus": 1, "ram": 64, "disk": 1, "extra_specs": {"resources:CUSTOM_GOLD": "1"}}
        return ServerSpec(str(uuid.uuid4()), "s", "p", "u", node, flavor, IMAGE, work="1-1")

    def rescue_spec(self, spec: ServerSpec) -> ServerSpec:
        return msgspec.structs.replace(spec, admin_password="let me in")

    def restart(self) -> None:
        self.driver.close()
        self.driver = self._make()


@pytest.fixture
def ironic() -> Iterator[SimulatedIronic]:
    with simulated_ironic.running() as made:
        for name in ("one", "two"):
            made.enrol(name)
        yield made


class TestIronic(DriverContract):
    @pytest.fixture
    def stand(self, ironic: SimulatedIronic) -> SimulatedStand:
        def make() -> IronicDriver:
            driver = IronicDriver(ironic.client(), Partition(), QUICK)
            driver.look()
            driver.keep(driver.eligible())
            return driver

        return SimulatedStand(make)


class TestReserving(DriverContract):
    @pytest.fixture
    def stand(self, ironic: SimulatedIronic) -> SimulatedStand:
        def make() -> ReservingDriver:
            driver = ReservingDriver(ironic.client(), Partition(), "host", QUICK)
            driver.look()
            driver.keep({pool.uuid_of("host")})
            return driver

        return SimulatedStand(make)
