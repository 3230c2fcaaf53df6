"""Puts up one fresh Placement application after another, each in a forked process.

A suite wants a service with an empty database and its own configuration. Starting an interpreter for
each costs seconds; forking one that has everything imported costs milliseconds, and the old
application is gone with all its state. Runs under our Python or the reference's:

    python -m tests.support.stage_server moorage|reference

Each line on standard input names a configuration file; the answer is a line with the port on which the
application now listens, or with what went wrong. The one before it is ended first; an empty line does only
that.
"""

from __future__ import annotations

import importlib
import json
import os
import signal
import sys
import traceback
from collections.abc import Callable
from typing import Any

from cheroot import wsgi

Application = Callable[..., Any]
THREADS = 8


def load_reference(config: str) -> Application:
    os.environ["OS_PLACEMENT_CONFIG_DIR"] = os.path.dirname(config)
    application: Application = importlib.import_module("placement.wsgi").init_application()
    return application


def load_moorage(config: str) -> Application:
    os.environ["MOORAGE_CONFIG"] = config
    application: Application = importlib.import_module("moorage.placement.wsgi").application
    return application


KINDS: dict[str, tuple[list[str], Callable[[str], Application]]] = {
    "reference": (["placement.wsgi", "placement.handler", "sqlite3"], load_reference),
    "moorage": (["moorage.placement.wsgi", "psycopg"], load_moorage),
}


def serve(load: Callable[[str], Application], config: str, answer: int) -> None:
    """The life of one forked process: build the application, say where it is, serve until killed."""
    try:
        server = wsgi.Server(("127.0.0.1", 0), load(config), numthreads=THREADS, request_queue_size=128)
        server.prepare()
    except BaseException:
        os.write(answer, json.dumps({"error": traceback.format_exc()}).encode())
        os._exit(1)
    os.write(answer, json.dumps({"port": server.bind_addr[1]}).encode())
    os.close(answer)
    server.serve()


def put_up(load: Callable[[str], Application], config: str) -> tuple[int, bytes]:
    """Fork, and wait for the child's word."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reading)
        serve(load, config, writing)
        os._exit(0)
    os.close(writing)
    with os.fdopen(reading, "rb") as pipe:
        return child, pipe.read()


def end(child: int | None) -> None:
    if child is not None:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)


def main() -> None:
    modules, load = KINDS[sys.argv[1]]
    for module in modules:
        importlib.import_module(module)
    child: int | None = None
    for line in sys.stdin:
        end(child)
        child, word = put_up(load, line.strip()) if line.strip() else (None, b"{}")
        sys.stdout.write((word.decode() or '{"error": "the process ended"}') + "\n")
        sys.stdout.flush()
    end(child)


if __name__ == "__main__":
    main()
