"""A disk that boots by itself, with BIOS: one FAT partition with kernel, archive and syslinux."""

from __future__ import annotations

import os
import shutil
import struct
import subprocess
from dataclasses import dataclass
from pathlib import Path

LABEL = "GUESTROOT"
_SECTOR = 512
_FIRST = 2048
"""Where the partition begins, in sectors."""
_SECTORS = 64 * 2048
_ACTIVE, _FAT16 = 0x80, 0x0E
_NO_CYLINDERS = b"\xfe\xff\xff"


@dataclass(frozen=True)
class Boot:
    kernel: Path
    ramdisk: Path
    command_line: str


def build(path: Path, boot: Boot, tools: Path) -> None:
    """`tools` is a tree with the programs that make it; none of them needs to be root."""
    partition = path.with_suffix(".partition")
    with partition.open("wb") as file:
        file.truncate((_SECTORS - _FIRST) * _SECTOR)
    _run(tools, "mkfs.fat", "-F", "16", "-n", LABEL, "-h", str(_FIRST), str(partition))
    menu = path.with_suffix(".cfg")
    menu.write_text(
        "DEFAULT guest\nPROMPT 0\nTIMEOUT 0\nLABEL guest\n"
        f" KERNEL /vmlinuz\n INITRD /initrd\n APPEND {boot.command_line}\n"
    )
    files = {"vmlinuz": boot.kernel, "initrd": boot.ramdisk, "syslinux.cfg": menu}
    for name, source in files.items():
        _run(tools, "mcopy", "-i", str(partition), str(source), f"::{name}")
    _run(tools, "syslinux", "--install", str(partition))
    with path.open("wb") as file, partition.open("rb") as content:
        file.write(_master_boot_record(tools))
        file.seek(_FIRST * _SECTOR)
        shutil.copyfileobj(content, file)


def _master_boot_record(tools: Path) -> bytes:
    code = (tools / "usr/lib/syslinux/mbr/mbr.bin").read_bytes()[:440].ljust(440, b"\0")
    entry = struct.pack("<B3sB3sII", _ACTIVE, _NO_CYLINDERS, _FAT16, _NO_CYLINDERS, _FIRST, _SECTORS - _FIRST)
    return code + os.urandom(4) + b"\0\0" + entry + bytes(48) + b"\x55\xaa"


def _run(tools: Path, *command: str) -> None:
    folders = [str(tools / folder) for folder in ("usr/bin", "usr/sbin", "sbin", "bin")]
    environment = {**os.environ, "PATH": os.pathsep.join([*folders, os.environ["PATH"]])}
    subprocess.run(command, check=True, capture_output=True, text=True, env=environment)
