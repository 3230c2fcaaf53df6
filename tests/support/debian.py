"""Programs of Debian: where one is missing and we are root, it is installed, but not started as a service."""

from __future__ import annotations

import fcntl
import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

_IN_EACH_RUN = {
    "busybox-static": "/bin/busybox",
    "chromium": "/usr/bin/chromium",
    "chromium-driver": "/usr/bin/chromedriver",
    "dnsmasq-base": "/usr/sbin/dnsmasq",
    "dosfstools": "/usr/sbin/mkfs.vfat",
    "ethtool": "/usr/sbin/ethtool",
    "groff-base": "/usr/bin/groff",
    "haproxy": "/usr/sbin/haproxy",
    "iproute2": "/bin/ip",
    "iptables": "/usr/sbin/iptables",
    "iputils-ping": "/bin/ping",
    "libvirt-clients": "/usr/bin/virsh",
    "libvirt-daemon": "/usr/sbin/libvirtd",
    "libvirt-daemon-system": "/etc/libvirt/libvirtd.conf",
    "mandoc": "/usr/bin/mandoc",
    "mariadb-server": "/usr/sbin/mariadbd",
    "mtools": "/usr/bin/mcopy",
    "nftables": "/usr/sbin/nft",
    "openssh-client": "/usr/bin/ssh",
    "openvswitch-switch": "/usr/bin/ovs-vsctl",
    "ovn-central": "/usr/bin/ovn-northd",
    "ovn-host": "/usr/bin/ovn-controller",
    "postgresql": "/usr/bin/pg_createcluster",
    "prometheus": "/usr/bin/prometheus",
    "python3-libvirt": "/usr/lib/python3/dist-packages/libvirt.py",
    "qemu-system-x86": "/usr/bin/qemu-system-x86_64",
    "qemu-utils": "/usr/bin/qemu-img",
    "rabbitmq-server": "/usr/lib/rabbitmq/bin/rabbitmq-server",
}
_IN_LONG_FORMS = {
    "aardvark-dns": "/usr/lib/podman/aardvark-dns",
    "buildah": "/usr/bin/buildah",
    "crun": "/usr/bin/crun",
    "genisoimage": "/usr/bin/genisoimage",
    "libvirt-dev": "/usr/include/libvirt/libvirt.h",
    "mmdebstrap": "/usr/bin/mmdebstrap",
    "netavark": "/usr/lib/podman/netavark",
    "pkg-config": "/usr/bin/pkg-config",
    "podman": "/usr/bin/podman",
    "podman-compose": "/usr/bin/podman-compose",
}
_FILES = {package: Path(file) for package, file in {**_IN_EACH_RUN, **_IN_LONG_FORMS}.items()}
"""A file of each package, by which one sees whether it is there."""


class Unavailable(Exception):
    """A program is not there, and we may not install it."""


def install(*packages: str) -> None:
    """One after the other: the system's package manager turns a second one away."""
    with (Path(tempfile.gettempdir()) / f"moorage-debian-{os.geteuid()}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if missing := _missing(packages):
            _fetch(missing)


def install_ahead() -> str:
    """All that each run of the tests needs: at once, that takes a fraction of the time. Where it can't be,
    tests are skipped, and say why."""
    try:
        install(*_IN_EACH_RUN)
        return "Debian's packages"
    except Unavailable as missing:
        return str(missing)


def program(package: str) -> Path:
    return _FILES[package]


def _missing(packages: Iterable[str]) -> list[str]:
    return [package for package in packages if not _FILES[package].exists()]


def _fetch(packages: list[str]) -> None:
    if os.geteuid() != 0 or shutil.which("apt-get") is None:
        raise Unavailable(f"missing: install the packages {' '.join(packages)}")
    install = ("install", "-y", "--no-install-recommends", *packages)
    with _services_stay_off():
        told = _apt_get(*install)
        if _missing(packages):  # a new machine knows no packages, or only old ones
            _apt_get("update")
            told = _apt_get(*install)
    if missing := _missing(packages):
        raise Unavailable(f"can't be installed: {' '.join(missing)}: {told[-500:]}")


def _apt_get(*words: str) -> str:
    run = subprocess.run(
        ["apt-get", "-q", *words],
        env={**os.environ, "DEBIAN_FRONTEND": "noninteractive"},
        capture_output=True,
        text=True,
        check=False,
    )
    return run.stdout + run.stderr


@contextmanager
def _services_stay_off() -> Iterator[None]:
    """Debian asks this file before it starts a service; a test must not leave one running."""
    policy = Path("/usr/sbin/policy-rc.d")
    if policy.exists():
        yield
        return
    policy.write_text("#!/bin/sh\nexit 101\n")
    policy.chmod(0o755)
    try:
        yield
    finally:
        policy.unlink()
