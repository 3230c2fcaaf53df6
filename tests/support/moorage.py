"""Our Placement service as operators run it: `moorage-manage db sync`, then `moorage-placement`."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from tests.support.processes import Service, free_port, start_service
from tests.support.profiles import Settings, ini
from tests.support.reference import answers
from tests.support.releases import launched

PROGRAMS = Path(sys.executable).parent


def configure(directory: Path, database_url: str, extra: Settings | None = None) -> Path:
    directory.mkdir(parents=True, exist_ok=True)
    config = directory / "moorage.conf"
    config.write_text(
        ini(
            {
                "database": {"connection": database_url},
                "auth": {"strategy": "none"},
                "process": {"drain_seconds": "0"},
                **(extra or {}),
            }
        )
    )
    return config


def manage(config: Path, *words: str, source: Path | None = None) -> None:
    """`moorage-manage`, of this release or of the one whose source it is, which has to go well."""
    command = [*launched(source), str(PROGRAMS / "moorage-manage"), "--config-file", str(config), *words]
    subprocess.run(command, check=True, capture_output=True)


def sync_database(config: Path, source: Path | None = None) -> None:
    """As this release does it, or the one whose source it is."""
    manage(config, "db", "sync", source=source)


def seed(config: Path) -> None:
    """The usual flavors and images."""
    manage(config, "seed")


def start(config: Path, workers: int = 2, port: int | None = None, timeout: float = 60.0) -> Service:
    """Start it under Granian; returns when it answers."""
    port = port or free_port()
    command: list[str | Path] = [
        *(PROGRAMS / "moorage-placement", "--config-file", config),
        *("--listen", "127.0.0.1", "--port", str(port), "--workers", str(workers)),
    ]
    return start_service(
        command, port, config.with_name("server.log"), ready=lambda: answers(port), timeout=timeout
    )
