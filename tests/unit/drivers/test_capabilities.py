"""What nodes say that they can, and what conductors make of nodes whose agents don't say it yet."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import msgspec
import pytest

from moorage.compute.hosts import node_capabilities
from moorage.drivers import capabilities, parts
from moorage.drivers.capabilities import CAPABILITIES, Capabilities
from moorage.drivers.contract import Driver, DriverError, Node
from moorage.drivers.fake.driver import FakeDriver, FakeSettings
from moorage.drivers.ironic.driver import IronicDriver
from moorage.drivers.ironic.reservations.reserving import ReservingDriver
from moorage.drivers.parts import PARTS, LiveMovable, Movable, Rebuildable

OLD_FAKE = Capabilities(rebuild=True, migrate=True, live_migrate=True, change_interfaces=True)
METAL = Capabilities(binds_ports=True, rebuild=True, change_interfaces=True)
POOL = msgspec.structs.replace(METAL, pool=True)


def test_a_driver_can_what_it_has_parts_for(tmp_path: Path) -> None:
    driver = FakeDriver("host", FakeSettings(), tmp_path)
    (node,) = driver.nodes()
    can = capabilities.of(parts.of(driver), node)
    assert (can.rebuild, can.live_migrate, can.pause, can.suspend) == (True, True, True, True)
    assert (can.console_log, can.remote_console, can.diagnose) == (True, True, True)


@pytest.mark.parametrize("kind", [IronicDriver, ReservingDriver])
def test_bare_metal_does_not_move(kind: type[IronicDriver | ReservingDriver]) -> None:
    metal = kind.__new__(kind)
    more = {"remote_console", "console_log", "crash_dump", "rescue"}
    assert parts.of(metal) == {"rebuild", "change_interfaces", *more}
    node = Node("n", "n", "ironic", {}, binds_ports=True)
    can = capabilities.of(parts.of(metal), node)
    assert can == msgspec.structs.replace(METAL, **dict.fromkeys(more, True))


def test_a_part_that_is_missing_is_named() -> None:
    driver: Driver = IronicDriver.__new__(IronicDriver)
    parts.require(driver, Rebuildable)
    with pytest.raises(DriverError, match="can't live migrate servers") as refused:
        parts.require(driver, LiveMovable)
    assert not refused.value.retry_elsewhere
    with pytest.raises(DriverError, match="can't migrate servers"):
        parts.require(driver, Movable)


def test_each_part_has_its_capability() -> None:
    assert set(PARTS) < set(Capabilities.__struct_fields__)


@pytest.mark.parametrize(
    ("hypervisor_type", "facts", "expected"),
    [
        ("fake", {}, OLD_FAKE),
        ("ironic", {}, METAL),
        ("ironic-pool", {}, POOL),
        ("ironic-pool", {CAPABILITIES: {"migrate": True}}, Capabilities(migrate=True)),
        ("other", {CAPABILITIES: {"pool": True, "of a later release": True}}, Capabilities(pool=True)),
    ],
)
def test_nodes_of_agents_of_any_age_are_understood(
    hypervisor_type: str, facts: Mapping[str, object], expected: Capabilities
) -> None:
    assert node_capabilities.read(hypervisor_type, facts) == expected
    written = msgspec.json.decode(msgspec.json.encode({CAPABILITIES: expected}))
    assert node_capabilities.read(hypervisor_type, written) == expected
