"""A process that starts a guest, and stops itself right behind a look at its permit: `python -m … ORDER`.

The order is JSON: where the stand is, the server, behind which look it stops, and how long the permit lasts.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

from tests.integration.libvirt.stand import LibvirtStand

PERMITTED, NOT_PERMITTED = 0, 3
BEFORE_CREATE, BEFORE_RESUME, NEVER = 1, 2, 0
"""Behind which look it stops."""


class LateWorker:
    """The other end."""

    def __init__(self, stand: LibvirtStand, server_uuid: str, *, stop_behind: int, seconds: float) -> None:
        host = stand.host
        told = {
            "directory": str(stand.directory),
            "host": {
                "name": host.name,
                "address": host.address,
                "directory": str(host.directory),
                "first_pid": host.first_pid,
            },
            "image": stand.image_id,
            "server": server_uuid,
            "stop_behind": stop_behind,
            "seconds": seconds,
        }
        self._process = subprocess.Popen([sys.executable, "-m", __name__, json.dumps(told)])

    @property
    def is_stopped(self) -> bool:
        words = Path(f"/proc/{self._process.pid}/stat").read_text().rpartition(")")[2].split()
        return words[0] == "T"

    @property
    def has_ended(self) -> bool:
        return self._process.poll() is not None

    def go_on(self) -> None:
        self._process.send_signal(signal.SIGCONT)

    def kill(self) -> None:
        self._process.kill()
        self._process.wait(60)

    def ended(self) -> int:
        return self._process.wait(60)


def main(told: dict[str, Any]) -> int:
    from tests.lab.libvirt import programs

    programs.use_binding()
    from moorage.core.clock import uptime
    from moorage.drivers.contract import StartNotPermittedError
    from moorage.drivers.libvirt.driver import LibvirtDriver
    from moorage.drivers.libvirt.start_gate import StartGate
    from moorage.drivers.parts import StartPermit

    looks, look = 0, StartGate.require

    def looked(gate: StartGate, server_uuid: str) -> StartPermit:
        nonlocal looks
        permit = look(gate, server_uuid)
        looks += 1
        if looks == told["stop_behind"]:
            os.kill(os.getpid(), signal.SIGSTOP)
        return permit

    StartGate.require = looked  # type: ignore[method-assign, assignment]
    stand = LibvirtStand.again(Path(told["directory"]), told)
    assert isinstance(stand.driver, LibvirtDriver)
    now = uptime()
    permit = StartPermit(now, now + told["seconds"])
    stand.driver.start_by_permit(lambda _: permit)
    try:
        stand.driver.start(told["server"], "")
    except StartNotPermittedError:
        return NOT_PERMITTED
    finally:
        stand.driver.close()
    return PERMITTED


if __name__ == "__main__":
    sys.exit(main(json.loads(sys.argv[1])))
