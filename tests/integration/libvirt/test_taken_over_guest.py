"""A cloud of Nova's becomes ours by the commands that its page tells, and a guest that runs does not notice.

Nova's part is rows as it writes them, and a domain as its driver leaves it.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import requests
from typer.testing import CliRunner

from moorage.cli.main import commands
from moorage.cli.manage.manage import commands as manage_commands
from tests.integration.libvirt import two_hypervisors
from tests.integration.libvirt.nova_guest import NovaGuest
from tests.integration.libvirt.two_hypervisors import PATIENCE, Cloud
from tests.lab.libvirt import programs, tiny_guest
from tests.lab.libvirt.hosts import LibvirtLab
from tests.lab.nova.rows import NovaRows, uuid
from tests.support import moorage
from tests.support.debian import Unavailable
from tests.support.deployment import PLACEMENT_ADMIN
from tests.support.processes import wait_until

NODE = uuid(800)
"""That of the first host of such a Nova."""
IMAGE = "5f6d9c7e-1d0c-4f0e-9a52-6c0b8b3f7a10"
NOVAS = "OpenStack Foundation"
"""Every guest of Nova's is told that this made its machine."""


@dataclass
class TakenOver:
    cloud: Cloud
    guest: NovaGuest
    pid: int | None
    """The guest's, before."""


@pytest.fixture
def taken_over(pair: LibvirtLab, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[TakenOver]:
    monkeypatch.setenv("PYTHONPATH", str(programs.binding()))
    try:
        with two_hypervisors.prepared(pair, tmp_path, bandwidth=0) as cloud:
            guest = _novas_guest(cloud, tmp_path)
            pid = guest.pid()
            _import(cloud, guest)
            _adopt(cloud, guest, tmp_path)
            cloud.deployment.start()
            _claim(cloud)
            yield TakenOver(cloud, guest, pid)
    except Unavailable as missing:
        pytest.skip(str(missing))


def _novas_guest(cloud: Cloud, directory: Path) -> NovaGuest:
    disk = tiny_guest.make_disk(directory / "novas.raw")
    instances = cloud.instances / "h1"
    guest = NovaGuest(
        host=cloud.lab.hosts["h1"], instances=instances, image_id=IMAGE, port=None, content=disk
    )
    cloud.server = guest.uuid
    wait_until(lambda: cloud.tick("h1") > 1, "a guest that counts", PATIENCE)
    return guest


def _import(cloud: Cloud, guest: NovaGuest) -> None:
    nova = NovaRows.made(cloud.deployment.database, "guests", ("h1",))
    nova.add_server(1, uuid=guest.uuid, id=0x2A, image_ref=IMAGE)
    moorage.sync_database(cloud.deployment.config)
    words = ["--config-file", str(cloud.deployment.config), "compute", "import"]
    ran = CliRunner().invoke(manage_commands, [*words, "--api-database", nova.api.url])
    nova.close()
    assert ran.exit_code == 0, ran.output


def _adopt(cloud: Cloud, guest: NovaGuest, directory: Path) -> None:
    state = directory / "h1"
    state.mkdir(mode=0o700)
    (state / "compute_id").write_text(f"{NODE}\n")
    words = ["adopt-guests", "--config-file", str(directory / "h1.conf"), "--json"]
    ran = CliRunner().invoke(commands, words)
    assert ran.exit_code == 0, ran.output
    (found,) = json.loads(ran.stdout)["guests"]
    assert found == {"server_uuid": guest.uuid, "name": "instance-0000002a", "refusal": ""}


def _claim(cloud: Cloud) -> None:
    """As it comes with the reference's Placement."""
    held = {
        "allocations": {NODE: {"resources": {"VCPU": 1, "MEMORY_MB": 512, "DISK_GB": 1}}},
        "project_id": "project",
        "user_id": "user",
        "consumer_type": "INSTANCE",
        "consumer_generation": None,
    }
    url = f"{cloud.deployment.placement_url}/allocations/{cloud.server}"
    requests.put(url, json=held, headers=PLACEMENT_ADMIN, timeout=30).raise_for_status()


def test_a_guest_runs_on_and_is_managed_as_any_other(taken_over: TakenOver, tmp_path: Path) -> None:
    cloud, guest = taken_over.cloud, taken_over.guest
    cloud.wait("h1", "ACTIVE")
    shown: Any = cloud.ask("GET", f"/v2.1/servers/{guest.uuid}")["server"]
    assert shown["created"] == "2026-01-02T03:04:05Z"
    assert shown["OS-EXT-SRV-ATTR:instance_name"] == "instance-0000002a"
    tick = cloud.tick("h1")
    wait_until(lambda: cloud.tick("h1") > tick, "a guest that counts", PATIENCE)
    assert guest.pid() == taken_over.pid, "it did not notice"

    cloud.act("os-stop")
    cloud.wait("h1", "SHUTOFF")
    assert tiny_guest.written(guest.directory / "disk")[0] == 1
    cloud.act("os-start")
    cloud.wait("h1", "ACTIVE")
    wait_until(lambda: cloud.boots("h1") == 2, "its second boot, from the same disk", PATIENCE)
    assert NOVAS in guest.run("virsh", "dumpxml", guest.uuid)

    cloud.act("os-migrateLive", {"host": "h2", "block_migration": "auto"})
    cloud.wait("h2", "ACTIVE")
    assert cloud.runs_on() == ["h2"]
    assert cloud.boots("h2") == 2, "it has not stopped"
    _resize(cloud, "h1", 3)
    assert NOVAS in guest.run("virsh", "dumpxml", guest.uuid)
    image = two_hypervisors.add_image(cloud, tmp_path)
    cloud.act("rescue", {"rescue_image_ref": image})
    cloud.wait("h1", "RESCUE")
    cloud.act("unrescue")
    cloud.wait("h1", "ACTIVE")
    assert NOVAS in guest.run("virsh", "dumpxml", guest.uuid)

    cloud.act("rebuild", {"imageRef": image})
    cloud.wait("h1", "ACTIVE")
    assert NOVAS not in guest.run("virsh", "dumpxml", guest.uuid)
    cloud.act("migrate", {"host": "h2"})
    cloud.wait("h2", "VERIFY_RESIZE")
    cloud.act("confirmResize")
    cloud.wait("h2", "ACTIVE")
    assert cloud.runs_on() == ["h2"]
    cloud.ask("DELETE", f"/v2.1/servers/{guest.uuid}")
    wait_until(lambda: not cloud.runs_on(), "the end of the guest", PATIENCE)
    assert guest.base.exists(), "it is Nova's, and nobody's to remove"


def _resize(cloud: Cloud, host: str, boots: int) -> None:
    flavor = {"id": "larger", "name": "larger", "vcpus": 2, "ram": 160, "disk": 2}
    cloud.ask("POST", "/v2.1/flavors", {"flavor": flavor})
    cloud.act("resize", {"flavorRef": "larger"})
    cloud.wait(host, "VERIFY_RESIZE")
    cloud.act("confirmResize")
    cloud.wait(host, "ACTIVE")
    wait_until(lambda: cloud.boots(host) == boots, "its next boot, from the same disk", PATIENCE)
