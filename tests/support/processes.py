"""Starting, watching and ending server processes: what every test of a running service needs."""

from __future__ import annotations

import contextlib
import http.client
import os
import random
import signal
import socket
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Self

Command = Sequence[str | Path]


class NotReadyError(Exception):
    """A process did not come up; the message carries the end of its log."""


def free_port() -> int:
    """A port that nobody listens on, outside the range that outgoing connections take theirs from: a server
    that is killed must find it free when it comes back."""
    while True:
        port = random.SystemRandom().randrange(10_000, 32_000)
        with socket.socket() as probe, contextlib.suppress(OSError):
            probe.bind(("127.0.0.1", port))
            return port


def wait_until(condition: Callable[[], bool], what: str, timeout: float = 60.0) -> None:
    """Looks less often the longer it takes, and rests three times as long as a look takes: those that are
    waited for need the processors, too."""
    begun = time.monotonic()
    while True:
        looked = time.monotonic()
        if condition():
            return
        now = time.monotonic()
        if now > begun + timeout:
            raise NotReadyError(f"timed out waiting for {what}")
        time.sleep(max(0.01, 3 * (now - looked), min(0.25, (now - begun) / 5)))


def is_alive(pid: int) -> bool:
    """A zombie has no work left in it, so it does not count."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return False
    return stat.rpartition(")")[2].split()[0] != "Z"


def process_tree(root: int) -> list[int]:
    """A process and all its descendants: workers hold the sockets and the memory, not the master."""
    children: dict[int, list[int]] = {}
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            parent = int(stat.read_text().rpartition(")")[2].split()[1])
            children.setdefault(parent, []).append(int(stat.parent.name))
    found, todo = [], [root]
    while todo:
        pid = todo.pop()
        if is_alive(pid):
            found.append(pid)
        todo.extend(children.get(pid, ()))
    return found


def memory_of(pid: int) -> int:
    """Resident bytes of one process."""
    pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE")


def cpu_seconds(pids: Sequence[int]) -> float:
    """Processor time that some processes have used so far: unlike time on the clock, it does not grow when
    the machine is busy with something else."""
    ticks = 0
    for pid in pids:
        with contextlib.suppress(OSError):
            fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
            ticks += int(fields[11]) + int(fields[12])
    return ticks / os.sysconf("SC_CLK_TCK")


@dataclass
class Service:
    """A server process that we started and will end."""

    process: subprocess.Popen[bytes]
    port: int
    log: Path

    @property
    def pid(self) -> int:
        return self.process.pid

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def pids(self) -> list[int]:
        return process_tree(self.pid)

    def stop(self, timeout: float = 20.0) -> None:
        """A clean end; a master that is already gone may have left workers behind."""
        pids = self.pids()
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
            with contextlib.suppress(subprocess.TimeoutExpired):
                self.process.wait(timeout)
        self._kill(pids)

    def kill(self) -> None:
        """SIGKILL to every process of the service at once: what a power cut does."""
        self._kill(self.pids())

    def _kill(self, pids: Sequence[int]) -> None:
        for pid in pids:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        self.process.wait()
        wait_until(lambda: not any(is_alive(pid) for pid in pids), "killed processes to go")

    def log_tail(self, lines: int = 30) -> str:
        text = self.log.read_text(errors="replace") if self.log.exists() else ""
        return "\n".join(text.splitlines()[-lines:])

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()


def start_service(
    command: Command,
    port: int,
    log: Path,
    environment: Mapping[str, str] | None = None,
    ready: Callable[[], bool] | None = None,
    timeout: float = 60.0,
) -> Service:
    """Start a server and return when it answers (`ready`, or an open port)."""
    with log.open("ab") as output:
        process = subprocess.Popen(
            [str(part) for part in command],
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            env={**os.environ, **(environment or {})},
            cwd=log.parent,
            start_new_session=True,
        )
    service = Service(process, port, log)
    answers = ready or (lambda: port_is_open(port))

    def up_or_dead() -> bool:
        return process.poll() is not None or answers()

    try:
        wait_until(up_or_dead, f"port {port}", timeout)
        if process.poll() is not None:
            raise NotReadyError(f"{command[0]} ended with {process.returncode}")
    except NotReadyError as error:
        service.kill()
        raise NotReadyError(f"{error}\n{service.log_tail()}") from None
    return service


def answers(port: int) -> bool:
    """Later than that its port is open: `moorage up` waits for its hosts first."""
    with contextlib.closing(http.client.HTTPConnection("127.0.0.1", port, timeout=1.0)) as connection:
        try:
            connection.request("GET", "/")
            connection.getresponse()
        except (OSError, http.client.HTTPException):
            return False
    return True


def port_is_open(port: int) -> bool:
    with socket.socket() as probe:
        probe.settimeout(1.0)
        return probe.connect_ex(("127.0.0.1", port)) == 0
