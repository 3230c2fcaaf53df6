"""`python3 -m guest DIRECTORY`: make the guest there."""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from guest import disk, initramfs, packages

COMMAND_LINE = "console=tty0 console=ttyS0,115200 quiet no_timer_check panic=5 mitigations=off nokaslr"
"""A short kernel log: on a serial line every character costs time. Nothing in the guest has to be guarded
from the guest itself: without that, an emulated processor boots it in four fifths of the time."""


def main() -> int:
    target = Path(sys.argv[1]).absolute()
    target.mkdir(parents=True, exist_ok=True)
    try:
        _make(target)
    except (packages.PackageError, OSError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    except subprocess.CalledProcessError as error:
        print(f"error: {' '.join(map(str, error.cmd))}: {error.stderr}", file=sys.stderr)
        return 1
    return 0


def _make(target: Path) -> None:
    if shutil.which("qemu-img") is None:
        raise packages.PackageError("qemu-img is missing; on Debian: apt-get install qemu-utils")
    with tempfile.TemporaryDirectory(dir=target) as scratch:
        root = packages.unpack(target / "packages", Path(scratch) / "root")
        kernel, ramdisk = target / "vmlinuz", target / "initrd"
        shutil.copy(packages.kernel(root), kernel)
        ramdisk.write_bytes(initramfs.build(root))
        (target / "cmdline").write_text(COMMAND_LINE + "\n")
        raw = Path(scratch) / "disk.raw"
        disk.build(raw, disk.Boot(kernel, ramdisk, COMMAND_LINE), root)
        finished = Path(scratch) / "disk.qcow2"
        convert = ["qemu-img", "convert", "-q", "-c", "-O", "qcow2", str(raw), str(finished)]
        subprocess.run(convert, check=True, capture_output=True, text=True)
        finished.replace(target / "disk.qcow2")
    for name in ("vmlinuz", "initrd", "disk.qcow2"):
        print(f"{target / name}: {(target / name).stat().st_size / 2**20:.1f} MiB")


sys.exit(main())
