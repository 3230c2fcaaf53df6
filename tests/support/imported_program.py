"""A program that has imported all it needs, and then waits to be forked: see `forked_programs.py`.

    python imported_program.py NAME SOCKET [MODULE...]

Runs as the program's own Python would, from its directory. What it is asked for comes over the socket: the
arguments, directory and environment of a new process as JSON, with its standard files. Without a name it is
all programs of its directory at once, which import these modules.
"""

from __future__ import annotations

import array
import ctypes
import gc
import importlib
import importlib.metadata
import json
import os
import socket
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

LARGEST = 1 << 20
_PR_SET_NAME = 15
_LAUNCH = "moorage.cli.launch"
_ALL = (
    "pydantic.fields",  # by which typer reads its arguments
    "sqlite3",
    *(f"moorage.drivers.{name}.plugin" for name in ("fake", "ironic", "libvirt")),
    *("moorage.drivers.fake.driver", "keystoneauth1.loading"),
)
_BUS = ("moorage.bus.messaging_questions", "kombu.transport.pyamqp")
_LATER = {
    "moorage": (
        "moorage.cli.embedded.embedded",
        "moorage.db.migrate",
        "alembic.command",
        "openstack.connection",
    ),
    "moorage-manage": ("alembic.command",),
    "moorage-agent": _BUS,
    "moorage-api": _BUS,
    "moorage-conductor": _BUS,
    "moorage-console-proxy": _BUS,
}
"""What programs import when they need it, a part of a command say; it may take longer than the rest."""


def load(name: str) -> Callable[[], Any]:
    """What the installed program calls. One with workers imports the rest when it is called, after it has
    made a directory for their metrics; we need one, too, but each process will make its own."""
    (point,) = importlib.metadata.entry_points(group="console_scripts", name=name)
    program: Callable[[], Any] = point.load()
    if point.module == _LAUNCH:
        importlib.import_module("moorage.core.metrics_directory").make()
        importlib.import_module(f"moorage.cli.processes.{point.attr}_server")
    for module in (*_ALL, *_LATER.get(name, ())):
        importlib.import_module(module)
    return program


def load_any(modules: list[str]) -> Callable[[], Any]:
    """What calls the installed program that a forked process has become."""
    points = {point.name: point for point in importlib.metadata.entry_points(group="console_scripts")}
    for module in modules:
        importlib.import_module(module)

    def program() -> Any:
        sys.path[1:1] = filter(None, os.environ.get("PYTHONPATH", "").split(os.pathsep))
        return points[Path(sys.argv[0]).name].load()()

    return program


def begin(asked: dict[str, Any], files: list[int]) -> None:
    """Become the process that was asked for."""
    if asked["session"]:
        os.setsid()
    os.chdir(asked["directory"])
    for number, file in enumerate(files):
        os.dup2(file, number)
        os.close(file)
    os.environ.clear()
    os.environ.update(asked["environment"])
    sys.argv[:] = asked["arguments"]  # some remember it when they are imported
    sys.orig_argv = [sys.executable, *asked["arguments"]]
    ctypes.CDLL(None).prctl(_PR_SET_NAME, Path(sys.argv[0]).name.encode()[:15], 0, 0, 0)


def fork(asked: dict[str, Any], files: list[int]) -> int:
    """0 in the new process. To us it is a grandchild without parents: the test's process takes it in."""
    told, tell = os.pipe()
    between = os.fork()
    if between == 0:
        if os.fork() == 0:
            try:
                begin(asked, files)
            finally:  # not before it has its own session and directory, as who starts a process expects
                os.write(tell, str(os.getpid()).encode())
                os.close(tell)
            return 0
        os._exit(0)
    os.close(tell)
    os.waitpid(between, 0)
    pid = int(os.read(told, 32))
    os.close(told)
    return pid


def serve(orders: socket.socket) -> bool:
    """Until nobody is there to ask (False); True in a process that was forked."""
    while True:
        asked, files, _, _ = socket.recv_fds(orders, LARGEST, 3)
        if not asked:
            return False
        pid = fork(json.loads(asked), files)
        if pid == 0:
            return True
        for file in files:
            os.close(file)
        orders.send(array.array("q", [pid]).tobytes())


def main() -> None:
    name, number, *modules = sys.argv[1:]
    sys.path[0] = str(Path(sys.executable).parent)
    program = load(name) if name else load_any(modules)
    gc.collect()
    gc.freeze()  # what is never looked at is never copied
    with socket.socket(fileno=int(number)) as orders:
        orders.send(b"ready")
        is_new = serve(orders)
    if is_new:
        sys.exit(program())


if __name__ == "__main__":
    main()
