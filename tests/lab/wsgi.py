"""OpenStack's services as WSGI applications under gunicorn, each from a directory of its own."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import requests

from tests.support.environments import Environment
from tests.support.processes import Service, start_service


def serve(
    environment: Environment,
    application: str,
    directory: Path,
    port: int,
    variables: Mapping[str, str],
    *,
    path: str = "/",
    threads: int = 4,
) -> Service:
    """A running service; ready when `path` answers with anything but a failure.

    The services take the command line for their own, so gunicorn gets everything from a file.
    """
    (directory / "gunicorn.conf.py").write_text(
        f'wsgi_app = "{application}"\nbind = "127.0.0.1:{port}"\ntimeout = 300\n'
        "control_socket_disable = True\n"
        f'worker_class = "gthread"\nthreads = {threads}\ngraceful_timeout = 2\nkeepalive = 75\n'
    )

    def answers() -> bool:
        try:
            return requests.get(f"http://127.0.0.1:{port}{path}", timeout=10).status_code < 500
        except requests.RequestException:
            return False

    program = environment.bin() / "gunicorn"
    quiet = {"PYTHONWARNINGS": "ignore", **variables}
    return start_service([program], port, directory / "server.log", quiet, ready=answers, timeout=120)
