"""Our programs, each forked from one that has imported everything: that saves a second of processor time a
start, and tests start some hundreds. Likewise those of a neighbour that starts many (`share`): two seconds
each.

What is imported is what the program itself imports, nothing else; of a neighbour, what its programs do. The
new process is a child of ours, in all respects: its standard files, session, directory, environment,
arguments. A start that asks for more (another user, say), or whose environment changes how Python starts, is
not forked. `MOORAGE_FORK=0` forks nothing.
"""

from __future__ import annotations

import array
import atexit
import ctypes
import inspect
import json
import os
import socket
import subprocess
import sys
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

PROGRAMS = Path(sys.executable).parent
_IMPORTED = Path(__file__).with_name("imported_program.py")
_PREFIXES = ("PYTHON", "LD_", "LANG", "LC_", "TZ", "PROMETHEUS_", "MALLOC_", "OPENBLAS_", "OMP_")
"""Of variables that matter while a program imports."""
_WHERE = "PYTHONPATH"
"""A neighbour is told where else its modules are when it is forked."""
_PR_SET_CHILD_SUBREAPER = 36

_new_process = subprocess.Popen
_plan = inspect.signature(subprocess.Popen._execute_child)  # type: ignore[attr-defined]
_SPECIAL = {"preexec_fn", "startupinfo", "process_group", "gid", "gids", "uid", "umask"}


@dataclass(frozen=True)
class Kind:
    """What is imported once, for all that are forked from it."""

    programs: Path
    """Their directory, in which their Python is, too."""
    name: str = ""
    """Of the only one of them; of a neighbour it may be any."""
    modules: tuple[str, ...] = ()
    """What they import, or some of them do."""
    variables: tuple[tuple[str, str], ...] = ()
    """Of the environment in which they do: who is to be forked has them, too."""

    @property
    def environment(self) -> dict[str, str]:
        found = {**os.environ, **dict(self.variables)}
        return {name: value for name, value in found.items() if self.name or name != _WHERE}


class ImportedProgram:
    """The test's side of `imported_program.py`, which ends when we do."""

    def __init__(self, kind: Kind) -> None:
        self.environment = _early(kind.environment)
        self.where = kind.environment.get(_WHERE)
        self._turn = threading.Lock()
        self._orders, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        python = sys.executable if kind.name else str(kind.programs / "python")
        with theirs:
            self._process = _new_process(
                [python, str(_IMPORTED), kind.name, str(theirs.fileno()), *kind.modules],
                env=kind.environment,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                pass_fds=(theirs.fileno(),),
                start_new_session=True,
            )
        if self._orders.recv(16) != b"ready":
            raise RuntimeError(f"{kind} can't be imported: {self._process.wait()}")
        atexit.register(self._orders.close)

    def start(self, asked: Mapping[str, Any], files: Sequence[int]) -> int:
        """The id of a new process."""
        with self._turn, _AsParentOfOrphans():
            socket.send_fds(self._orders, [json.dumps(asked).encode()], files)
            (pid,) = array.array("q", self._orders.recv(8))
        return int(pid)


class _AsParentOfOrphans:
    """Of all our descendants; only while somebody waits for one."""

    _lock = threading.Lock()
    _waiting = 0

    def __enter__(self) -> None:
        self._count(1)

    def __exit__(self, *error: object) -> None:
        self._count(-1)

    def _count(self, change: int) -> None:
        kind = type(self)
        with kind._lock:
            kind._waiting += change
            ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, int(kind._waiting > 0), 0, 0, 0)


_programs: dict[Kind, ImportedProgram] = {}
_neighbours: dict[Path, Kind] = {}
_lock = threading.Lock()


def share(programs: Path, variables: Mapping[str, str], *modules: str) -> None:
    """Fork what is started from this directory with these variables, from now on: a neighbour's programs,
    which import these modules."""
    _neighbours[programs] = Kind(programs, modules=modules, variables=tuple(variables.items()))


def _program(kind: Kind) -> ImportedProgram:
    with _lock:
        if kind not in _programs:
            _programs[kind] = ImportedProgram(kind)
        return _programs[kind]


def _early(environment: Mapping[str, str]) -> dict[str, str]:
    return {
        name: value for name, value in environment.items() if name.startswith(_PREFIXES) and name != _WHERE
    }


class ForkedProgram(subprocess.Popen[Any]):
    """A Popen that forks what can be forked."""

    def _execute_child(self, *given: Any) -> None:
        plan = _plan.bind(self, *given).arguments
        kind = _kind(plan)
        environment = dict(os.environ if plan["env"] is None else plan["env"])
        if kind is None or (kind.name and _changed(environment)) or not _has(environment, kind.variables):
            super()._execute_child(*given)  # type: ignore[misc]
            return
        program = _program(kind)
        elsewhere = bool(kind.name) and program.where != environment.get(
            _WHERE
        )  # ours has looked around already
        if elsewhere or program.environment != _early(environment):
            super()._execute_child(*given)  # type: ignore[misc]
            return
        asked = {
            "session": plan["start_new_session"],
            "directory": os.path.abspath(plan["cwd"] or "."),
            "environment": environment,
            "arguments": [os.fspath(word) for word in plan["args"]],
        }
        ends = (plan["p2cread"], plan["c2pwrite"], plan["errwrite"])
        self.pid = program.start(asked, [usual if end == -1 else end for usual, end in enumerate(ends)])
        self._child_created = True
        pipes = ("p2cread", "p2cwrite", "c2pread", "c2pwrite", "errread", "errwrite")
        self._close_pipe_fds(*(plan[pipe] for pipe in pipes))  # type: ignore[attr-defined]


def _changed(environment: Mapping[str, str]) -> bool:
    """Whether a program of ours might import something else in it."""
    return _early(environment) != _early(os.environ) or environment.get(_WHERE) != os.environ.get(_WHERE)


def _has(environment: Mapping[str, str], variables: Sequence[tuple[str, str]]) -> bool:
    return all(environment.get(name) == value for name, value in variables)


def _kind(plan: Mapping[str, Any]) -> Kind | None:
    """Of a program that can be forked, if nothing special is asked for."""
    words = plan["args"]
    if isinstance(words, str | bytes | os.PathLike) or plan["executable"] is not None or plan["shell"]:
        return None
    if any(plan[part] not in (None, -1) for part in _SPECIAL) or plan["pass_fds"]:
        return None
    program = Path(os.fsdecode(words[0]))
    if program.parent == PROGRAMS and program.name.split("-")[0] == "moorage":
        return Kind(PROGRAMS, program.name)
    return None if program.name == "python" else _neighbours.get(program.parent)


def install() -> None:
    """From now on, in this process."""
    if os.environ.get("MOORAGE_FORK") != "0":
        subprocess.Popen = ForkedProgram  # type: ignore[misc]
