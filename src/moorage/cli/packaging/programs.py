"""The programs that a release consists of."""

from __future__ import annotations

from dataclasses import dataclass
from importlib import import_module
from typing import Any

from moorage.cli.errors import Commands


@dataclass(frozen=True)
class Program:
    name: str
    summary: str
    module: str
    """Where its commands are."""
    is_service: bool = False
    files: tuple[str, ...] = ("/etc/moorage/moorage.conf",)

    def command(self) -> Any:
        commands = import_module(self.module).commands
        assert isinstance(commands, Commands)
        return commands.program()


_PROCESSES = "moorage.cli.processes"

STATUS = "moorage-status"
"""Is oslo.upgradecheck's, and has no commands of ours."""

PROGRAMS = (
    Program("moorage", "run a cloud in one process, and ask running ones", "moorage.cli.main"),
    Program("moorage-manage", "manage the database, and what is in a new cloud", "moorage.cli.manage.manage"),
    Program("moorage-placement", "the Placement API", f"{_PROCESSES}.placement_server", is_service=True),
    Program("moorage-api", "the Compute API", f"{_PROCESSES}.api_server", is_service=True),
    Program("moorage-conductor", "does the work of a cloud", f"{_PROCESSES}.conductor", is_service=True),
    Program(
        "moorage-agent",
        "keeps the servers of one host",
        f"{_PROCESSES}.agent",
        is_service=True,
        files=("/etc/moorage/agent.conf",),
    ),
    Program(
        "moorage-console-proxy",
        "the way of browsers to consoles",
        f"{_PROCESSES}.console_proxy",
        is_service=True,
    ),
    Program(
        "moorage-metadata", "what guests ask for at boot", f"{_PROCESSES}.metadata_server", is_service=True
    ),
)
