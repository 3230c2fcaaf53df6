"""An adopted guest that can't be carried along is told of with a reason, and nothing is lost.

The guest is one of ours whose record says that it keeps a definition, with a disk that nobody here knows.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.integration.libvirt import two_hypervisors
from tests.integration.libvirt.two_hypervisors import PATIENCE, Cloud
from tests.lab.libvirt import programs
from tests.lab.libvirt.hosts import LibvirtLab
from tests.support.debian import Unavailable
from tests.support.processes import wait_until

REASON = "not known here: disk.eph1"
REFUSED: dict[str, Any] = {
    "migrate": {"host": "h2"},
    "resize": {"flavorRef": "larger"},
    "os-migrateLive": {"host": "h2", "block_migration": "auto"},
    "rescue": {},
}


@pytest.fixture
def cloud(pair: LibvirtLab, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Cloud]:
    monkeypatch.setenv("PYTHONPATH", str(programs.binding()))
    try:
        with two_hypervisors.running(pair, tmp_path, "allow_resize_to_same_host = true") as running:
            _keep_definition(running)
            yield running
    except Unavailable as missing:
        pytest.skip(str(missing))


def _keep_definition(cloud: Cloud) -> None:
    directory = cloud.instances / "h1" / cloud.server
    (record,) = directory.glob("*.json")
    told = json.loads(record.read_bytes())
    xml = cloud.lab.hosts["h1"].run("virsh", "dumpxml", cloud.server)
    disk = f"<disk type='file' device='disk'><source file='{directory}/disk.eph1'/><target dev='vdz'/></disk>"
    xml = xml.replace("</devices>", f"{disk}</devices>")
    record.write_text(json.dumps({**told, "keeps_definition": True, "definition": xml}))


def test_what_can_not_be_carried_along_fails_and_leaves_all_as_it_was(cloud: Cloud) -> None:
    flavor = {"id": "larger", "name": "larger", "vcpus": 1, "ram": 80, "disk": 2}
    cloud.ask("POST", "/v2.1/flavors", {"flavor": flavor})
    before = _seen(cloud)
    for action, argument in REFUSED.items():
        _refused(cloud, action, argument, before)
    (other,) = cloud.ask("GET", "/v2.1/os-services?host=h2")["services"]
    disabled = {"status": "disabled", "disabled_reason": "so that it would be resized where it is"}
    cloud.ask("PUT", f"/v2.1/os-services/{other['id']}", disabled)
    _refused(cloud, "resize", REFUSED["resize"], before)
    migrations = cloud.ask("GET", "/v2.1/os-migrations")["migrations"]
    assert [migration["status"] for migration in migrations] == ["error"] * 4
    assert {migration["dest_compute"] for migration in migrations} == {"h1", "h2"}
    assert cloud.boots("h1") == 1, "it was never stopped"
    tick = cloud.tick("h1")
    wait_until(lambda: cloud.tick("h1") > tick, "a guest that counts", PATIENCE)
    cloud.act("os-stop")
    cloud.wait("h1", "SHUTOFF")
    cloud.act("os-start")
    cloud.wait("h1", "ACTIVE")


def _refused(cloud: Cloud, action: str, argument: Any, before: dict[str, Any]) -> None:
    cloud.act(action, argument)
    wait_until(lambda: _shown(cloud)["OS-EXT-STS:task_state"] is None, f"the end of {action}", PATIENCE)
    assert _seen(cloud) == before, action
    assert REASON in _reason(cloud), action


def _seen(cloud: Cloud) -> dict[str, Any]:
    """Of the server, by its user; by Placement; and on the hosts."""
    deployment = cloud.deployment
    shown = _shown(cloud)
    del shown["updated"], shown["progress"]
    held = deployment.get_placement(f"/allocations/{cloud.server}")["allocations"]
    return {
        "server": shown,
        "limits": cloud.ask("GET", "/v2.1/limits")["limits"]["absolute"],
        "allocations": {uuid: allocation["resources"] for uuid, allocation in held.items()},
        "usages": [
            deployment.get_placement(f"/resource_providers/{uuid}/usages")["usages"]
            for uuid in sorted(deployment.providers())
        ],
        "guests": {name: host.guest_pids() for name, host in cloud.lab.hosts.items()},
        "directories": {name: _directories(cloud, name) for name in cloud.lab.hosts},
        "definition": cloud.lab.hosts["h1"].run("virsh", "dumpxml", cloud.server),
    }


def _directories(cloud: Cloud, host: str) -> set[str]:
    path = cloud.instances / host
    return {found.name for found in path.iterdir()} - {"_base"} if path.exists() else set()


def _shown(cloud: Cloud) -> Any:
    return cloud.ask("GET", f"/v2.1/servers/{cloud.server}")["server"]


def _reason(cloud: Cloud) -> str:
    """What the latest action says."""
    path = f"/v2.1/servers/{cloud.server}/os-instance-actions"
    latest = cloud.ask("GET", path)["instanceActions"][0]
    assert latest["message"] == "Error"
    events = cloud.ask("GET", f"{path}/{latest['request_id']}")["instanceAction"]["events"]
    return " ".join(event["details"] or "" for event in events)
