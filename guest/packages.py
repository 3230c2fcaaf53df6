"""Debian's packages that the guest is made of, fetched with apt as anybody and unpacked, never installed."""

from __future__ import annotations

import platform
import re
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path

KERNEL = "linux-image-cloud-amd64"
LOADER = "ld-linux-x86-64.so.2"
_GUEST = ("busybox-static", "dropbear-bin")
_TOOLS = ("syslinux", "syslinux-common", "mtools", "dosfstools")
_DEPENDS = re.compile(r"^\s*(?:Pre)?Depends: (\S+)$", re.MULTILINE)


class PackageError(Exception):
    """What keeps the guest from being made, in a sentence."""


def unpack(cache: Path, root: Path) -> Path:
    """Everything in one tree; packages that were fetched before are not fetched again."""
    if shutil.which("apt-get") is None or platform.machine() != "x86_64":
        raise PackageError("the guest is made from Debian's packages for amd64: that needs apt and x86_64")
    cache.mkdir(parents=True, exist_ok=True)
    root.mkdir(parents=True)
    kernel = next(name for name in _depends(KERNEL) if name.startswith("linux-image-"))
    libraries = [name for name in _depends("dropbear-bin", deeply=True) if name.startswith(("lib", "zlib"))]
    for name in [kernel, *_GUEST, *_TOOLS, *libraries]:
        _run("dpkg-deb", "-x", str(_fetched(name, cache)), str(root))
    return root


def kernel(root: Path) -> Path:
    return next(root.glob("boot/vmlinuz-*"))


def modules(root: Path) -> Mapping[str, Path]:
    """By name."""
    return {path.name.removesuffix(".ko"): path for path in root.glob("lib/modules/**/*.ko")}


def libraries(root: Path, program: Path) -> list[Path]:
    """What the program needs to be run, its loader included, as the loader of the tree finds it."""
    folders = [root / "lib/x86_64-linux-gnu", root / "usr/lib/x86_64-linux-gnu"]
    loader = next(path for path in (folder / LOADER for folder in folders) if path.exists())
    listed = _run(str(loader), "--list", "--library-path", ":".join(map(str, folders)), str(program))
    found = [Path(name) for name in re.findall(r"=> (\S+) ", listed)]
    return [loader, *(path for path in found if path.is_relative_to(root) and path.name != LOADER)]


def _depends(name: str, *, deeply: bool = False) -> list[str]:
    options = ["--no-recommends", "--no-suggests", "--no-conflicts", "--no-breaks", "--no-replaces"]
    options += ["--no-enhances", *(["--recurse"] if deeply else [])]
    found = _DEPENDS.findall(_run("apt-cache", "depends", *options, name))
    return [each for each in dict.fromkeys(found) if not each.startswith("<")]


def _fetched(name: str, cache: Path) -> Path:
    have = sorted(cache.glob(f"{name}_*.deb"))
    if not have:
        _run("apt-get", "download", "-q", name, cwd=cache)
        have = sorted(cache.glob(f"{name}_*.deb"))
    return have[-1]


def _run(*command: str, cwd: Path | None = None) -> str:
    try:
        done = subprocess.run(command, check=True, capture_output=True, text=True, cwd=cwd)
    except FileNotFoundError as error:
        raise PackageError(f"{command[0]} is missing") from error
    except subprocess.CalledProcessError as error:
        raise PackageError(f"{' '.join(command[:3])}: {error.stderr.strip()}; try apt-get update") from error
    return done.stdout
