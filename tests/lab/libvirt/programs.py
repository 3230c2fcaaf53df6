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
_PROGRAMS = {
    "qemu-system-x86": Path("/usr/bin/qemu-system-x86_64"),
    "qemu-utils": Path("/usr/bin/qemu-img"),
    "libvirt-daemon": Path("/usr/sbin/libvirtd"),
    "libvirt-daemon-system": Path("/etc/libvirt/libvirtd.conf"),
    "libvirt-clients": Path("/usr/bin/virsh"),
    "iproute2": Path("/bin/ip"),
}
_BINDING = Path("/usr/lib/python3/dist-packages/libvirt.py")
_TO_BUILD = {"libvirt-dev": Path("/usr/include/libvirt/libvirt.h"), "pkg-config": Path("/usr/bin/pkg-config")}


def install() -> None:
    """`debian.Unavailable` if something is missing that we may not install."""
    for package, program in _PROGRAMS.items():
        debian.install(package, program)


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
    debian.install("python3-libvirt", _BINDING)
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
        for package, program in _TO_BUILD.items():
            debian.install(package, program)
        pip = [sys.executable, "-m", "pip", "install", "--quiet", "--target", str(made), "libvirt-python"]
        subprocess.run(pip, check=True)
    made.rename(directory)
