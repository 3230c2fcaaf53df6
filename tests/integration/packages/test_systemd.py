"""The page on installing, followed under a real systemd: Placement on SQLite, then a cloud in pieces.

What is typed differs from the page only as `INSTEAD` says, and a simulated host needs no libvirt. The
blocks of the page are taken in their order, with those of the page on deploying that it sends readers to.
"""

from __future__ import annotations

import configparser
import io
import os
from collections.abc import Iterator
from pathlib import Path

import pytest
import requests

from tests.lab.systemd import machine as systemd
from tests.lab.systemd.machine import Machine
from tests.support import debian_root, manual
from tests.support.composed_cloud import ADMIN, boots
from tests.support.debian import Unavailable
from tests.support.manual import Block
from tests.support.processes import wait_until

pytestmark = [
    pytest.mark.skipif(
        not os.environ.get("MOORAGE_PACKAGES"), reason="minutes of a processor: make packages"
    ),
    pytest.mark.timeout(1800),
]

COMPUTE, PLACEMENT = "http://127.0.0.1:8774", "http://127.0.0.1:8778"
NEIGHBOURS = ("postgresql", "rabbitmq-server")
CONTROL = ("moorage-placement", "moorage-api", "moorage-conductor")
AGENT = "moorage-agent"
HOST = "rack-7-node-1"
INSTEAD = {
    "set-password admin": "set-password admin --stdin",
    "db.example.com": "localhost",
    "rabbit.example.com": "localhost",
    "placement.example.com": "localhost",
    "listen = 10.0.0.5": "listen = 127.0.0.1",
    "password = SECRET": f"password = {ADMIN[1]}",
}
"""Nobody sits at a terminal, and all is on one machine."""


@pytest.fixture(scope="module")
def machine(tmp_path_factory: pytest.TempPathFactory, packages: list[Path]) -> Iterator[Machine]:
    directory = tmp_path_factory.mktemp("machine")
    try:
        with debian_root.made(directory / "root", *systemd.PACKAGES) as root:
            root.copy(packages, "dist")
            (root.directory / "etc/apt/apt.conf.d/99small").write_text('APT::Install-Recommends "false";\n')
            root.run("apt-get", "update")
            root.run("apt-get", "install", "--yes", "--download-only", *NEIGHBOURS)
            with systemd.booted(root, directory / "console.log") as started:
                yield started
    except Unavailable as error:
        pytest.skip(str(error))


def _blocks(page: str, section: str) -> list[Block]:
    return [block for block in manual.blocks(page) if block.section == section]


def _adapted(text: str) -> str:
    for written, meant in INSTEAD.items():
        text = text.replace(written, meant)
    return text


def _follow(machine: Machine, block: Block) -> str:
    return "".join(machine.type(_adapted(command), given=f"{ADMIN[1]}\n") for command in block.commands)


def _write(machine: Machine, block: Block, without_keystone: Block) -> None:
    """A file of the page, with what becomes of it without a Keystone."""
    told, instead = (configparser.ConfigParser(interpolation=None) for _ in range(2))
    told.read_string(_adapted(block.text))
    instead.read_string(_adapted(without_keystone.text))
    told.remove_section("keystone_authtoken")
    told["placement_client"] = instead["placement_client"]
    if "auth" in told:
        told["auth"]["strategy"] = "basic"
    written = io.StringIO()
    told.write(written)
    machine.type(f"cat > {block.file}", given=written.getvalue())


def _status(machine: Machine, path: str, url: str = PLACEMENT) -> int:
    asked = f"{url}{path}"
    return machine.network.call(lambda: requests.get(asked, auth=ADMIN, timeout=30).status_code)


def _status_of_process(machine: Machine, unit: str) -> dict[str, str]:
    [pid] = machine.shows(unit, "MainPID")
    lines = machine.run("cat", f"/proc/{pid}/status").splitlines()
    return {name: value.strip() for name, _, value in (line.partition(":") for line in lines)}


def _boots(machine: Machine) -> None:
    machine.network.call(lambda: boots(COMPUTE, PLACEMENT, {HOST}))


def test_who_follows_the_page_has_a_cloud_under_systemd(machine: Machine) -> None:
    look, neighbours, control, start, host, check = _blocks("install.md", "Packages of Debian")
    _follow(machine, look)
    assert _status(machine, "/resource_providers") == 200, "it answers as soon as it is started"

    _follow(machine, neighbours)
    for block in _blocks("compute/deploy.md", "Install"):
        if block.commands[0].startswith(("runuser -u postgres", "rabbitmqctl")):
            _follow(machine, block)
    control_file, agent_file = (block for block in _blocks("compute/deploy.md", "Configure"))
    [without_keystone] = (b for b in _blocks("compute/deploy.md", "Without Keystone") if b.kind == "ini")
    _follow(machine, control)
    _write(machine, control_file, without_keystone)
    assert machine.run("stat", "-c", "%U:%G %a", control_file.file) == "root:moorage 640\n"
    assert "cirros" in _follow(machine, start)

    install, *begin = host.commands
    machine.type(install)
    _write(machine, agent_file, without_keystone)
    for command in begin:
        machine.type(command)
    assert "Failure" not in _follow(machine, check)
    _boots(machine)
    found = "SELECT count(*) FROM providers"
    asked = ["runuser", "-u", "postgres", "--", "psql", "--tuples-only", "--command", found, "moorage"]
    assert machine.run(*asked).strip() == "1", "Placement has left its SQLite"


