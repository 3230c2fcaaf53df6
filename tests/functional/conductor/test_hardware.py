"""What a host says of a server's machine is said to every host that the server comes to."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from moorage.bus.contract import Result
from moorage.compute.servers import server, server_spec
from tests.functional.conductor.stand import Stand
from tests.support.processes import wait_until

HARDWARE = {"machine_type": "pc-q35-7.2"}


@pytest.fixture
def stand(database_url: str) -> Iterator[Stand]:
    made = Stand(database_url)
    yield made
    made.close()


def test_the_hardware_of_a_server_is_kept_and_said_again(stand: Stand) -> None:
    stand.work("conductor")
    wait_until(lambda: bool(stand.tasks), "the task, which the bus brings")
    (task,) = [task for task in stand.tasks if task.kind == "spawn"]
    assert task.payload["hardware"] == {}
    assert task.payload["instance_name"] == f"instance-{stand.server_id:08x}"
    facts = {"power_state": 1, "hardware": HARDWARE}
    stand.inbox.on_results([Result(task.operation_id, stand.uuid, task.attempt, True, facts=facts)])
    stand.work("conductor")
    row = stand.server()
    assert row.vm_state == "active"
    assert server_spec.of(server.from_row(row))["hardware"] == HARDWARE
