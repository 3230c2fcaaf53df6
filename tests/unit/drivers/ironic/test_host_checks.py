"""What `moorage doctor` says of a bare-metal agent."""

from __future__ import annotations

from pathlib import Path

from moorage.cli import settings
from moorage.drivers import installed
from moorage.drivers.host_check import CheckOutcome, HostCheck
from tests.support import simulated_ironic


def checks(directory: Path, *lines: str) -> dict[str, HostCheck]:
    config = directory / "moorage.conf"
    config.write_text("\n".join(["[agent]", "driver = ironic", "[ironic]", *lines]))
    return {check.name: check for check in installed.find("ironic").check(settings.read([config]))}


def test_an_agent_is_told_whether_its_partition_has_nodes(tmp_path: Path) -> None:
    with simulated_ironic.running() as ironic:
        ironic.enrol("in-no-group")
        way = ("auth_type = none", f"endpoint = http://127.0.0.1:{ironic.port}")

        def partition(*lines: str) -> tuple[CheckOutcome, str]:
            found = checks(tmp_path, *way, *lines)["partition"]
            return found.outcome, found.found

        assert partition() == (CheckOutcome.OK, "there are nodes of all groups")
        assert partition("partition_key =") == (CheckOutcome.OK, "there are nodes of the unnamed group")
        flavor = checks(tmp_path, *way)["resource class"]
        assert flavor.outcome is CheckOutcome.OK
        assert "openstack flavor create" in flavor.advice
        assert "resources:CUSTOM_GOLD=1" in flavor.advice
        empty = (CheckOutcome.WARNING, "there are no nodes of group rack")
        assert partition("partition_key = rack") == empty
    assert checks(tmp_path, *way)["Ironic"].outcome is CheckOutcome.FAILED


def test_what_makes_no_sense_is_told_and_not_tried(tmp_path: Path) -> None:
    found = checks(tmp_path, "partition_key = rack")["configuration"]
    assert found.outcome is CheckOutcome.FAILED
    assert "does not say how to reach Ironic" in found.found
