"""A guest that really boots: what it is told, what is taken from it, and that it goes on where it was."""

from __future__ import annotations

import base64
import os
import re
import subprocess
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, cast

import pytest

from moorage.drivers.contract import PAUSED, RUNNING, SHUT_DOWN, SUSPENDED, DriverError, ServerSpec
from moorage.drivers.parts import ConsoleType
from tests.integration.libvirt.stand import DirectoryImages, LibvirtStand
from tests.lab.libvirt.hosts import LibvirtLab
from tests.support.guest_image import guest_image
from tests.support.processes import wait_until

if TYPE_CHECKING:
    from moorage.drivers.libvirt.driver import LibvirtDriver

KEY = "ssh-ed25519 AAAAtest me@home"
USER_DATA = base64.b64encode(b"#!/bin/sh\necho hello from $((40 + 2))\n").decode()
LOG_BYTES = 16_384
_BOOT_SECONDS = 240.0


@dataclass
class Guest:
    """One for all tests of this file, which follow each other: a boot costs seconds of processor time."""

    stand: LibvirtStand
    spec: ServerSpec
    told: list[tuple[float, int]]

    @property
    def driver(self) -> LibvirtDriver:
        return cast("LibvirtDriver", self.stand.driver)

    @property
    def identity(self) -> tuple[str, str]:
        return self.spec.uuid, self.spec.node_uuid

    def log(self) -> str:
        return self.driver.console_log(*self.identity, None)

    def wait_for(self, pattern: str) -> None:
        wait_until(
            lambda: re.search(pattern, self.log()) is not None, f"{pattern!r} on the console", _BOOT_SECONDS
        )

    def ticks(self) -> list[int]:
        return [int(number) for number in re.findall(r"guest: tick (\d+) [\d.]+\r?\n", self.log())]

    def type(self, line: str) -> str:
        """At its serial console, as a proxy would."""
        address = self.driver.console(*self.identity, ConsoleType.SERIAL)
        script = (
            f"exec 3<>/dev/tcp/{address.host}/{address.port}; echo '{line}' >&3; timeout 1 cat <&3 || true"
        )
        return self.stand.host.run("bash", "-c", script)


@pytest.fixture(scope="module")
def guest(lab: LibvirtLab) -> Iterator[Guest]:
    try:
        image = guest_image()
    except RuntimeError as missing:
        pytest.skip(str(missing))
    directory = lab.directory / "guest"
    images = DirectoryImages(directory / "images")
    stand = LibvirtStand(
        lab.hosts["h1"],
        directory,
        images,
        images.add(image.disk, "qcow2"),
        serial_listen="127.0.0.1",
        shutdown_timeout=60.0,
        detach_attempts=20,
        console_log_bytes=LOG_BYTES,
    )
    properties = {
        "kernel_id": images.add(image.kernel, "aki"),
        "ramdisk_id": images.add(image.ramdisk, "ari"),
        "os_command_line": image.command_line,
        "hw_cdrom_bus": "scsi",
    }
    spec = stand.spec(
        properties=properties,
        flavor={"swap": 16},
        config_drive=True,
        key_name="mine",
        public_key=KEY,
        user_data=USER_DATA,
        metadata={"guest_tick": "100000"},
        network=[stand.port()],
    )
    made = Guest(stand, spec, [])
    made.driver.watch(lambda _, power: made.told.append((time.monotonic(), power)))
    assert made.driver.spawn(spec) == RUNNING
    yield made
    made.driver.destroy(*made.identity)
    made.driver.close()
    assert stand.leftovers() == []


def test_it_is_told_who_it_is_and_gets_what_its_flavor_says(guest: Guest) -> None:
    guest.wait_for("guest: ready")
    log = guest.log()
    assert f"guest: uuid {guest.spec.uuid}" in log
    assert f"guest: key {KEY}" in log
    assert "guest: userdata: hello from 42" in log
    assert "guest: disk vda bytes=1073741824" in log, "it grew with the flavor"
    assert f"guest: disk vdb bytes={16 << 20}" in log, "swap"
    assert "boots=1" in log
    assert len(guest.driver.console_log(*guest.identity, 2).splitlines()) == 2


def test_its_screen_and_its_serial_line_can_be_reached(guest: Guest) -> None:
    screen = guest.driver.console(*guest.identity, ConsoleType.NOVNC)
    greeting = f"exec 3<>/dev/tcp/{screen.host}/{screen.port}; head -c 3 <&3"
    assert guest.stand.host.run("bash", "-c", greeting) == "RFB"
    assert "mark-42" in guest.type("echo mark-$((40+2))")


def test_what_it_uses_is_told_as_it_sees_it(guest: Guest) -> None:
    told = guest.driver.diagnostics(*guest.identity)
    assert (told["num_disks"], told["num_nics"], told["config_drive"]) == (3, 1, True)
    assert told["nic_details"][0]["mac_address"] == guest.spec.network[0]["mac"]
    assert told["nic_details"][0]["tx_packets"] > 0, "it asks for an address"
    assert told["cpu_details"][0]["time"] > 0
    assert 0 < told["memory_details"]["used"] <= told["memory_details"]["maximum"]


