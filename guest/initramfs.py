"""All files of the guest in one archive, which the kernel unpacks into memory: it has no other root."""

from __future__ import annotations

import gzip
import re
import stat
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from guest import packages

_HERE = Path(__file__).parent
_MODULES = (
    *("virtio_pci", "virtio_net", "virtio_blk", "virtio_scsi", "virtio_console", "virtio_balloon"),
    *("virtio-rng", "sd_mod", "sr_mod", "ata_piix", "ahci", "e1000", "e1000e"),
    *("isofs", "vfat", "nls_ascii", "nls_cp437", "nls_iso8859-1", "nls_utf8", "button", "evdev"),
)
_DEPENDS = re.compile(rb"\0depends=([^\0]*)\0")
_FOLDERS = (
    "bin",
    "dev",
    "etc",
    "etc/dropbear",
    "lib",
    "lib64",
    "modules",
    "proc",
    "root",
    "run",
    "sys",
    "tmp",
)
_ACCOUNT = "root:x:0:0:root:/root:/bin/sh\n"


@dataclass(frozen=True)
class Entry:
    name: str
    mode: int
    data: bytes = b""
    """For a link, where it points."""
    device: tuple[int, int] = (0, 0)


def build(root: Path) -> bytes:
    return gzip.compress(_archive(_entries(root)), 6, mtime=0)


def _entries(root: Path) -> Iterator[Entry]:
    for folder in _FOLDERS:
        yield Entry(folder, stat.S_IFDIR | (0o700 if folder == "root" else 0o755))
    yield Entry("dev/console", stat.S_IFCHR | 0o600, device=(5, 1))
    yield Entry("dev/null", stat.S_IFCHR | 0o666, device=(1, 3))
    yield _program("bin/busybox", _one(root, "bin/busybox", "usr/bin/busybox"))
    yield Entry("bin/sh", stat.S_IFLNK | 0o777, b"busybox")
    yield _program("init", _HERE / "init")
    yield _program("udhcpc", _HERE / "udhcpc")
    server = _one(root, "usr/sbin/dropbear")
    yield _program("bin/dropbear", server)
    for library in packages.libraries(root, server):
        folder = "lib64" if library.name == packages.LOADER else "lib"
        yield _program(f"{folder}/{library.name}", library)
    for name, text in {"passwd": _ACCOUNT, "group": "root:x:0:\n", "shells": "/bin/sh\n"}.items():
        yield Entry(f"etc/{name}", stat.S_IFREG | 0o644, text.encode())
    modules = packages.modules(root)
    names = _in_order(modules)
    yield Entry("modules/order", stat.S_IFREG | 0o644, "\n".join(names).encode())
    for name in names:
        yield Entry(f"modules/{name}.ko", stat.S_IFREG | 0o644, modules[name].read_bytes())


def _program(name: str, path: Path) -> Entry:
    return Entry(name, stat.S_IFREG | 0o755, path.read_bytes())


def _one(root: Path, *places: str) -> Path:
    return next(root / place for place in places if (root / place).exists())


def _in_order(modules: Mapping[str, Path]) -> list[str]:
    """Each after those that it needs; what is built into this kernel is left out."""
    ordered: list[str] = []

    def add(wanted: str) -> None:
        spellings = (wanted, wanted.replace("-", "_"), wanted.replace("_", "-"))
        name = next((each for each in spellings if each in modules), None)
        if name is None or name in ordered:
            return
        found = _DEPENDS.search(modules[name].read_bytes())
        for needed in (found.group(1).decode() if found else "").split(","):
            if needed:
                add(needed)
        ordered.append(name)

    for wanted in _MODULES:
        add(wanted)
    return ordered


def _archive(entries: Iterator[Entry]) -> bytes:
    """In the format that kernels read (`newc`): no program makes device files in one without being root."""
    parts: list[bytes] = []
    for number, entry in enumerate([*entries, Entry("TRAILER!!!", 0)], start=1):
        name = entry.name.encode() + b"\0"
        fields = (
            *(number, entry.mode, 0, 0, 1, 0, len(entry.data), 0, 0),
            *(*entry.device, len(name), 0),
        )
        head = b"070701" + b"".join(b"%08X" % field for field in fields) + name
        parts += [_padded(head), _padded(entry.data)]
    return b"".join(parts)


def _padded(data: bytes) -> bytes:
    return data + b"\0" * (-len(data) % 4)
