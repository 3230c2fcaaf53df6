"""Run `openstack` as a user does: with a clouds.yaml, and nothing of the caller's environment."""

from __future__ import annotations

import json
import os
import subprocess
import threading
from functools import cache
from pathlib import Path
from typing import Any

from tests.support.environments import Environment

HERE = Path(__file__).resolve().parent
CLIENT = Environment("client", HERE / "requirements.txt", HERE / "constraints.txt")


class ClientError(Exception):
    """The client left with an error; the text is what it said."""


def openstack(clouds_file: Path, cloud: str, *arguments: str) -> Any:
    """The decoded answer of a command; None if it printed nothing."""
    printed = order(clouds_file, cloud, *arguments, "-f", "json")
    return json.loads(printed) if printed.strip() else None


def order(clouds_file: Path, cloud: str, *arguments: str) -> str:
    """Run a command that has no answer to decode; what it printed all the same."""
    cloud_variables = {"OS_CLIENT_CONFIG_FILE": str(clouds_file), "OS_CLOUD": cloud}
    ran = _commands().run(arguments, {**without_cloud(os.environ), **cloud_variables})
    if ran["status"] != 0:
        raise ClientError(ran["errors"])
    return str(ran["output"])


def without_cloud(environment: os._Environ[str]) -> dict[str, str]:
    return {name: value for name, value in environment.items() if not name.startswith("OS_")}


class _ForkedCommands:
    """The test's side of `forked_commands.py`, which ends when we do."""

    def __init__(self) -> None:
        self._turn = threading.Lock()
        self._process = subprocess.Popen(
            [str(CLIENT.bin() / "python"), "-P", "-W", "ignore", str(HERE / "forked_commands.py")],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def run(self, arguments: tuple[str, ...], environment: dict[str, str]) -> dict[str, Any]:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        with self._turn:
            command = {"arguments": arguments, "environment": environment}
            self._process.stdin.write(json.dumps(command) + "\n")
            self._process.stdin.flush()
            answer: dict[str, Any] = json.loads(self._process.stdout.readline())
        return answer


@cache
def _commands() -> _ForkedCommands:
    return _ForkedCommands()
