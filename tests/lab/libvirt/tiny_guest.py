"""A guest that is one sector long: it boots in a second, counts on its console, and costs next to nothing.

It counts its boots in the second sector of its disk, writes its counter there, too, and keeps changing
384 KiB of its memory, so that a live migration has something to do. `tiny_guest.s` is what it is made from:

    as --32 -o t.o tiny_guest.s && ld -m elf_i386 -Ttext 0x7c00 --oformat binary -o t.bin t.o
"""

from __future__ import annotations

import re
import struct
import subprocess
from pathlib import Path

_CODE = (
    "fa31c08ed88ec08ed0bc007cfbfc8816107eb80102bb0080b9020030f6cd13ff060080a10080a3147e66c706187e00000000bed5"
    "7ce86500660fb706147ee86700b90200f4a16c043b061c7e74f6a31c7ee2f166ff06187ea1187ebb00208ec331ffb90080f3ab81"
    "c3001081fb008075ed31c08ec066a1187e66a30480b80103bb0080b902008a16107e30f6cd13bedb7ce8090066a1187ee80d00eb"
    "a4ac84c07405e81f00ebf6c3b9080066c1c0046650240f04303c3a72020427e806006658e2e9b00a5250bafd03eca82074fb58ba"
    "f803ee5ac3626f6f7420007469636b20"
)
_SECTOR = 512


def make_disk(path: Path, size: int = 1 << 20) -> Path:
    """A raw disk that it boots from."""
    code = bytes.fromhex(_CODE)
    with path.open("wb") as file:
        file.write(code.ljust(_SECTOR - 2, b"\0") + b"\x55\xaa")
        file.truncate(size)
    return path


def boots(log: Path) -> int:
    """How often it has booted, as its console says."""
    found = re.findall(r"boot ([0-9a-f]{8})\n", log.read_text(errors="replace")) if log.exists() else []
    return int(found[-1], 16) if found else 0


def tick(log: Path) -> int:
    """How far it has counted; 0 if it has not begun."""
    found = re.findall(r"tick ([0-9a-f]{8})\n", log.read_text(errors="replace")) if log.exists() else []
    return int(found[-1], 16) if found else 0


def written(disk: Path) -> tuple[int, int]:
    """What it has written to its disk, which is not in use: the number of its boots, and its counter."""
    words = ["qemu-img", "dd", "-U", "-f", "qcow2", "-O", "raw", "bs=512", "skip=1", "count=2", f"if={disk}"]
    copy = disk.with_name(f"{disk.name}.sector")
    try:
        subprocess.run([*words, f"of={copy}"], check=True, capture_output=True)
        boots_there, ticks_there = struct.unpack_from("<II", copy.read_bytes())
    finally:
        copy.unlink(missing_ok=True)
    return boots_there, ticks_there
