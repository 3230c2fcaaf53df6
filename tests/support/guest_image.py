"""The small guest that `make guest-image` makes, for tests that boot real machines."""

from __future__ import annotations

import fcntl
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
DIRECTORY = ROOT / ".cache" / "guest"


@dataclass(frozen=True)
class GuestImage:
    disk: Path
    """A qcow2 that boots by itself."""
    kernel: Path
    ramdisk: Path
    command_line: str


def guest_image() -> GuestImage:
    """Made once for all tests. RuntimeError where it can't be, with the reason."""
    DIRECTORY.mkdir(parents=True, exist_ok=True)
    disk = DIRECTORY / "disk.qcow2"
    with (DIRECTORY / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        newest = max(path.stat().st_mtime for path in (ROOT / "guest").iterdir() if path.is_file())
        if not disk.exists() or disk.stat().st_mtime < newest:
            command = [sys.executable, "-m", "guest", str(DIRECTORY)]
            made = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
            if made.returncode != 0:
                raise RuntimeError(made.stderr)
    return GuestImage(
        disk, DIRECTORY / "vmlinuz", DIRECTORY / "initrd", (DIRECTORY / "cmdline").read_text().strip()
    )
