"""The reference Placement service, started as its operators run it: uWSGI, several worker processes."""

from __future__ import annotations

import subprocess
from pathlib import Path

from tests.conformance.reference_env import reference_bin
from tests.support.processes import Service, free_port, start_service
from tests.support.profiles import Settings, ini
from tests.support.wire import ConnectionLostError, Wire


def settings(database_url: str, threads: int = 2) -> Settings:
    return {
        "DEFAULT": {"default_log_levels": "placement=WARNING,oslo=WARNING", "use_stderr": "true"},
        "api": {"auth_strategy": "noauth2"},
        "placement_database": {
            "connection": database_url.replace("+psycopg:", "+psycopg2:"),
            "max_pool_size": str(threads),
            "max_overflow": str(threads),
        },
        "placement": {"allocation_conflict_retry_count": "10"},
    }


def configure(directory: Path, database_url: str) -> None:
    """Write `placement.conf` below `directory`, where the reference looks for that name."""
    policy = directory / "policy.yaml"
    policy.write_text("{}\n")
    (directory / "placement.conf").write_text(
        ini({**settings(database_url), "oslo_policy": {"policy_file": str(policy)}})
    )


def sync_database(directory: Path) -> None:
    """Create the reference's tables, standard traits and resource classes."""
    subprocess.run(
        [str(reference_bin() / "placement-manage"), "--config-dir", str(directory), "db", "sync"],
        check=True,
        capture_output=True,
    )


def start(directory: Path, workers: int = 2, threads: int = 1, port: int = 0) -> Service:
    """Start it under uWSGI on a configured and synced directory; returns when it answers. `port` is the one
    that others know already.

    The HTTP router keeps client connections open and hands each request to a free worker. (A socket
    served by the workers themselves would pin a worker to each kept-alive connection.)
    """
    port = port or free_port()
    command: list[str | Path] = [
        *(reference_bin() / "uwsgi", "--module", "placement.wsgi.api:application"),
        *("--virtualenv", reference_bin().parent, "--master", "--lazy-apps", "--need-app"),
        *("--die-on-term", "--processes", str(workers), "--threads", str(threads), "--enable-threads"),
        *("--disable-logging", "--buffer-size", "65535", "--listen", "100", "--thunder-lock"),
        # Read request bodies that the application leaves unread, else a 4xx resets the connection.
        *("--post-buffering", "1048576", "--socket", directory / "uwsgi.sock", "--socket-timeout", "3600"),
        *("--http", f"127.0.0.1:{port}", "--http-keepalive=3600", "--http-timeout", "3600"),
        *("--add-header", "Connection: Keep-Alive"),
    ]
    environment = {"OS_PLACEMENT_CONFIG_DIR": str(directory), "PYTHONWARNINGS": "ignore"}
    return start_service(
        command, port, directory / "server.log", environment, ready=lambda: answers(port), timeout=90
    )


def answers(port: int) -> bool:
    """The version document is open to anybody and needs no database."""
    try:
        with Wire(port, timeout=10) as wire:
            return wire.get("/").status == 200
    except (OSError, ConnectionLostError):
        return False
