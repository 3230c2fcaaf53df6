"""What a server asks of a machine, in the words of its flavor, its image and its user."""

from __future__ import annotations

from typing import Any

import pytest

from moorage.drivers.contract import DriverError, ServerSpec
from moorage.drivers.ironic.api.record import NodeRecord
from moorage.drivers.ironic.reservations.machine_requirements import MachineRequirements

NOTHING_ELSE = {"resources:VCPU": "0", "resources:MEMORY_MB": "0", "resources:DISK_GB": "0"}


def wish(
    specs: dict[str, str], properties: dict[str, Any] | None = None, **hints: Any
) -> MachineRequirements:
    image = {"properties": properties or {}}
    spec = ServerSpec(
        "s", "s", "p", "u", "pool", {"extra_specs": {**NOTHING_ELSE, **specs}}, image, hints=hints
    )
    return MachineRequirements.of(spec, "CUSTOM_SEAT")


def record(**more: Any) -> NodeRecord:
    said = {"resource_class": "gold", "provision_state": "available", "power_state": "power off", **more}
    return NodeRecord("uuid-1", name="rack-1", **said)


@pytest.mark.parametrize(
    "name", ["resources:CUSTOM_GOLD", "resources1:CUSTOM_GOLD", "resources_M:CUSTOM_GOLD"]
)
def test_one_class_of_machines_is_asked_for(name: str) -> None:
    assert wish({name: "1", "resources:CUSTOM_SEAT": "1"}).resource_class == "CUSTOM_GOLD"


@pytest.mark.parametrize(
    "specs", [{}, {"resources:CUSTOM_GOLD": "0"}, {"resources:CUSTOM_A": "1", "resources:CUSTOM_B": "1"}]
)
def test_none_or_several_make_no_sense(specs: dict[str, str]) -> None:
    with pytest.raises(DriverError, match="one resource class"):
        wish(specs)


def test_a_machine_has_to_be_free_and_of_the_class() -> None:
    wanted = wish({"resources:CUSTOM_GOLD": "1"})
    assert wanted.fits(record())
    for more in ({"resource_class": "silver"}, {"maintenance": True}, {"instance_uuid": "other"}):
        assert not wanted.fits(record(**more))


def test_traits_are_those_of_the_flavor_and_of_the_image() -> None:
    specs = {"resources:CUSTOM_GOLD": "1", "trait:CUSTOM_A": "required", "trait1:CUSTOM_C": "forbidden"}
    wanted = wish(specs, {"trait:CUSTOM_B": "required"})
    assert wanted.fits(record(traits=["CUSTOM_A", "CUSTOM_B"]))
    assert not wanted.fits(record(traits=["CUSTOM_A"]))
    assert not wanted.fits(record(traits=["CUSTOM_A", "CUSTOM_B", "CUSTOM_C"]))


@pytest.mark.parametrize(
    ("hint", "fits"),
    [("uuid-1", True), ("rack-1", True), (["x", "rack-1"], True), ("x", False), (["x"], False)],
)
def test_a_user_may_name_machines(hint: Any, fits: bool) -> None:
    assert wish({"resources:CUSTOM_GOLD": "1"}, candidate_node=hint).fits(record()) is fits


@pytest.mark.parametrize(
    ("more", "words"),
    [
        ({"instance_uuid": "other"}, "it is used already"),
        ({"quarantined": True}, "quarantine"),
        ({"resource_class": "silver"}, "not of the class CUSTOM_GOLD"),
        ({}, "does not have CUSTOM_A"),
        ({"traits": ["CUSTOM_A", "CUSTOM_B"]}, "it has CUSTOM_B"),
        ({"traits": ["CUSTOM_A"]}, None),
    ],
)
def test_what_there_is_against_a_machine_is_told(more: dict[str, Any], words: str | None) -> None:
    asked = {"resources:CUSTOM_GOLD": "1", "trait:CUSTOM_A": "required", "trait:CUSTOM_B": "forbidden"}
    said = wish(asked).objection(record(**more))
    assert said is None if words is None else words in str(said)
