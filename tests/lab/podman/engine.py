"""Podman as a machine of its own would have it: nobody else sees its containers, networks and ports.

It lives in namespaces, where the places that it writes to are others, and all of it is gone with them. There
is no way out of there: what it needs of the world is fetched before.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.support import debian
from tests.support.debian import Unavailable
from tests.support.environments import Environment
from tests.support.namespaces import Namespace
from tests.support.processes import Command, start_service

HERE = Path(__file__).resolve().parent
NEWER_COMPOSE = Environment("podman-compose", HERE / "requirements.txt", HERE / "constraints.txt")
DEBIANS_COMPOSE = debian.program("podman-compose")
_PACKAGES = ("podman", "podman-compose", "crun", "netavark", "aardvark-dns", "iptables")
"""The engine only recommends or suggests the last three, and can't do without them."""
_APART = ("unshare", "--mount", "--net", "--pid", "--fork", "--kill-child", "--mount-proc")
_ROOM = """\
set -e
for place in /run /dev/shm /var/cache; do mount -t tmpfs tmpfs $place; done
mkdir -p /var/lib/containers
mount --bind "$0/storage" /var/lib/containers
if mountpoint -q /sys/fs/cgroup/unified; then umount /sys/fs/cgroup/unified; fi
ip link set lo up
touch "$0/ready"
sleep infinity &
wait
"""
"""crun refuses a machine that has control groups of both versions. The shell stays, as the parent of those
that have lost theirs."""
_CONFIGURATION = """\
[containers]
cgroups = "disabled"
[engine]
cgroup_manager = "cgroupfs"
events_logger = "file"
[network]
network_backend = "netavark"
network_config_dir = "{directory}/networks"
"""
"""There is no systemd here, to ask for a control group or to write to its journal."""


class Podman:
    def __init__(self, directory: Path, first: int) -> None:
        """`first` is the process that the namespaces live with."""
        self._directory = directory
        self._first = first
        self.network = Namespace("podman", Path(f"/proc/{first}/ns/net"))

    def run(self, *words: str | Path, within: Path | None = None) -> str:
        """A command in there; what it said."""
        inside = ["nsenter", "--target", str(self._first), "--mount", "--net", "--pid"]
        ran = subprocess.run(
            [*inside, f"--wd={within or self._directory}", "--", *words],
            env={**os.environ, "CONTAINERS_CONF": str(self._directory / "containers.conf")},
            capture_output=True,
            text=True,
            check=False,
        )
        assert ran.returncode == 0, f"{words}: {ran.stdout[-5000:]}{ran.stderr[-5000:]}"
        return ran.stdout

    def containers(self, service: str | None = None) -> list[str]:
        """Their names; those of one service of a compose file, or all, also if they have ended."""
        chosen = [] if service is None else ["--filter", f"label=com.docker.compose.service={service}"]
        return sorted(self.run("podman", "ps", "--all", *chosen, "--format", "{{.Names}}").split())

    def state(self, container: str) -> str:
        return self._inspected(container, "{{.State.Status}}")

    def restarts(self, container: str) -> int:
        return int(self._inspected(container, "{{.RestartCount}}"))

    def crash(self, container: str) -> None:
        """Its process dies. Whoever asks the engine to kill it does not want it back."""
        self.run("sh", "-c", 'kill -9 "$0"', self._inspected(container, "{{.State.Pid}}"))

    def tell(self) -> str:
        """How all containers are, and what each has said last."""
        logs = 'podman ps --all; for name; do echo "== $name"; podman logs --tail 5 "$name"; done 2>&1'
        return self.run("sh", "-c", logs, "sh", *self.containers())

    def _inspected(self, container: str, wanted: str) -> str:
        return self.run("podman", "inspect", "--format", wanted, container).strip()


@contextmanager
def start(directory: Path) -> Iterator[Podman]:
    """What it stores is in `directory`, and goes. Raises `Unavailable`."""
    debian.install(*_PACKAGES)
    if os.geteuid() != 0:
        raise Unavailable("only root makes the namespaces")
    for name in ("storage", "networks"):
        (directory / name).mkdir(parents=True)
    (directory / "containers.conf").write_text(_CONFIGURATION.format(directory=directory))
    command: Command = [*_APART, "sh", "-c", _ROOM, directory]
    ready = (directory / "ready").exists
    service = start_service(command, 0, directory / "podman.log", ready=ready)
    try:
        yield Podman(directory, _child(service.pid))
    finally:
        service.kill()
        shutil.rmtree(directory / "storage", ignore_errors=True)


def _child(pid: int) -> int:
    return int(Path(f"/proc/{pid}/task/{pid}/children").read_text())