def test_services_are_confined_and_the_agent_is_not(machine: Machine) -> None:
    for unit in CONTROL:
        status = _status_of_process(machine, unit)
        assert status["Uid"].split()[0] != "0"
        assert (int(status["CapEff"], 16), status["NoNewPrivs"], status["Seccomp"]) == (0, "1", "2")
    assert _status_of_process(machine, AGENT)["Uid"].split()[0] == "0"
    for unit in (*CONTROL, AGENT):
        assert machine.shows(unit, "Type", "ActiveState", "SubState") == ["notify", "active", "running"]


def test_images_are_written_where_the_unit_lets_it(machine: Machine) -> None:
    def upload() -> int:
        images = f"{COMPUTE}/image/v2/images"
        about = {"name": "own", "disk_format": "raw", "container_format": "bare"}
        made = requests.post(images, json=about, auth=ADMIN, timeout=30).json()["id"]
        kind = {"Content-Type": "application/octet-stream"}
        sent = requests.put(f"{images}/{made}/file", data=b"x" * 1000, headers=kind, auth=ADMIN, timeout=30)
        return sent.status_code

    assert machine.network.call(upload) == 204
    assert machine.run("find", "/var/lib/moorage/images", "-type", "f", "-user", "moorage", "-size", "1000c")


def test_a_reload_keeps_the_process_and_its_log_is_in_the_journal(machine: Machine) -> None:
    for unit in (*CONTROL, AGENT):
        [before] = machine.shows(unit, "MainPID")
        machine.run("systemctl", "reload", unit)
        wait_until(lambda unit=unit: "SIGHUP: " in machine.journal(unit), f"{unit} to say so")  # type: ignore[misc]
        assert machine.shows(unit, "MainPID", "ActiveState") == [before, "active"]
    _boots(machine)


def test_what_is_killed_is_back_after_two_seconds(machine: Machine) -> None:
    for unit in (*CONTROL, AGENT):
        before = machine.shows(unit, "MainPID")
        machine.run("systemctl", "kill", "--kill-whom=main", "--signal=KILL", unit)

        def is_back(unit: str = unit, before: list[str] = before) -> bool:
            return machine.shows(unit, "NRestarts", "ActiveState") == ["1", "active"] and (
                machine.shows(unit, "MainPID") != before
            )

        wait_until(is_back, f"{unit} to be started again", 60)
        assert machine.shows(unit, "RestartUSec") == ["2s"]
    _boots(machine)


def test_a_restart_and_a_stop_end_in_time(machine: Machine) -> None:
    for unit in (*CONTROL, AGENT):
        machine.run("systemctl", "restart", unit)
        machine.run("systemctl", "stop", unit)
        assert machine.shows(unit, "ActiveState", "Result", "ExecMainStatus") == ["inactive", "success", "0"]
    machine.run("systemctl", "start", AGENT, *reversed(CONTROL))
    _boots(machine)


def test_what_an_agent_has_started_lives_on(machine: Machine) -> None:
    group = f"/sys/fs/cgroup/system.slice/{AGENT}.service/cgroup.procs"
    pid = machine.type(f"setsid sleep 600 >/dev/null 2>&1 & echo $! > {group}; echo $!").strip()
    machine.run("systemctl", "restart", AGENT)
    machine.run("kill", pid)


def test_an_agent_of_simulated_hosts_needs_no_root(machine: Machine) -> None:
    """What it kept as root is not its own any more, and it says so."""
    machine.type(
        f"cd /etc/systemd/system && mkdir {AGENT}.service.d && cat > {AGENT}.service.d/override.conf",
        given="[Service]\nUser=moorage\n",
    )
    machine.type(f"systemctl daemon-reload; ! systemctl restart {AGENT}")
    assert "can't use the state directory /var/lib/moorage/agent" in machine.journal(AGENT)
    assert "Traceback" not in machine.journal(AGENT)
    machine.type(f"systemctl stop {AGENT} && chown -R moorage: /var/lib/moorage/agent")
    machine.run("systemctl", "start", AGENT)
    assert _status_of_process(machine, AGENT)["Uid"].split()[0] != "0"
    _boots(machine)


def test_a_service_waits_for_its_database(machine: Machine) -> None:
    machine.run("systemctl", "stop", "postgresql", "moorage-api")
    machine.run("systemctl", "start", "--no-block", "moorage-api")
    wait_until(lambda: machine.shows("moorage-api", "MainPID") != ["0"], "its process")
    assert machine.shows("moorage-api", "ActiveState") == ["activating"]
    machine.run("systemctl", "start", "postgresql")
    wait_until(lambda: machine.shows("moorage-api", "ActiveState") == ["active"], "the API", 90)
    assert _status(machine, "/v2.1/servers", COMPUTE) == 200


def test_all_is_back_after_a_power_cut(machine: Machine) -> None:
    machine.cut()
    machine.boot()
    _boots(machine)


def test_removing_ends_the_services_and_purging_keeps_disks_of_servers(machine: Machine) -> None:
    machine.run("apt-get", "remove", "--yes", "moorage-common")
    assert machine.run("find", "/proc", "-maxdepth", "1", "-user", "moorage") == ""
    assert "moorage" not in machine.run("systemctl", "list-units", "--all", "--no-pager")
    assert "moorage" not in machine.run("ls", "/etc/systemd/system/multi-user.target.wants")
    assert machine.root.has("/etc/moorage/moorage.conf")
    assert machine.root.has("/var/lib/moorage/images")
    machine.type("apt-get purge --yes 'moorage-*'")
    assert not machine.root.has("/etc/moorage")
    assert not machine.root.has("/var/lib/moorage/images")
    assert machine.root.has("/var/lib/moorage/agent/journal.sqlite")
    assert "degraded" not in machine.type("systemctl is-system-running || true")
