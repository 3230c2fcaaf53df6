"""`moorage-manage ironic` and `moorage ring`, on a fleet whose hosts share their nodes."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from moorage.cli.main import commands
from moorage.compute.hosts import machine_failures
from moorage.db import engine
from moorage.db.database import Database
from moorage.drivers.machine_failures import MachineFailure, QuarantinePolicy
from tests.functional.conductor.shared_fleet import SharedFleet
from tests.support import moorage, simulated_ironic
from tests.support.simulated_ironic import SimulatedIronic


class Site:
    def __init__(self, config: Path, fleet: SharedFleet) -> None:
        self._config = config
        self.fleet = fleet

    def manage(self, *arguments: str) -> str:
        return self._run("moorage-manage", "--config-file", str(self._config), "ironic", *arguments)

    def ring(self, *arguments: str) -> str:
        return self._run("moorage", "ring", "--config-file", str(self._config), *arguments)

    def use(self, ironic: SimulatedIronic) -> None:
        """Have the configuration name this Ironic."""
        with self._config.open("a") as file:
            file.write(f"\n[ironic]\nauth_type = none\nendpoint = http://127.0.0.1:{ironic.port}\n")

    def nodes(self, *arguments: str) -> str:
        """In this process: to start one takes longer than all the rest."""
        given = ["nodes", "--config-file", str(self._config), *arguments]
        answer = CliRunner().invoke(commands, given, catch_exceptions=False)
        assert answer.exit_code == 0, answer.output
        return answer.output

    def refused(self, *arguments: str) -> str:
        with pytest.raises(subprocess.CalledProcessError) as error:
            self.manage(*arguments)
        assert "Traceback" not in error.value.stderr
        return str(error.value.stderr)

    def _run(self, program: str, *arguments: str) -> str:
        command = [str(moorage.PROGRAMS / program), *arguments]
        return subprocess.run(command, check=True, capture_output=True, text=True, timeout=60).stdout


@pytest.fixture
def site(tmp_path: Path, database_url: str) -> Iterator[Site]:
    """Two hosts with eight nodes, one of which carries a server; another group with a host and two nodes."""
    config = moorage.configure(tmp_path, database_url)
    moorage.sync_database(config)
    connected = engine.connect(database_url)
    fleet = SharedFleet(Database(connected))
    fleet.add_nodes("a", 8)
    fleet.add_nodes("b", 2)
    for host, group in (("a-1", "a"), ("a-2", "a"), ("b-1", "b")):
        fleet.start(host, group, failover=False)
    fleet.settle()
    yield Site(config, fleet)
    connected.dispose()


def of_host(site: Site, host: str) -> list[str]:
    return sorted(node for node, owner in site.fleet.owners().items() if owner == host)


def test_owners_are_listed_with_their_epochs_and_servers(site: Site) -> None:
    node = of_host(site, "a-1")[0]
    server = site.fleet.place(node)
    listed: list[dict[str, Any]] = json.loads(site.manage("list-owners", "--json"))
    assert {one["uuid"]: one["host"] for one in listed} == site.fleet.owners()
    assert {one["uuid"]: one["epoch"] for one in listed} == site.fleet.epochs()
    assert {one["uuid"]: one["server"] for one in listed if one["server"]} == {node: server}
    assert node in site.manage("list-owners")


def test_a_preview_tells_what_the_hosts_that_live_will_do(site: Site) -> None:
    assert json.loads(site.manage("rebalance", "--preview", "--json")) == []
    assert "nothing will move" in site.manage("rebalance", "--preview")
    lost = of_host(site, "a-1")
    site.fleet.kill("a-1")
    moves = json.loads(site.manage("rebalance", "--preview", "--json"))
    assert [(move["node"], move["from"], move["to"]) for move in moves] == [
        (node, "a-1", "a-2") for node in lost
    ]
    site.fleet.settle()
    assert set(of_host(site, "a-2")) > set(lost)
    assert "--preview" in site.refused("rebalance")


def test_a_node_with_its_server_is_moved_from_a_host_that_is_down(site: Site) -> None:
    node = of_host(site, "a-1")[0]
    site.fleet.place(node)
    assert "is up" in site.refused("move-node", node, "a-2")
    site.fleet.kill("a-1")
    site.fleet.settle()
    assert site.fleet.owners()[node] == "a-1", "without failover it stays"
    assert "not up" in site.refused("move-node", node, "nobody")
    assert "no node" in site.refused("move-node", "6f0c2f2e-6c5f-4f0a-9d51-0a4b7f1c2d3e", "a-2")
    assert "next pass" in site.manage("move-node", node, "a-2")
    site.fleet.rest(1)
    assert site.fleet.owners()[node] == "a-2"
    assert site.fleet.server_hosts() == {node: "a-2"}
    assert node in site.fleet.agents["a-2"].owned()
    site.fleet.start("a-1", "a", failover=False)
    site.fleet.settle()
    assert node not in site.fleet.agents["a-1"].owned()


def test_the_ring_shows_shares_and_what_a_change_would_move(site: Site) -> None:
    drawn = site.ring()
    assert "group a: 8 nodes" in drawn
    assert "group b: 2 nodes" in drawn
    a, b = json.loads(site.ring("--without", "a-1", "--json"))
    assert {move["node"] for move in a["moves"]} == set(of_host(site, "a-1"))
    assert {move["to"] for move in a["moves"]} == {"a-2"}
    assert b["moves"] == []
    assert "a-1 → a-2" in site.ring("--without", "a-1")
    assert "would move" in site.ring("--with", "a-3")
    assert "overlap" not in drawn


def test_every_machine_is_listed_whoever_serves_it(site: Site) -> None:
    mine, lost = of_host(site, "a-2")[:2]
    server = site.fleet.place(mine)
    site.fleet.start("empty-1", "empty")
    site.fleet.settle(1)
    with simulated_ironic.running() as ironic:
        site.use(ironic)
        ours = ironic.enrol("used", "a", provision_state="active", instance_uuid=server, uuid=mine)
        ironic.enrol("theirs", "a", provision_state="active", instance_uuid="somebody's")
        broken = ironic.enrol("broken", "b", maintenance=True, maintenance_reason="[new] disk")
        ironic.enrol("free", "b", traits=["CUSTOM_SSD"])
        ironic.enrol("nobody's", "nowhere", resource_class="silver")
        ironic.enrol("kept-out", "a", uuid=lost)
        told = [MachineFailure("failure", lost, "clean", "no ramdisk", "")]
        site.fleet.database.transact(
            lambda connection: machine_failures.record(connection, "a-2", told, QuarantinePolicy(1, 60.0))
        )
        answer = json.loads(site.nodes("--json"))
        assert {one["name"]: (one["state"], one["served"]) for one in answer["nodes"]} == {
            "used": ("in use", True),
            "theirs": ("of others", True),
            "broken": ("maintenance", True),
            "free": ("free", True),
            "nobody's": ("free", False),
            "kept-out": ("quarantine", True),
        }
        assert {one["uuid"]: one["host"] for one in answer["nodes"] if one["host"]} == {
            ours: "a-2",
            lost: "a-2",
        }
        assert answer["counts"] == {"in use": 1, "of others": 1, "maintenance": 1, "free": 2, "quarantine": 1}
        assert answer["warnings"] == [
            "no host that is up serves 1 of these machines",
            "host empty-1 serves group empty, which has no machines",
        ]

        def names(*filters: str) -> set[str]:
            return {one["name"] for one in json.loads(site.nodes("--json", *filters))["nodes"]}

        assert names("--state", "maintenance", "--state", "of others") == {"broken", "theirs"}
        assert names("--group", "b") == {"broken", "free"}
        assert names("--trait", "CUSTOM_SSD") == {"free"}
        assert names("--class", "silver") == names("--unserved") == {"nobody's"}
        assert names("--host", "a-2") == {"used", "kept-out"}
        shown = site.nodes()
        assert f"{broken}" in shown
        assert "[new] disk" in shown
        assert "served by nobody" in shown
        assert "2 free" in shown


def test_machines_that_failed_are_listed_with_their_history_and_released(site: Site) -> None:
    assert "No machine failed." in site.nodes("--failed")
    node = of_host(site, "a-1")[0]
    told = [MachineFailure(f"failure-{number}", node, "clean", "[no] ramdisk", "") for number in range(2)]
    site.fleet.database.transact(
        lambda connection: machine_failures.record(connection, "a-1", told, QuarantinePolicy(2, 3600.0))
    )
    (listed,) = json.loads(site.nodes("--failed", "--json"))
    assert (listed["uuid"], listed["quarantined_since"] is None) == (node, False)
    assert [failure["reason"] for failure in listed["failures"]] == ["[no] ramdisk"] * 2
    shown = site.nodes("--failed")
    assert (f"{node} in quarantine since" in shown, "[no] ramdisk" in shown) == (True, True)
    assert "is released" in site.manage("release", node)
    assert "not in quarantine" in site.refused("release", node)
    assert "(forgiven)" in site.nodes("--failed")


def test_the_ring_tells_of_hosts_whose_partitions_overlap(site: Site) -> None:
    site.fleet.start("c-1", "")  # as an agent that serves all groups says it
    site.fleet.settle(1)
    assert "overlap: a-1, a-2 (group a) and c-1 (all groups)" in site.ring()
