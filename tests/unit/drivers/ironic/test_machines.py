"""What operators are told of a node: one state, and why."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from moorage.drivers.ironic.api.record import NodeRecord
from moorage.drivers.ironic.nodes import machines
from moorage.drivers.ironic.nodes.partition import Partition
from moorage.drivers.ironic.nodes.state_counts import NODES, StateCounts
from moorage.drivers.machines import MachineState

FREE = NodeRecord("1", resource_class="gold", provision_state="available", power_state="power off")


@pytest.mark.parametrize(
    ("changes", "state", "reason"),
    [
        ({}, MachineState.FREE, ""),
        ({"provision_state": None}, MachineState.FREE, ""),
        ({"maintenance": True, "maintenance_reason": "new disk"}, MachineState.MAINTENANCE, "new disk"),
        ({"maintenance": True, "fault": "power failure"}, MachineState.MAINTENANCE, "power failure"),
        (
            {"provision_state": "clean failed", "maintenance": True, "last_error": "no ramdisk"},
            MachineState.CLEAN_FAILED,
            "no ramdisk",
        ),
        ({"provision_state": "clean wait"}, MachineState.CLEANING, ""),
        ({"provision_state": "deleting", "instance_uuid": "s"}, MachineState.CLEANING, ""),
        ({"retired": True}, MachineState.RETIRED, ""),
        ({"retired": True, "retired_reason": "too old"}, MachineState.RETIRED, "too old"),
        ({"provision_state": "active", "instance_uuid": "s"}, MachineState.IN_USE, ""),
        ({"provision_state": "rescue", "instance_uuid": "s"}, MachineState.IN_USE, ""),
        ({"provision_state": "active"}, MachineState.STRAY, ""),
        ({"instance_uuid": "s"}, MachineState.RESERVED, ""),
        ({"provision_state": "wait call-back", "instance_uuid": "s"}, MachineState.DEPLOYING, ""),
        ({"provision_state": "deploy failed", "last_error": "why"}, MachineState.DEPLOY_FAILED, "why"),
        ({"provision_state": "manageable"}, MachineState.MANAGED, ""),
        ({"provision_state": "servicing"}, MachineState.UNKNOWN, "servicing"),
        ({"resource_class": None}, MachineState.NO_CLASS, ""),
        ({"power_state": None}, MachineState.NO_POWER, ""),
        ({"quarantined": True}, MachineState.QUARANTINE, ""),
    ],
)
def test_a_node_is_in_one_state(changes: dict[str, Any], state: MachineState, reason: str) -> None:
    described = machines.describe(msgspec.structs.replace(FREE, **changes))
    assert (described.state, described.reason) == (state, reason)


def count(partition: Partition, state: MachineState) -> float:
    return float(NODES.labels(str(partition.served), state.value)._value.get())


def test_the_states_of_a_partition_are_counted_and_forgotten_with_it(
    caplog: pytest.LogCaptureFixture,
) -> None:
    counts, rack, other = StateCounts(), Partition("rack"), Partition("")
    broken = msgspec.structs.replace(FREE, uuid="2", provision_state="clean failed")
    counts.look(rack, {"1": FREE, "2": broken})
    assert (count(rack, MachineState.FREE), count(rack, MachineState.CLEAN_FAILED)) == (1, 1)
    counts.look(other, {})
    assert "serves the unnamed group, which has no nodes" in caplog.text
    left = {sample.labels["partition"] for metric in NODES.collect() for sample in metric.samples}
    assert str(rack.served) not in left
