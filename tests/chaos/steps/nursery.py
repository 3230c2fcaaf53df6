"""A process that has everything imported, and forks the parts of clouds: one that was killed is back at once.

It is told what to start by lines of JSON, and answers with the part's process ID. When nobody is there any
more to tell it anything, all that it has started ends.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import threading
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

from moorage.cli import settings
from moorage.cli.embedded.cloud import STREAMED
from moorage.cli.embedded.embedded import Embedded, UpOptions
from moorage.cli.processes import agent, api_server, conductor, placement_server
from moorage.core import log
from moorage.http.auth import Wsgi
from moorage.http.server import HttpServer
from tests.chaos.steps import hooks
from tests.chaos.steps.points import Points

_LONGEST_BODY = 1024 * 1024


def _up(config: Path, port: int) -> None:
    data = config.parent / "data"
    options = UpOptions(data, "127.0.0.1", port + 1, port, 0, None, 3, None, config, verbose=True)
    log.set_up("INFO")
    Embedded(options).run(lambda: None)


def _conductor(config: Path, _port: int) -> None:
    conductor.run([config])


def _agent(config: Path, _port: int) -> None:
    agent.run([config])


def _serving(worker: Callable[[], Wsgi]) -> Callable[[Path, int], None]:
    def serve(config: Path, port: int) -> None:
        os.environ[settings.ENVIRONMENT] = str(config)
        server = HttpServer(
            "127.0.0.1", port, worker(), threads=8, longest_body=_LONGEST_BODY, streamed=STREAMED
        )
        server.start()
        threading.Event().wait()

    return serve


_PARTS: dict[str, Callable[[Path, int], None]] = {
    "up": _up,
    "moorage-conductor": _conductor,
    "moorage-agent": _agent,
    "moorage-api": _serving(api_server.worker),
    "moorage-placement": _serving(placement_server.worker),
}
_WORDS = {"up": "api", "moorage-api": "api", "moorage-placement": "placement"}


def _live(told: dict[str, Any]) -> None:
    """The life of a part, in its own process."""
    null = os.open(os.devnull, os.O_RDONLY)
    output = os.open(told["log"], os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    for descriptor, place in ((null, 0), (output, 1), (output, 2)):
        os.dup2(descriptor, place)
    directory = Path(told["directory"])
    hooks.install(Points(directory), _WORDS.get(told["part"], told["part"]), directory / "buttons")
    _PARTS[told["part"]](Path(told["config"]), told["port"])


def main() -> None:
    children: set[int] = set()
    for line in sys.stdin:
        told = json.loads(line)
        if told["after"] in children:  # until then it may hold what its successor needs
            os.waitpid(told["after"], 0)
            children.discard(told["after"])
        pid = os.fork()
        if pid == 0:
            code = 1
            try:
                _live(told)
                code = 0
            except BaseException:
                traceback.print_exc()
            finally:
                os._exit(code)
        children.add(pid)
        print(json.dumps({"pid": pid}), flush=True)
    for pid in children:  # dead or not, each is still ours: none was waited for
        os.kill(pid, signal.SIGKILL)


if __name__ == "__main__":
    main()
