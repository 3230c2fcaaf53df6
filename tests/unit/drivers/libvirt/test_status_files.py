"""What libvirtd has written down is mended only if nobody can be writing it."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import time
from pathlib import Path

import pytest

from moorage.drivers.libvirt.domain import mark
from moorage.drivers.libvirt.status_files import StatusFiles

NODE = "c2b10159-7585-4b9f-b178-9643e5c21dd8"
_JOB = "<blockjobs active='yes'><blockjob name='copy-vda' type='copy'/></blockjobs>"
_COPY = "<mirror type='file' job=''>\n  <format type='qcow2'/>\n</mirror>\n"
_HOLD = """\
import fcntl, sys
held = open(sys.argv[1], "r+")
fcntl.lockf(held, fcntl.LOCK_EX)
print(flush=True)
sys.stdin.read()
"""
"""As a libvirtd holds the file that says that it is there."""


@pytest.fixture
def state(tmp_path: Path) -> Path:
    (tmp_path / "driver.pid").write_text("1")
    return tmp_path


def written(state: Path, copy: str = _COPY, job: str = _JOB, node: str = NODE, age: float = 0.0) -> Path:
    path = state / "instance-1.xml"
    path.write_text(
        f"<domstatus>{job}<x xmlns='{mark.NAMESPACE}'>{node}</x><disk>{copy}<y/></disk></domstatus>"
    )
    then = time.time() - age
    os.utime(path, (then, then))
    return path


def mended(state: Path, path: Path) -> bool:
    before = path.read_text()
    StatusFiles(state, NODE).mend()
    assert [found.name for found in sorted(state.iterdir())] == ["driver.pid", "instance-1.xml"]
    after = path.read_text()
    assert after in (before, re.sub("<mirror.*?</mirror>\n", "", before, flags=re.DOTALL))
    return after != before


def test_a_copy_of_no_kind_goes_if_there_is_no_libvirtd(state: Path) -> None:
    assert mended(state, written(state))


def test_copies_that_go_on_stay(state: Path) -> None:
    assert not mended(state, written(state, _COPY.replace("job=''", "job='copy'")))


def test_a_copy_that_nobody_makes_goes(state: Path) -> None:
    assert mended(state, written(state, _COPY.replace("job=''", "job='copy'"), job="<blockjobs/>"))


def test_what_others_have_is_left_alone(state: Path) -> None:
    assert not mended(state, written(state, node="another"))


def test_nothing_is_touched_that_a_libvirtd_has_written_but_what_was_there_before_it(state: Path) -> None:
    words = [sys.executable, "-c", _HOLD, str(state / "driver.pid")]
    with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as daemon:
        assert daemon.stdin is not None
        assert daemon.stdout is not None
        daemon.stdout.readline()
        assert not mended(state, written(state))
        assert mended(state, written(state, age=60.0))
        readable = _COPY.replace("job=''", "job='copy'")
        assert not mended(state, written(state, readable, job="<blockjobs/>", age=60.0))
        daemon.stdin.close()


def test_a_host_without_libvirts_directory_has_nothing_to_mend(tmp_path: Path) -> None:
    StatusFiles(tmp_path / "none", NODE).mend()
