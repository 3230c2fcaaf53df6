"""`moorage.placement.wsgi:application` under a WSGI server that knows nothing of Moorage."""

from __future__ import annotations

import sys
from pathlib import Path

import requests

from tests.support import moorage
from tests.support.processes import free_port, start_service, wait_until

PROGRAM = """
import sys
from cheroot import wsgi
from moorage.placement.wsgi import application
wsgi.Server(("127.0.0.1", int(sys.argv[1])), application).start()
"""
REQUEST_ID = "req-11111111-1111-4111-8111-111111111111"


def test_it_serves_and_logs_with_the_settings_of_its_configuration(tmp_path: Path, sqlite_url: str) -> None:
    config, port = moorage.configure(tmp_path, sqlite_url), free_port()
    moorage.sync_database(config)
    command = [sys.executable, "-c", PROGRAM, str(port)]
    headers = {"X-Auth-Token": "admin", "X-OpenStack-Request-ID": REQUEST_ID}
    with start_service(command, port, tmp_path / "log", {"MOORAGE_CONFIG": str(config)}) as service:
        answer = requests.get(f"{service.url}/resource_providers", headers=headers, timeout=30)
        assert answer.json() == {"resource_providers": []}
        line = (
            f"[{REQUEST_ID} {answer.headers['x-openstack-request-id']} project=admin]"
            ' 127.0.0.1 "GET /resource_providers"'
        )
        wait_until(lambda: line in service.log_tail(), "the request's line in the log", 5)
