"""Calls of a libvirt driver in processes that a test may kill: `python -m … DIRECTORY`, orders on stdin.

Each call gets a process of its own, forked before anything has spoken to libvirt: starting Python each time
would take longer than most calls.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import msgspec

from moorage.drivers.contract import ServerSpec
from tests.integration.libvirt.stand import LibvirtStand


class Worker:
    """The other end: gives orders, and kills."""

    def __init__(self, stand: LibvirtStand) -> None:
        stand.images.save()
        host = stand.host
        told = {
            "name": host.name,
            "address": host.address,
            "directory": str(host.directory),
            "first_pid": host.first_pid,
        }
        (stand.directory / "worker.json").write_text(json.dumps({"host": told, "image": stand.image_id}))
        self._stand = stand
        self._process = subprocess.Popen(
            [sys.executable, "-m", __name__, str(stand.directory)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def begin(self, call: str, *arguments: Any) -> int:
        """Answers the process that does it."""
        self._stand.images.save()
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps([call, msgspec.to_builtins(arguments)]) + "\n")
        self._process.stdin.flush()
        return int(self.said())

    def said(self) -> str:
        assert self._process.stdout is not None
        return self._process.stdout.readline().strip()

    def close(self) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait(30)


def main(directory: Path) -> None:
    from tests.lab.libvirt import programs

    programs.use_binding()
    import moorage.drivers.libvirt.loading  # noqa: F401

    for line in sys.stdin:
        call, arguments = json.loads(line)
        pid = os.fork()
        if not pid:
            _work(directory, call, arguments)
        _, status = os.waitpid(pid, 0)
        print("killed" if os.WIFSIGNALED(status) else f"ended {os.WEXITSTATUS(status)}", flush=True)


def _work(directory: Path, call: str, arguments: list[Any]) -> None:
    stand = LibvirtStand.again(directory, json.loads((directory / "worker.json").read_text()))
    if call in ("spawn", "rebuild", "rescue", "resize_in_place"):
        arguments = [msgspec.convert(arguments[0], ServerSpec)]
    print(os.getpid(), flush=True)
    try:
        getattr(stand.driver, call)(*arguments)
    except BaseException as error:
        print(error, file=sys.stderr, flush=True)
        os._exit(1)
    stand.images.save()
    os._exit(0)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
