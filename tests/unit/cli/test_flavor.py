from __future__ import annotations

import pytest

from moorage.cli.commands import flavor
from moorage.cli.errors import CommandError


def test_a_flavor_becomes_the_query_of_its_server() -> None:
    asked = flavor.query("vcpus=4,ram=8192,disk=40")
    assert asked == "resources=VCPU:4,MEMORY_MB:8192,DISK_GB:40"


def test_extra_specs_add_resources_and_traits() -> None:
    asked = flavor.query("vcpus=1, resources:CUSTOM_GPU=2, trait:HW_A=required, trait:HW_B=forbidden")
    assert asked == "resources=VCPU:1,CUSTOM_GPU:2&required=HW_A,!HW_B"


@pytest.mark.parametrize("order", ["vcpus=4,resources:VCPU=0,ram=1", "resources:VCPU=0,vcpus=4,ram=1"])
def test_an_extra_spec_overrides_the_flavors_own_and_zero_asks_for_nothing(order: str) -> None:
    assert flavor.query(order) == "resources=MEMORY_MB:1"


@pytest.mark.parametrize("bad", ["cores=4", "vcpus=many", "vcpus=-1", "trait:HW_A=maybe", "4"])
def test_what_makes_no_sense_is_refused_with_a_sentence(bad: str) -> None:
    with pytest.raises(CommandError):
        flavor.query(bad)
