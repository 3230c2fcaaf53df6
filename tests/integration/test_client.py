"""The official client with the clouds.yaml that `moorage up` leaves behind."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from tests.integration.clouds import NODE
from tests.lab.client.openstack import openstack
from tests.support.processes import Command, free_port, start_service

MOORAGE = Path(sys.executable).parent / "moorage"


@pytest.mark.parametrize("auth", ["none", "basic"])
def test_a_node_is_made_filled_and_found(tmp_path: Path, auth: str) -> None:
    """What the README tells a newcomer to type."""
    data, port = tmp_path / "data", free_port()
    ports = ["--placement-port", str(port), "--compute-port", str(free_port())]
    command: Command = [MOORAGE, "up", "--data", data, *ports, "--hosts", "0", "--auth", auth]

    def run(*arguments: str) -> object:
        return openstack(data / "clouds.yaml", "moorage", *arguments)

    with start_service(command, port, tmp_path / "up.log"):
        run("resource", "provider", "create", "node-1", "--uuid", NODE)
        run("resource", "provider", "inventory", "set", NODE, "--resource", "VCPU=32")
        listed = run("resource", "provider", "list")
        candidates = run("allocation", "candidate", "list", "--resource", "VCPU=4")
    assert listed == [
        {"uuid": NODE, "name": "node-1", "generation": 1}
        | {"root_provider_uuid": NODE, "parent_provider_uuid": None}
    ]
    assert [candidate["resource provider"] for candidate in candidates] == [NODE]  # type: ignore[attr-defined]
