"""Whether KVM runs guests on this machine: found out by running one, of nine bytes."""

from __future__ import annotations

import os
import subprocess
import tempfile
import time
from pathlib import Path

_DEVICE = Path("/dev/kvm")
_GUEST = bytes.fromhex("ba0105 b010 ee f4 ebfd").ljust(510, b"\0") + b"\x55\xaa"
"""A boot sector that writes 16 to the port of a device that then ends QEMU with 2 * 16 + 1."""
_ENDED = 33
_LONGEST_SECONDS = 20.0
_MUCH_SLOWER = 4.0


def objection_to_kvm(emulator: str) -> str | None:
    """Why not; None if it does.

    Where the processor's help is itself emulated, a guest starts, but is slower than without it.
    """
    if not os.access(_DEVICE, os.R_OK | os.W_OK):
        return f"{_DEVICE} can't be opened" if _DEVICE.exists() else f"there is no {_DEVICE}"
    accelerated, emulated = _seconds(emulator, "kvm"), _seconds(emulator, "tcg")
    if accelerated is None:
        return "QEMU could not run a guest with KVM"
    if emulated is not None and accelerated > max(1.0, emulated * _MUCH_SLOWER):
        return f"a guest takes {accelerated:.1f} s with KVM and {emulated:.1f} s without it"
    return None


def _seconds(emulator: str, accelerator: str) -> float | None:
    with tempfile.NamedTemporaryFile(prefix="moorage-guest-") as disk:
        disk.write(_GUEST)
        disk.flush()
        command = [emulator, "-accel", accelerator, "-m", "16", "-nodefaults", "-display", "none"]
        command += ["-no-reboot", "-device", "isa-debug-exit,iobase=0x501,iosize=1"]
        command += ["-drive", f"file={disk.name},format=raw,if=ide"]
        began = time.monotonic()
        try:
            ended = subprocess.run(command, capture_output=True, timeout=_LONGEST_SECONDS)
        except (OSError, subprocess.TimeoutExpired):
            return None
    return time.monotonic() - began if ended.returncode == _ENDED else None
