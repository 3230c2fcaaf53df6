"""Who is cut off leaves nothing behind; who ends by himself sees to it himself."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support import leftovers
from tests.support.processes import is_alive, wait_until

STARTER = """
import os, signal, subprocess, sys
from tests.support import leftovers
leftovers.watch()
daemon = subprocess.Popen(["sleep", "600"], stdout=subprocess.DEVNULL, start_new_session=True)
print(os.environ[leftovers.VARIABLE], daemon.pid, flush=True)
if sys.argv[1] == "killed":
    os.kill(os.getpid(), signal.SIGKILL)
os._exit(0) if sys.argv[1] == "cut off" else sys.exit()
"""


def started(then: str) -> tuple[str, int]:
    """The mark, and the daemon, of a process that has done so."""
    ran = subprocess.run(
        [sys.executable, "-c", STARTER, then], stdout=subprocess.PIPE, text=True, check=False, timeout=60
    )
    mark, pid = ran.stdout.split()
    return mark, int(pid)


def is_watched(mark: str) -> bool:
    for file in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            if mark.encode() in file.read_bytes():
                return True
        except OSError:  # gone
            continue
    return False


@pytest.mark.parametrize("end", ["killed", "cut off"])
def test_daemons_of_one_that_did_not_end_by_himself_end(end: str) -> None:
    mark, pid = started(end)
    wait_until(lambda: not is_alive(pid), "its daemon to end")
    wait_until(lambda: not is_watched(mark), "its watch to end")


def test_what_somebody_leaves_on_purpose_stays() -> None:
    mark, pid = started("ended")
    wait_until(lambda: not is_watched(mark), "its watch to end")
    assert leftovers.marked(mark) == [pid]
    os.kill(pid, signal.SIGKILL)
