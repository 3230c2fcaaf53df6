"""What the libvirt hosts of the tests run: Debian's programs, and the Python binding, kept apart."""

from __future__ import annotations

import fcntl
import importlib
import shutil
import subprocess
import sys
from pathlib import Path

from tests.support import debian

CACHE = (Path(__file__).resolve().parents[3] / ".cache").resolve()
_PACKAGES = (
    *("qemu-system-x86", "qemu-utils", "iproute2"),
    *("libvirt-daemon", "libvirt-daemon-system", "libvirt-clients"),
)
_BINDING = debian.program("python3-libvirt")


def install() -> None:
    """`debian.Unavailable` if something is missing that we may not install."""
    debian.install(*_PACKAGES)


def ready() -> str:
    """Ahead of time what tests would do; where that can't be, they are skipped, and say why."""
    try:
        install()
        return str(binding())
    except debian.Unavailable as missing:
        return str(missing)


def binding() -> Path:
    """A directory for PYTHONPATH in which there is `libvirt`, and nothing else."""
    directory = CACHE / f"libvirt-python-{sys.version_info.major}.{sys.version_info.minor}"
    CACHE.mkdir(exist_ok=True)
    with (CACHE / "libvirt-python.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (directory / "libvirt.py").exists():
            _make(directory)
    return directory


def use_binding() -> None:
    """Let this process find `libvirt`, if it does not already."""
    try:
        importlib.import_module("libvirt")
    except ImportError:
        sys.path.append(str(binding()))
        importlib.invalidate_caches()


def _make(directory: Path) -> None:
    """Debian's own, if it is for this Python; what PyPI has must be compiled, which takes a minute."""
    debian.install("python3-libvirt")
    made = directory.with_suffix(".new")
    shutil.rmtree(made, ignore_errors=True)
    made.mkdir()
    tag = f"cpython-{sys.version_info.major}{sys.version_info.minor}"
    compiled = [
        path for path in _BINDING.parent.glob("libvirtmod*.so") if tag in path.name and "lxc" not in path.name
    ]
    if compiled:
        for path in (_BINDING, _BINDING.with_name("libvirt_qemu.py"), *compiled):
            shutil.copy(path, made)
    else:
        debian.install("libvirt-dev", "pkg-config")
        pip = [sys.executable, "-m", "pip", "install", "--quiet", "--target", str(made), "libvirt-python"]
        subprocess.run(pip, check=True)
    made.rename(directory)
