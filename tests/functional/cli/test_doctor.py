"""`moorage doctor`, and what `moorage up` makes of what it finds."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
from pathlib import Path
from typing import Any

import msgspec
import pytest

from moorage.drivers.libvirt import acceleration

MOORAGE = Path(sys.executable).parent / "moorage"


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    """As on a machine that has no QEMU."""
    environment = {**os.environ, "PATH": "/nowhere"}
    return subprocess.run(
        [sys.executable, str(MOORAGE), *arguments], capture_output=True, text=True, env=environment
    )


def checks(config: Path) -> dict[str, Any]:
    ended = run("doctor", "--driver", "libvirt", "--config", str(config), "--json")
    return {check["name"]: check for check in msgspec.json.decode(ended.stdout)}


def test_simulated_hosts_need_nothing() -> None:
    ended = run("doctor", "--json")
    assert (ended.returncode, msgspec.json.decode(ended.stdout)) == (0, [])


def test_what_is_missing_is_named_with_what_to_do(tmp_path: Path) -> None:
    config = tmp_path / "moorage.conf"
    config.write_text("[libvirt]\nconnection_uri = test:///nowhere\n")
    found = checks(config)
    assert found["qemu-img"]["advice"] == "apt-get install qemu-utils"
    for check in found.values():
        assert (check["outcome"] == "failed") <= bool(check["advice"]), check
    ended = run("doctor", "--driver", "libvirt", "--config", str(config))
    assert ended.returncode == 1
    assert "failed" in ended.stdout


def test_up_says_it_too_and_leaves_nothing_running(tmp_path: Path) -> None:
    config = tmp_path / "moorage.conf"
    config.write_text("[libvirt]\nconnection_uri = test:///nowhere\n")
    ended = run("up", "--driver", "libvirt", "--data", str(tmp_path / "data"), "--config", str(config))
    assert ended.returncode != 0
    assert "can't run servers on this machine" in ended.stderr
    assert "→" in ended.stderr


@pytest.mark.parametrize(
    ("seconds", "objection"),
    [({"kvm": 0, "tcg": 0}, None), ({"kvm": 3, "tcg": 0}, "with KVM"), ({"tcg": 0}, "could not run")],
)
def test_kvm_is_tried_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seconds: dict[str, int], objection: str | None
) -> None:
    """With an emulator that takes as long as we say, and ends as the guest of nine bytes would have it."""
    emulator = tmp_path / "qemu"
    cases = "\n".join(f"*'-accel {name}'*) sleep {time}; exit 33;;" for name, time in seconds.items())
    emulator.write_text(f'#!/bin/sh\ncase "$*" in\n{cases}\nesac\nexit 1\n')
    emulator.chmod(emulator.stat().st_mode | stat.S_IXUSR)
    monkeypatch.setattr(acceleration, "_DEVICE", tmp_path)
    found = acceleration.objection_to_kvm(str(emulator))
    assert found is objection if objection is None else objection in str(found)


def test_without_the_device_there_is_no_kvm(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(acceleration, "_DEVICE", tmp_path / "kvm")
    assert "there is no" in str(acceleration.objection_to_kvm("/bin/true"))
