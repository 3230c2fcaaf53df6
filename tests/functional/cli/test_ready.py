"""systemd is told that a service is ready when it is, and not before."""

from __future__ import annotations

import socket
from pathlib import Path

import requests

from tests.support import moorage
from tests.support.processes import Command, free_port, start_service


def test_who_waits_for_a_service_is_told_when_it_answers(tmp_path: Path, sqlite_url: str) -> None:
    config = moorage.configure(tmp_path, sqlite_url, {"placement": {"workers": "1"}})
    moorage.sync_database(config)
    port, where = free_port(), tmp_path / "notify"
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as listening:
        listening.bind(str(where))
        listening.settimeout(60)
        heard: list[bytes] = []

        def ready() -> bool:
            heard.append(listening.recv(100))
            return True

        command: Command = [
            moorage.PROGRAMS / "moorage-placement",
            "--config-file",
            config,
            "--port",
            str(port),
        ]
        environment = {"NOTIFY_SOCKET": str(where)}
        with start_service(command, port, tmp_path / "log", ready=ready, environment=environment) as service:
            assert heard == [b"READY=1"]
            assert requests.get(f"{service.url}/readyz", timeout=30).status_code == 200
