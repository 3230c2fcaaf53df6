"""A real RabbitMQ for tests: its own node, port and data, and gone afterwards. The program is Debian's.

To start one takes five seconds of processor time. Whoever does not end it takes a virtual host of one that
all tests of a process share (`room`).
"""

from __future__ import annotations

import atexit
import itertools
import json
import os
import shutil
import signal
import socket
import subprocess
import tempfile
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import TracebackType
from typing import Self

from tests.support import debian, leftovers
from tests.support.processes import NotReadyError, free_port, wait_until

PROGRAM = debian.program("rabbitmq-server")
START_TIMEOUT = 60.0

CONFIGURATION = """\
listeners.tcp.1 = 127.0.0.1:{port}
distribution.listener.interface = 127.0.0.1
vm_memory_high_watermark.absolute = 512MB
disk_free_limit.absolute = 50MB
log.console = false
log.file.level = warning
"""
_ROOMS = 20
# One scheduler that does not spin while it waits: tests share the machine.
ERLANG = "+S 1:1 +sbwt none +sbwtdcpu none +sbwtdio none +A 4"


@dataclass
class RabbitMQ:
    """A running broker. `end` and `kill` keep the data, `stop` removes it."""

    port: int
    home: Path
    names: subprocess.Popen[bytes]
    """Erlang's name server; ours, on a port of its own."""
    broker: subprocess.Popen[bytes]
    virtual_host: str = ""

    @property
    def url(self) -> str:
        return f"rabbit://guest:guest@127.0.0.1:{self.port}/{self.virtual_host}"

    @property
    def environment(self) -> dict[str, str]:
        """For `rabbitmqctl`."""
        return _environment(self.home, self.port, self._names_port)

    @property
    def log(self) -> str:
        return "\n".join(path.read_text(errors="replace") for path in sorted(self.home.glob("log/*.log")))

    def end(self) -> None:
        """What an operator does before an upgrade."""
        _end(self.broker, signal.SIGTERM)

    def kill(self) -> None:
        """What a power cut does."""
        _end(self.broker, signal.SIGKILL)

    def start_again(self) -> None:
        self.broker = _launch(self.home, self.port, self._names_port)

    def stop(self) -> None:
        _end(self.broker, signal.SIGTERM)
        _end(self.names, signal.SIGTERM)
        shutil.rmtree(self.home, ignore_errors=True)
        atexit.unregister(self.stop)

    @property
    def _names_port(self) -> int:
        return int((self.home / "names-port").read_text())

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()


def start(configuration: str = CONFIGURATION, plugins: Sequence[str] = ()) -> RabbitMQ:
    """Start a new, empty broker on a free loopback port; raises Unavailable where that can't be.

    Without a configuration it is as the package made it.
    """
    debian.install("rabbitmq-server")
    home = Path(tempfile.mkdtemp(prefix="moorage-rabbitmq-"))
    port, names_port = free_port(), free_port()
    (home / "names-port").write_text(str(names_port))
    (home / "rabbitmq.conf").write_text(configuration.format(port=port))
    (home / "enabled_plugins").write_text(f"[{','.join(plugins)}].\n")
    names = subprocess.Popen(
        ["epmd", "-address", "127.0.0.1", "-port", str(names_port)],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    try:
        broker = _launch(home, port, names_port)
    except BaseException:
        _end(names, signal.SIGTERM)
        shutil.rmtree(home, ignore_errors=True)
        raise
    server = RabbitMQ(port, home, names, broker)
    atexit.register(server.stop)
    return server


@dataclass
class _Shared:
    """The broker of this process, which is started when the first one asks."""

    brokers: list[RabbitMQ] = field(default_factory=list)
    taken: Iterator[int] = field(default_factory=itertools.count)
    lock: threading.Lock = field(default_factory=threading.Lock)

    def take(self) -> RabbitMQ:
        with self.lock:
            number = next(self.taken) % _ROOMS
            if number == 0:
                self.brokers.append(_with_rooms())
            return replace(self.brokers[-1], virtual_host=f"room-{number}")


_shared = _Shared()


@contextmanager
def room() -> Iterator[RabbitMQ]:
    """A virtual host that nobody has used before; not to be ended, since others use the broker, too.

    Raises Unavailable where there can be none.
    """
    yield _shared.take()


def leave_rooms() -> None:
    """Nobody in this process needs one any more."""
    for broker in _shared.brokers:
        broker.stop()


def _with_rooms() -> RabbitMQ:
    names = [f"room-{number}" for number in range(_ROOMS)]
    rights = {"user": "guest", "configure": ".*", "write": ".*", "read": ".*"}
    made = {
        "users": [{"name": "guest", "password": "guest", "tags": "administrator"}],
        "vhosts": [{"name": name} for name in names],
        "permissions": [{"vhost": name, **rights} for name in names],
    }
    with tempfile.NamedTemporaryFile("w", suffix=".json") as definitions:
        json.dump(made, definitions)
        definitions.flush()
        return start(f"{CONFIGURATION}load_definitions = {definitions.name}\n")


def _environment(home: Path, port: int, names_port: int) -> dict[str, str]:
    return {
        **leftovers.inherited(),
        "PATH": f"{PROGRAM.parent}:{os.environ['PATH']}",
        "HOME": str(home),
        "LANG": "C.UTF-8",
        "RABBITMQ_NODENAME": f"moorage-{port}@localhost",
        "RABBITMQ_NODE_IP_ADDRESS": "127.0.0.1",
        "RABBITMQ_NODE_PORT": str(port),
        "RABBITMQ_BASE": str(home),
        "RABBITMQ_MNESIA_BASE": str(home / "data"),
        "RABBITMQ_LOG_BASE": str(home / "log"),
        "RABBITMQ_CONFIG_FILE": str(home / "rabbitmq"),
        "RABBITMQ_CONF_ENV_FILE": str(home / "none"),
        "RABBITMQ_ENABLED_PLUGINS_FILE": str(home / "enabled_plugins"),
        "RABBITMQ_PID_FILE": str(home / "pid"),
        "RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS": ERLANG,
        "ERL_EPMD_PORT": str(names_port),
        "ERL_EPMD_ADDRESS": "127.0.0.1",
    }


def _launch(home: Path, port: int, names_port: int) -> subprocess.Popen[bytes]:
    environment = {**_environment(home, port, names_port), "RABBITMQ_DIST_PORT": str(free_port())}
    with (home / "output").open("ab") as output:
        broker = subprocess.Popen(
            [str(PROGRAM)],
            cwd=home,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            start_new_session=True,
        )
    try:
        wait_until(lambda: _answers(port) or broker.poll() is not None, "RabbitMQ", START_TIMEOUT)
    except NotReadyError:
        _end(broker, signal.SIGKILL)
        raise
    if broker.poll() is not None:
        raise NotReadyError(f"RabbitMQ ended: {(home / 'output').read_text(errors='replace')[-2000:]}")
    return broker


def _answers(port: int) -> bool:
    """RabbitMQ opens its port when it is ready, and answers a wrong greeting with the right one."""
    try:
        with socket.create_connection(("127.0.0.1", port), timeout=1) as connection:
            connection.settimeout(2)
            connection.sendall(b"HELLO???")
            return connection.recv(4) == b"AMQP"
    except OSError:
        return False


def _end(process: subprocess.Popen[bytes], how: signal.Signals) -> None:
    """End a process and the helpers that it started in its session."""
    if process.poll() is None:
        os.killpg(process.pid, how)
        try:
            process.wait(20)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait(20)
