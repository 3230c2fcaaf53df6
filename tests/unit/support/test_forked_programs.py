"""A program that is forked, of ours or of a neighbour, is as one that was started."""

from __future__ import annotations

import os
import subprocess
import sys
from importlib.metadata import entry_points
from pathlib import Path

import pytest

from tests.support import forked_programs
from tests.support.forked_programs import PROGRAMS, ForkedProgram

OURS = sorted(point.name for point in entry_points(group="console_scripts") if "moorage" in point.value)
MANAGE = str(PROGRAMS / "moorage-manage")
FORKED = "imported_program.py"


def told(program: subprocess.Popen[str]) -> tuple[str, str, int]:
    output, errors = program.communicate(timeout=60)
    return output, errors, program.returncode


def started(*words: str, **how: object) -> ForkedProgram:
    """With its input held open, so that it can be looked at: it asks for a password."""
    command = [MANAGE, *words]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    return ForkedProgram(command, text=True, **pipes, **how)  # type: ignore[call-overload,no-any-return]


@pytest.mark.parametrize("name", OURS)
def test_each_program_starts_by_itself(name: str) -> None:
    command = [sys.executable, str(PROGRAMS / name), "--help"]
    ran = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert (ran.returncode, ran.stderr) == (0, "")
    assert f"usage: {name} " in ran.stdout.lower()


def test_it_is_our_child_with_its_own_files_session_directory_and_environment(tmp_path: Path) -> None:
    environment = {**os.environ, "MOORAGE_CONFIG": "moorage.conf"}
    (tmp_path / "moorage.conf").write_text("[log]\nlevel = info\n")
    words = ("auth", "set-password", "me", "--stdin", "--file", "users")
    program = started(*words, env=environment, cwd=tmp_path, start_new_session=True)
    there = Path(f"/proc/{program.pid}")
    assert FORKED in (there / "cmdline").read_text()
    assert (there / "stat").read_text().rpartition(")")[2].split()[1] == str(os.getpid())
    assert os.getsid(program.pid) == program.pid
    assert (there / "cwd").resolve() == tmp_path
    assert (program.communicate("a long secret\n", timeout=60)[1], program.returncode) == ("", 0)
    assert (tmp_path / "users").read_text().startswith("me:")


def test_how_it_ends_is_told() -> None:
    assert told(started("--help"))[1:] == ("", 0)
    output, errors, status = told(started("nothing"))
    assert (output, status) == ("", 2)
    assert "No such command 'nothing'" in errors


def test_who_asks_for_another_python_gets_a_new_one() -> None:
    program = started("--help", env={**os.environ, "PYTHONWARNINGS": "error::FutureWarning"})
    assert FORKED not in Path(f"/proc/{program.pid}/cmdline").read_text()
    assert told(program)[2] == 0


def test_a_signal_ends_it(tmp_path: Path) -> None:
    program = started("auth", "set-password", "me", "--stdin", cwd=tmp_path)
    program.kill()
    assert program.wait(60) == -9


def test_any_program_of_a_neighbour_is_forked_and_finds_its_modules(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The other programs beside ours stand in for a neighbour's."""
    monkeypatch.setattr(forked_programs, "_neighbours", {})
    forked_programs.share(PROGRAMS, {"SHARED": "yes"}, "decimal")
    told_by = 'import sys\nprint("here", sys.argv[0], "decimal" in sys.modules, file=sys.stderr)\n'
    (tmp_path / "elsewhere.py").write_text(told_by)
    command = [str(PROGRAMS / "pytest"), "-p", "elsewhere", "--collect-only"]
    environment = {**os.environ, "PYTHONPATH": str(tmp_path), "SHARED": "yes"}
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    program = ForkedProgram(command, text=True, env=environment, cwd=tmp_path, **pipes)  # type: ignore[call-overload]
    assert FORKED in Path(f"/proc/{program.pid}/cmdline").read_text()
    output, errors, status = told(program)
    assert f"here {command[0]} True" in errors
    assert (status, "no tests collected" in output) == (5, True)
    del environment["SHARED"]
    program = ForkedProgram(command, text=True, env=environment, cwd=tmp_path, **pipes)  # type: ignore[call-overload]
    assert FORKED not in Path(f"/proc/{program.pid}/cmdline").read_text()
    assert told(program)[2] == 5


def test_ours_is_not_forked_when_modules_have_come_to_another_place(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Even if that holds for the whole test: what is imported has looked around before."""
    assert told(started("--help"))[2] == 0
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    program = started("--help")
    assert FORKED not in Path(f"/proc/{program.pid}/cmdline").read_text()
    assert told(program)[2] == 0
