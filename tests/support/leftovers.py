"""Ends what a test process leaves behind if it is cut off, by a time limit say: PostgreSQL, RabbitMQ, OVN and
the hosts of guests are daemons, which nobody else would end.

    python leftovers.py MARK

waits until whoever holds its input is gone. If he did not take his leave, all are killed whose environment
has the mark: what he started inherits it.
"""

from __future__ import annotations

import atexit
import os
import signal
import subprocess
import sys
import uuid
from contextlib import suppress
from pathlib import Path

VARIABLE = "MOORAGE_TESTS_MARK"
_KEPT_BY_TITLES = "SPT_NOENV"
"""Tells setproctitle, which Gunicorn has, not to write a process's title over its environment."""
_GOODBYE = b"goodbye"
_ROUNDS = 20
"""Who is killed may have started somebody meanwhile."""


def watch() -> None:
    """From now on, over all that this process starts. Whoever ends by himself ends that himself, too."""
    mark = uuid.uuid4().hex
    others = {name: value for name, value in os.environ.items() if name != VARIABLE}
    theirs, ours = os.pipe()
    subprocess.Popen(
        [sys.executable, "-I", "-S", __file__, mark],
        stdin=theirs,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        env=others,
        start_new_session=True,
    )
    os.close(theirs)
    os.environ[VARIABLE] = mark
    os.environ[_KEPT_BY_TITLES] = "1"
    atexit.register(os.write, ours, _GOODBYE)


def inherited() -> dict[str, str]:
    """For those that get an environment of their own."""
    return {name: os.environ[name] for name in (VARIABLE, _KEPT_BY_TITLES) if name in os.environ}


def marked(mark: str) -> list[int]:
    wanted, found = f"{VARIABLE}={mark}".encode(), []
    for file in Path("/proc").glob("[0-9]*/environ"):
        with suppress(OSError):  # another account's, or gone
            if wanted in file.read_bytes().split(b"\0"):
                found.append(int(file.parent.name))
    return found


def main() -> None:
    if os.read(0, len(_GOODBYE)) == _GOODBYE:
        return
    for _ in range(_ROUNDS):
        left = marked(sys.argv[1])
        if not left:
            return
        for pid in left:
            with suppress(OSError):
                os.kill(pid, signal.SIGKILL)


if __name__ == "__main__":
    main()
