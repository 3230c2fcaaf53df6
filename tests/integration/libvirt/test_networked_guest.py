"""A real guest on the built-in network: nobody but the agent has set anything up, and its host reaches it."""

from __future__ import annotations

import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from moorage.drivers.contract import PAUSED, RUNNING, ServerSpec
from moorage.drivers.libvirt.vifs.bridge import BridgeSettings, BridgeVifs
from moorage.drivers.libvirt.vifs.system_commands import SystemCommands
from tests.integration.libvirt.stand import DirectoryImages, LibvirtStand
from tests.lab.libvirt.hosts import LibvirtHost, LibvirtLab
from tests.support import debian
from tests.support.guest_image import guest_image
from tests.support.processes import wait_until

ADDRESS, GATEWAY = "10.99.0.5", "10.99.0.1"
PORT = {
    "id": "7d5e31d2-1b5c-4000-8000-000000000005",
    "network_id": "4b1f7d0a-0000-4000-8000-000000000001",
    "mac": "02:00:00:00:00:05",
    "addresses": [ADDRESS],
    "mtu": 1450,
    "vif_type": "bridge",
    "vif_details": {"built_in": True},
    "subnets": [{"cidr": "10.99.0.0/24", "ip_version": 4, "gateway_ip": GATEWAY, "enable_dhcp": True}],
}
_BOOT_SECONDS = 240.0


class BridgedTaps(BridgeVifs):
    """As an agent on the host would have them; `leftovers` looks at their devices."""

    def __init__(self, host: LibvirtHost, directory: Path, runtime: Path) -> None:
        self._host = host
        # Not in the host's PID namespace, whose numbers would not be ours.
        inside = ["nsenter", "-t", str(host.pid), "-m", "-u", "-n", "--"]
        super().__init__(
            BridgeSettings(host.name, directory / "ports", runtime, commands=SystemCommands(inside))
        )

    def plugged(self) -> list[str]:
        listed = self._host.run("ip", "-o", "link").splitlines()
        names = [line.split()[1].rstrip(":") for line in listed]
        return [name for name in names if name.startswith(("tap", "mrg-", "mrt-"))]


@pytest.fixture
def stand(lab: LibvirtLab, tmp_path: Path) -> Iterator[LibvirtStand]:
    try:
        image = guest_image()
        debian.install("nftables", "dnsmasq-base", "openssh-client")
    except (RuntimeError, debian.Unavailable) as missing:
        pytest.skip(str(missing))
    runtime = Path(
        tempfile.mkdtemp(prefix="mrg-", dir="/run")
    )  # tmp_path is not for dnsmasq, which is nobody
    runtime.chmod(0o755)
    images = DirectoryImages(tmp_path / "images")
    made = LibvirtStand(
        lab.hosts["h1"], tmp_path, images, images.add(image.disk, "qcow2"), shutdown_timeout=60.0
    )
    made.taps = BridgedTaps(made.host, tmp_path, runtime)  # type: ignore[assignment]
    made.restart()
    yield made
    made.driver.close()
    shutil.rmtree(runtime)


def direct_boot(stand: LibvirtStand) -> dict[str, str]:
    image = guest_image()
    return {
        "kernel_id": stand.images.add(image.kernel, "aki"),
        "ramdisk_id": stand.images.add(image.ramdisk, "ari"),
        "os_command_line": image.command_line,
    }


def test_a_guest_answers_ping_and_ssh_from_its_host(stand: LibvirtStand, tmp_path: Path) -> None:
    driver: Any = stand.driver
    key = tmp_path / "key"
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", key], check=True)
    spec: ServerSpec = stand.spec(
        properties={**direct_boot(stand), "hw_cdrom_bus": "scsi"},
        network=[PORT],
        config_drive=True,
        key_name="me",
        public_key=(tmp_path / "key.pub").read_text().strip(),
        paused=True,
    )
    assert driver.spawn(spec) == PAUSED
    assert driver.unpause(spec.uuid, spec.node_uuid) == RUNNING

    def log() -> str:
        return str(driver.console_log(spec.uuid, spec.node_uuid, None))

    wait_until(lambda: f"addr={ADDRESS}/24" in log(), "the guest's address", _BOOT_SECONDS)
    wait_until(lambda: "guest: ready" in log(), "the guest", _BOOT_SECONDS)
    stand.host.run("ping", "-c", "1", "-W", "5", ADDRESS)
    said = stand.host.run(
        *("ssh", "-i", key, "-o", "StrictHostKeyChecking=no", "-o", "UserKnownHostsFile=/dev/null"),
        *(
            "-o",
            "BatchMode=yes",
            f"root@{ADDRESS}",
            "cat /sys/class/net/eth0/address /sys/class/net/eth0/mtu",
        ),
    )
    assert said.split() == [PORT["mac"], "1450"]
    driver.destroy(spec.uuid, spec.node_uuid)
    assert stand.leftovers() == []
