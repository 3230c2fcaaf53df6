"""The guest of `make guest-image`, booted by QEMU alone: what tests and newcomers rely on."""

from __future__ import annotations

import json
import shutil
import socket
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.support import debian
from tests.support.guest_image import GuestImage, guest_image
from tests.support.processes import free_port, wait_until

_PACKAGES = ("qemu-system-x86", "qemu-utils", "dosfstools", "mtools", "openssh-client")
PATIENCE = 180.0
"""Processors may be emulated, and busy."""

pytestmark = pytest.mark.timeout(600)


@pytest.fixture(scope="module")
def image() -> GuestImage:
    try:
        debian.install(*_PACKAGES)
        return guest_image()
    except debian.Unavailable as missing:
        pytest.skip(str(missing))


class Machine:
    def __init__(self, directory: Path, ssh_port: int) -> None:
        self._directory = directory
        self._ssh_port = ssh_port
        self.process: subprocess.Popen[bytes]

    def console(self) -> str:
        path = self._directory / "console.log"
        return path.read_text(errors="replace") if path.exists() else ""

    def says(self, line: str) -> None:
        wait_until(lambda: f"guest: {line}" in self.console(), f"the guest to say: {line}", PATIENCE)

    def press_power_button(self) -> None:
        with socket.socket(socket.AF_UNIX) as monitor:
            monitor.connect(str(self._directory / "monitor"))
            monitor.settimeout(PATIENCE)
            _read_prompt(monitor)
            monitor.sendall(b"system_powerdown\n")
            _read_prompt(monitor)  # who hangs up before that may not be heard

    def run(self, command: str) -> str:
        """By SSH, with the key that the config drive has."""
        options = (
            "-o",
            "StrictHostKeyChecking=no",
            "-o",
            "UserKnownHostsFile=/dev/null",
            "-o",
            "BatchMode=yes",
        )
        login = ("ssh", "-i", str(self._directory / "key"), *options, "-p", str(self._ssh_port))
        done = subprocess.run(
            [*login, "root@127.0.0.1", command], capture_output=True, text=True, check=True, timeout=PATIENCE
        )
        return done.stdout


def _read_prompt(monitor: socket.socket) -> None:
    """Until QEMU waits for the next command: what it says comes in pieces."""
    said = b""
    while not said.endswith(b"(qemu) "):
        piece = monitor.recv(1024)
        assert piece, said
        said += piece


def config_drive(directory: Path) -> Path:
    """As a driver makes it, but as a FAT disk: a small one, with little to install."""
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", directory / "key"], check=True)
    latest = directory / "openstack" / "latest"
    latest.mkdir(parents=True)
    key = (directory / "key.pub").read_text()
    told = {
        "uuid": "5a2c0b5e",
        "hostname": "web",
        "public_keys": {"mine": key},
        "meta": {"guest_tick": "500000"},
    }
    (latest / "meta_data.json").write_text(json.dumps(told))
    (latest / "user_data").write_text("#!/bin/sh\necho hello\n")
    path = directory / "drive.img"
    with path.open("wb") as file:
        file.truncate(8 * 1024 * 1024)
    subprocess.run(["mkfs.vfat", "-n", "config-2", path], check=True, capture_output=True)
    subprocess.run(["mcopy", "-s", "-i", path, directory / "openstack", "::"], check=True)
    return path


@contextmanager
def booted(directory: Path, disk: Path, drive: Path) -> Iterator[Machine]:
    port = free_port()
    machine = Machine(directory, port)
    command: list[str | Path] = [
        *("qemu-system-x86_64", "-machine", "pc,accel=tcg", "-m", "192", "-display", "none"),
        *("-serial", f"file:{directory / 'console.log'}"),
        *("-monitor", f"unix:{directory / 'monitor'},server,nowait"),
        *("-drive", f"file={disk},if=virtio", "-drive", f"file={drive},if=virtio,format=raw,readonly=on"),
        *("-netdev", f"user,id=net,restrict=on,hostfwd=tcp:127.0.0.1:{port}-:22"),
        *("-device", "virtio-net-pci,netdev=net", "-device", "virtio-rng-pci"),
    ]
    machine.process = subprocess.Popen(command)
    try:
        yield machine
    finally:
        machine.process.kill()
        machine.process.wait()


def test_it_tells_what_it_is_lets_its_owner_in_and_goes_when_asked(image: GuestImage, tmp_path: Path) -> None:
    disk, drive = tmp_path / "disk.qcow2", config_drive(tmp_path)
    shutil.copy(image.disk, disk)
    with booted(tmp_path, disk, drive) as machine:
        for line in (
            "hostname web",
            "uuid 5a2c0b5e",
            "userdata: hello",
            "key ssh-ed25519",
            "nic eth0 52:54:00",
        ):
            machine.says(line)
        for line in ("root /dev/vda1 boots=1", "ready", "tick 2"):
            machine.says(line)
        assert "addr=10.0.2.15/24" in machine.console()
        assert machine.run("hostname").strip() == "web"
        machine.press_power_button()
        wait_until(lambda: machine.process.poll() is not None, "the guest to switch off", PATIENCE)
        assert "guest: power button" in machine.console()
