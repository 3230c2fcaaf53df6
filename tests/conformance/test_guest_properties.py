"""All extra specs and image properties that the reference knows: flavors may say them, and the page says what
they do to a guest of ours.
"""

from __future__ import annotations

import json
import re
import subprocess
from functools import cache
from pathlib import Path

import pytest

from moorage.compute.flavors import extra_specs
from tests.lab.nova.pristine import NOVA

PAGE = Path(__file__).resolve().parents[2] / "docs" / "compute" / "libvirt.md"
_ASK = """
import json
from nova.api.validation.extra_specs import validators
from nova.objects.image_meta import ImageMetaProps
from nova import conf  # noqa: F401
specs = {name: validator.value for name, validator in validators.VALIDATORS.items()}
print(json.dumps({
    "specs": {name: [value["type"].__name__, list(value.get("enum") or ())] for name, value in specs.items()},
    "properties": sorted(ImageMetaProps.fields),
}))
"""
_SCHEDULED = ("resources", "trait", "capabilities:", "aggregate_instance_extra_specs:")
"""By the thousand; the page names each kind once."""
_OTHER_HYPERVISORS = re.compile(r"quota:(memory|disk_io|vif)_(limit|reservation|shares_level|shares_share)")
_TRAITS = "traits_required"
"""The reference's own name for the `trait:…` of an image."""


@cache
def known() -> dict[str, dict[str, tuple[str, list[str]]]]:
    asked = subprocess.run([NOVA.bin() / "python", "-c", _ASK], capture_output=True, text=True, check=True)
    told: dict[str, dict[str, tuple[str, list[str]]]] = json.loads(asked.stdout.splitlines()[-1])
    return told


def specs() -> dict[str, tuple[str, list[str]]]:
    return {name: form for name, form in known()["specs"].items() if not name.startswith(_SCHEDULED)}


def test_a_flavor_may_say_what_the_reference_knows() -> None:
    refused = []
    for name, (kind, choices) in specs().items():
        value = str(choices[0]) if choices else {"bool": "true", "int": "1"}.get(kind, "nic:1")
        value = "0-1" if "mask" in name or "numa_cpus" in name else value
        value = "large" if name == "hw:mem_page_size" else value
        try:
            extra_specs.check(name.replace("{num}", "0"), value)
        except Exception as error:
            refused.append(f"{name}={value}: {error}")
    assert not refused


def test_the_page_says_of_each_what_it_does() -> None:
    page = PAGE.read_text()
    names = [name.replace("{num}", "N") for name in specs() if not _OTHER_HYPERVISORS.fullmatch(name)]
    properties = [name for name in known()["properties"] if name != _TRAITS]
    told = {*re.findall(r"`([\w:.]+)", page)}
    cells = {"hw_numa_cpus": "hw_numa_cpus.N", "hw_numa_mem": "hw_numa_mem.N"}
    assert [name for name in (*names, *properties) if cells.get(name, name) not in told] == []


@pytest.mark.parametrize("name", ["hw:cpu_polcy", "quota:cpu"])
def test_what_nobody_knows_is_refused(name: str) -> None:
    with pytest.raises(Exception, match="does not appear to be a valid extra spec"):
        extra_specs.check(name, "1")