def test_a_snapshot_has_what_it_wrote_while_it_runs_on(guest: Guest, tmp_path: Path) -> None:
    image_id, before = guest.stand.waiting_image(), guest.ticks()[-1]
    guest.driver.snapshot(*guest.identity, image_id)
    assert guest.stand.images.describe(image_id).disk_format == "qcow2"
    flat = tmp_path / "flat"
    convert = ["qemu-img", "convert", "-O", "raw", str(guest.stand.images.path(image_id)), str(flat)]
    subprocess.run(convert, check=True)
    assert flat.stat().st_size == 1 << 30
    base = guest.stand.settings.instances_path / guest.spec.uuid / "disk.base"
    assert b"BOOTS      " in _beginning(flat), "the counter that it keeps"
    assert b"BOOTS      " not in _beginning(base), "others have the same base"
    wait_until(lambda: guest.ticks()[-1] > before, "the counter to go on")


def test_a_paused_guest_can_be_put_into_an_image_too(guest: Guest) -> None:
    image_id = guest.stand.waiting_image()
    assert guest.driver.pause(*guest.identity) == PAUSED
    guest.driver.snapshot(*guest.identity, image_id)
    assert guest.driver.power(*guest.identity) == PAUSED
    assert guest.driver.unpause(*guest.identity) == RUNNING
    assert guest.stand.has_data(image_id)


def test_it_lets_go_of_a_port(guest: Guest) -> None:
    port = guest.stand.port()
    guest.driver.attach_interface(*guest.identity, port)
    wait_until(lambda: "eth1" in guest.type("ls /sys/class/net"), "the guest to see its new card")
    guest.driver.detach_interface(*guest.identity, str(port["id"]))
    wait_until(lambda: "eth1" not in guest.type("ls /sys/class/net").split("net")[-1], "the card to go")
    assert len(guest.stand.taps.plugged()) == 1


def test_it_goes_on_where_it_was_suspended_and_does_not_notice_a_restart(guest: Guest) -> None:
    before = guest.ticks()[-1]
    assert guest.driver.suspend(*guest.identity) == SUSPENDED
    assert guest.stand.host.guest_pids() == {}
    guest.stand.host.kill_libvirtd(politely=True)
    guest.stand.host.start_libvirtd()
    assert guest.driver.resume(*guest.identity) == RUNNING
    guest.driver.trigger_crash_dump(*guest.identity)
    wait_until(lambda: guest.ticks()[-1] > before + 5, "the counter to go on")
    assert guest.ticks() == sorted(guest.ticks()), "it did not begin anew"


def test_its_log_does_not_fill_the_disk(guest: Guest) -> None:
    log = guest.stand.settings.instances_path / guest.spec.uuid / "console.log"
    with log.open("ab") as file:
        file.write(b"x" * 2 * LOG_BYTES + b"\r\n")
    guest.driver.tidy_up()
    assert log.stat().st_size < LOG_BYTES
    wait_until(lambda: bool(guest.ticks()), "what it prints after that")
    assert len(guest.log()) <= LOG_BYTES


def test_without_an_agent_in_it_nobody_sets_its_password(guest: Guest) -> None:
    with pytest.raises(DriverError, match="hw_qemu_guest_agent"):
        guest.driver.change_password(*guest.identity, "secret")


def test_that_it_switched_itself_off_is_known_within_a_second(guest: Guest) -> None:
    guest.told.clear()
    address = guest.driver.console(*guest.identity, ConsoleType.SERIAL)
    typed = f"exec 3<>/dev/tcp/{address.host}/{address.port}; echo 'poweroff -f' >&3; sleep 1"
    process = subprocess.Popen(guest.stand.host.command("bash", "-c", typed))
    wait_until(lambda: not guest.stand.host.guest_pids(), "the end of QEMU")
    ended = time.monotonic()
    wait_until(lambda: any(power == SHUT_DOWN for _, power in guest.told), "the news")
    seen = next(at for at, power in guest.told if power == SHUT_DOWN)
    assert seen - ended < 1.0
    assert guest.driver.servers() == {guest.spec.uuid: SHUT_DOWN}
    process.wait()


def test_it_starts_again_with_what_is_on_its_disk_and_follows_the_power_button(guest: Guest) -> None:
    assert guest.driver.start(*guest.identity) == RUNNING
    guest.wait_for("boots=2")
    guest.wait_for("guest: ready")
    assert guest.driver.stop(*guest.identity) == SHUT_DOWN
    assert "guest: power button" in guest.log()


def _beginning(path: Path) -> bytes:
    """All that the image has, without what the flavor added."""
    with path.open("rb") as file:
        return file.read(min(os.stat(path).st_size, 64 << 20))
