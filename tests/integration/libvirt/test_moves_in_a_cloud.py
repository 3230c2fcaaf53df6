"""Live migrations as an operator sees them: API, conductor and agents are processes, and guests are real."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.integration.libvirt import two_hypervisors
from tests.integration.libvirt.two_hypervisors import PATIENCE, Cloud
from tests.lab.libvirt import programs
from tests.lab.libvirt.hosts import LibvirtLab
from tests.support.debian import Unavailable
from tests.support.processes import wait_until


@pytest.fixture
def cloud(pair: LibvirtLab, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Cloud]:
    monkeypatch.setenv("PYTHONPATH", str(programs.binding()))
    try:
        with two_hypervisors.running(pair, tmp_path) as running:
            yield running
    except Unavailable as missing:
        pytest.skip(str(missing))


def test_a_guest_moves_while_agents_are_frozen_and_operators_change_their_mind(cloud: Cloud) -> None:
    server = cloud.server
    migration = cloud.migrate_live("h2")
    cloud.ask("DELETE", f"/v2.1/servers/{server}/migrations/{migration}")
    cloud.wait("h1", "ACTIVE")
    assert cloud.runs_on() == ["h1"]

    migration = cloud.migrate_live("h2")
    cloud.ask("POST", f"/v2.1/servers/{server}/migrations/{migration}/action", {"force_complete": None})
    cloud.wait("h2", "ACTIVE")
    assert cloud.runs_on() == ["h2"]

    agent = cloud.deployment.agents["h2"]
    cloud.migrate_live("h1")
    agent.freeze()
    cloud.lab.hosts["h2"].run("virsh", "suspend", server)  # then libvirt is soon done with it
    cloud.wait("h1", "ACTIVE")
    assert cloud.runs_on() == ["h1"]
    agent.thaw()
    wait_until(lambda: cloud.deployment.hosts_up() == {"h1", "h2"}, "the agent", PATIENCE)
    wait_until(lambda: not (cloud.instances / "h2" / server).exists(), "what it had to go", PATIENCE)
    before = cloud.tick("h1")
    wait_until(lambda: cloud.tick("h1") > before, "a guest that counts", PATIENCE)
    assert cloud.boots("h1") == 1
    assert cloud.runs_on() == ["h1"]

    cloud.act("migrate", {"host": "h2"})
    cloud.wait("h2", "VERIFY_RESIZE")
    cloud.act("revertResize")
    cloud.wait("h1", "ACTIVE")
    assert cloud.runs_on() == ["h1"]
    cloud.ask("DELETE", f"/v2.1/servers/{server}")
    wait_until(lambda: not cloud.runs_on(), "the end of the guest", PATIENCE)
    wait_until(lambda: _left(cloud) == {"_base"}, "empty hosts", PATIENCE)


def _left(cloud: Cloud) -> set[str]:
    return {path.name for host in cloud.lab.hosts for path in (cloud.instances / host).iterdir()}
