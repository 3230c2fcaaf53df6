"""Whether this machine can run guests, and what to install if it can't. Nothing is changed by looking."""

from __future__ import annotations

import importlib.util
import os
import pwd
import re
import shutil
import stat
from collections.abc import Callable, Iterator
from pathlib import Path

from oslo_config import cfg

from moorage.drivers.host_check import CheckOutcome, HostCheck
from moorage.drivers.libvirt import acceleration, qemu_account
from moorage.drivers.libvirt.host import post_copy

_BINDING = "apt-get install libvirt-dev pkg-config gcc python3-dev && pip install 'moorage[libvirt]'"
_PROGRAMS = {
    "qemu-system-x86_64": "qemu-system-x86",
    "qemu-img": "qemu-utils",
    "ip": "iproute2",
}
"""What guests need, by Debian's package."""
_NETWORK_PROGRAMS = {"nft": "nftables", "dnsmasq": "dnsmasq-base"}
"""What the built-in network needs besides."""
_DAEMON_CONFS = (Path("/etc/libvirt/virtqemud.conf"), Path("/etc/libvirt/libvirtd.conf"))
_KEEPALIVE = re.compile(r"^\s*keepalive_(interval|count)\s*=\s*(-?\d+)", re.MULTILINE)


def check(conf: cfg.ConfigOpts) -> list[HostCheck]:
    parts: tuple[Callable[[cfg.ConfigOpts], Iterator[HostCheck]], ...] = (
        _binding,
        _programs,
        _libvirt,
        _client_timeout,
        _acceleration,
        _instances,
        _post_copy,
    )
    return [found for part in parts for found in part(conf)]


def _binding(conf: cfg.ConfigOpts) -> Iterator[HostCheck]:
    if importlib.util.find_spec("libvirt") is None:
        yield _failed("libvirt's Python binding", "not installed", _BINDING)
    else:
        yield _ok("libvirt's Python binding", "installed")


def _programs(conf: cfg.ConfigOpts) -> Iterator[HostCheck]:
    for program, package in _PROGRAMS.items():
        yield _program(program, package, CheckOutcome.FAILED)
    if conf.network.provider == "pool":
        for program, package in _NETWORK_PROGRAMS.items():
            yield _program(program, package, CheckOutcome.WARNING)
        if os.geteuid() != 0:
            yield HostCheck(
                "privileges",
                CheckOutcome.WARNING,
                "the built-in network makes bridges and rules, for which an agent has to be root",
                "run it as root",
            )


def _program(program: str, package: str, unless: CheckOutcome) -> HostCheck:
    path = shutil.which(program, path=f"{os.environ.get('PATH', '')}:/usr/sbin:/sbin")
    if path is not None:
        return _ok(program, path)
    return HostCheck(program, unless, "not found", f"apt-get install {package}")


def _libvirt(conf: cfg.ConfigOpts) -> Iterator[HostCheck]:
    if importlib.util.find_spec("libvirt") is None:
        return
    import libvirt

    libvirt.registerErrorHandler(lambda *_: None, None)
    uri = conf.libvirt.connection_uri
    try:
        connection = libvirt.open(uri)
    except libvirt.libvirtError as error:
        yield _failed(
            uri,
            str(error),
            "apt-get install libvirt-daemon-system && systemctl start libvirtd; an account other than root "
            "has to be in the group libvirt",
        )
        return
    try:
        number = connection.getLibVersion()
        yield _ok(uri, f"libvirt {number // 1_000_000}.{number // 1000 % 1000}.{number % 1000}")
    finally:
        connection.close()


def _client_timeout(conf: cfg.ConfigOpts) -> Iterator[HostCheck]:
    """What is said of libvirtd is relied on: a client that stands still for longer must not be heard."""
    name, said = "libvirtd's keepalive", conf.libvirt.client_timeout
    for path in filter(os.path.exists, _DAEMON_CONFS):
        try:
            found = {key: int(value) for key, value in _KEEPALIVE.findall(path.read_text())}
        except OSError:
            continue
        interval, count = found.get("interval", 5), found.get("count", 5)
        seconds = interval * (count + 1) if interval > 0 else float("inf")
        if seconds > said:
            advice = f"`client_timeout = {seconds}` in [libvirt], or a smaller keepalive_interval in {path}"
            if interval <= 0:
                advice = f"keepalive_interval = 5 in {path}"
            yield _failed(name, f"a client that stands still is kept for {seconds} s, not {said} s", advice)
        else:
            yield _ok(name, f"a client that stands still is given up after {seconds} s ({path.name})")


def _acceleration(conf: cfg.ConfigOpts) -> Iterator[HostCheck]:
    """Tried out, since there are machines whose /dev/kvm looks right and is not."""
    emulator = shutil.which("qemu-system-x86_64")
    if emulator is None:
        return
    name = "hardware virtualisation"
    objection = acceleration.objection_to_kvm(emulator)
    if conf.libvirt.virt_type == "kvm":
        if objection is None:
            yield _ok(name, "KVM runs guests")
        else:
            advice = (
                "use emulation, which is slow: `virt_type = qemu` in [libvirt] of a file, `--config FILE`"
            )
            yield _failed(name, objection, advice)
    elif objection is None:
        advice = "`virt_type = kvm` in [libvirt]"
        yield HostCheck(name, CheckOutcome.WARNING, "guests are emulated, though KVM would do", advice)
    else:
        yield _ok(name, f"guests are emulated ({objection})")


def _instances(conf: cfg.ConfigOpts) -> Iterator[HostCheck]:
    path = Path(conf.libvirt.instances_path)
    existing = next(each for each in (path, *path.parents) if each.exists())
    name = "directory of the disks"
    if not os.access(existing, os.W_OK):
        yield _failed(name, f"{existing} can't be written to", f"chown {_account()} {existing}")
        return
    closed = [each for each in (existing, *existing.parents) if not _may_enter(each)]
    if closed:
        yield _failed(
            name, f"QEMU's account can't enter {closed[0]}", f"chmod o+x {closed[0]}, or another path"
        )
        return
    free = shutil.disk_usage(existing).free // 1024**3
    outcome = CheckOutcome.OK if free >= 1 else CheckOutcome.WARNING
    yield HostCheck(name, outcome, f"{path}, {free} GiB free")


def _post_copy(conf: cfg.ConfigOpts) -> Iterator[HostCheck]:
    objection = post_copy.objection()
    if conf.libvirt.live_migration_permit_post_copy and objection is not None:
        advice = f"sysctl -w {post_copy.SETTING}=1, and in /etc/sysctl.d to keep it"
        yield HostCheck("post-copy", CheckOutcome.WARNING, objection, advice)


def _may_enter(directory: Path) -> bool:
    """Whether the account that QEMU runs as may, if that can be told."""
    account = qemu_account.find()
    if account is None or account.pw_uid == 0:
        return True
    found = directory.stat()
    if found.st_uid == account.pw_uid:
        return bool(found.st_mode & stat.S_IXUSR)
    if found.st_gid == account.pw_gid:
        return bool(found.st_mode & stat.S_IXGRP)
    return bool(found.st_mode & stat.S_IXOTH)


def _account() -> str:
    return pwd.getpwuid(os.geteuid()).pw_name


def _ok(name: str, found: str) -> HostCheck:
    return HostCheck(name, CheckOutcome.OK, found)


def _failed(name: str, found: str, advice: str) -> HostCheck:
    return HostCheck(name, CheckOutcome.FAILED, found, advice)
