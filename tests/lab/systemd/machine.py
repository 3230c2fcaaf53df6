"""systemd as the first process of a Debian in namespaces of its own: units, journal, reboots.

It has a control group and a network of its own, and no way out: what it shall install is fetched before. It
may change nothing of the kernel, which it shares with everybody: `systemd-sysctl` would do so.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from tests.support.debian import Unavailable
from tests.support.debian_root import PATH, Root, said
from tests.support.namespaces import Namespace
from tests.support.processes import Command, Service, start_service, wait_until

PACKAGES = ("systemd", "systemd-sysv", "dbus", "iproute2")
_APART = ("unshare", "--cgroup", "--mount", "--net", "--uts", "--ipc", "--pid", "--fork", "--kill-child")
_SHARED_WITH_ALL = (
    "dev-hugepages.mount",
    "sys-fs-fuse-connections.mount",
    "sys-kernel-config.mount",
    "sys-kernel-debug.mount",
    "sys-kernel-tracing.mount",
    "systemd-modules-load.service",
    "systemd-sysctl.service",
)
"""Units that are about the kernel."""
_AT_HOME = ("sh", "-c", 'cd / && exec "$0" "$@"')
_JOIN = 'echo $$ > "$0/cgroup.procs" && exec "$@"'
_BOOT = f"""\
set -e
mount --make-rprivate /
mount --bind "$0" "$0"
mount -t proc proc "$0/proc"
mount --bind "$0/proc/sys" "$0/proc/sys"
mount -o remount,bind,ro "$0/proc/sys"
mount -t sysfs -o ro sysfs "$0/sys"
mount -t cgroup2 cgroup2 "$0/sys/fs/cgroup"
for place in run tmp dev; do mount -t tmpfs -o mode=755 tmpfs "$0/$place"; done
chmod 1777 "$0/tmp"
for device in null zero full random urandom tty; do
    touch "$0/dev/$device"
    mount --bind "/dev/$device" "$0/dev/$device"
done
mkdir "$0/dev/pts" "$0/dev/shm"
mount -t devpts -o newinstance,ptmxmode=666 devpts "$0/dev/pts"
mount -t tmpfs tmpfs "$0/dev/shm"
ln -s pts/ptmx "$0/dev/ptmx"
ln -s /proc/self/fd "$0/dev/fd"
hostname control-1
ip link set lo up
cd "$0"
mkdir -p .outside
pivot_root . .outside
umount -l .outside
exec setpriv --bounding-set=-sys_time,-sys_module,-sys_rawio,-syslog \\
    env -i container=other PATH={PATH} /lib/systemd/systemd
"""


class Machine:
    def __init__(self, root: Root, group: Path, log: Path) -> None:
        self.root = root
        self._group = group
        self._log = log
        self._service: Service | None = None

    @property
    def network(self) -> Namespace:
        return Namespace("machine", Path(f"/proc/{self._first()}/ns/net"))

    def boot(self) -> None:
        """Returns when all that is enabled has been started."""
        command: Command = ["sh", "-c", _JOIN, self._group, *_APART, "sh", "-c", _BOOT, self.root.directory]
        self._service = start_service(command, 0, self._log, ready=lambda: True)
        wait_until(self._is_up, "all units to be started", 180)

    def cut(self) -> None:
        """The power is gone."""
        if self._service is not None:
            self._service.kill()
            self._service = None

    def run(self, *words: str, given: str = "") -> str:
        inside = ["--mount", "--net", "--uts", "--ipc", "--pid", "--cgroup", "--root"]
        return said(["nsenter", f"--target={self._first()}", *inside, "--", *_AT_HOME, *words], given)

    def type(self, line: str, given: str = "") -> str:
        """As an operator, root's shell in /."""
        return self.run("sh", "-c", line, given=given)

    def shows(self, unit: str, *properties: str) -> list[str]:
        """What systemd knows of a unit."""
        return [
            self.run("systemctl", "show", "--value", "--property", each, unit).strip() for each in properties
        ]

    def journal(self, unit: str) -> str:
        return self.run("journalctl", "--no-pager", "--output=cat", "--unit", unit)

    def _is_up(self) -> bool:
        assert self._service is not None
        if self._service.process.poll() is not None:
            raise Unavailable(f"systemd can't be the first process here: {self._service.log_tail()}")
        with suppress(AssertionError, OSError, ValueError):
            state = self.type("systemctl is-system-running || true").strip()
            return state in ("running", "degraded")
        return False

    def _first(self) -> int:
        assert self._service is not None
        pid = self._service.pid
        return int(Path(f"/proc/{pid}/task/{pid}/children").read_text())


@contextmanager
def booted(root: Root, log: Path) -> Iterator[Machine]:
    """It is cut off in the end. Raises `Unavailable`, if systemd can't be started."""
    for unit in _SHARED_WITH_ALL:
        (root.directory / "etc/systemd/system" / unit).symlink_to("/dev/null")
    (root.directory / "etc/hosts").write_text("127.0.0.1 localhost control-1\n")
    group = _group()
    machine = Machine(root, group, log)
    try:
        machine.boot()
        yield machine
    finally:
        machine.cut()
        _remove(group)


def _group() -> Path:
    """A new control group; systemd needs the second version of them, but none of its controllers."""
    if os.geteuid() != 0:
        raise Unavailable("only root makes the namespaces")
    for line in Path("/proc/mounts").read_text().splitlines():
        _, place, kind, *_ = line.split()
        if kind == "cgroup2":
            group = Path(place) / f"moorage-systemd-{os.getpid()}"
            try:
                group.mkdir()
            except OSError as error:
                raise Unavailable(f"no control group for systemd: {error}") from error
            return group
    raise Unavailable("systemd needs control groups of version 2, which are not mounted here")


def _remove(group: Path) -> None:
    def gone() -> bool:
        with suppress(OSError):
            for each in sorted((path for path in group.rglob("*") if path.is_dir()), reverse=True):
                each.rmdir()
            group.rmdir()
        return not group.exists()

    wait_until(gone, f"{group} to be empty")
