"""Run `openstack` as a user does: with a clouds.yaml, and nothing of the caller's environment."""

from __future__ import annotations

import json
import os
import subprocess
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
    ran = subprocess.run(
        [str(CLIENT.bin() / "openstack"), *arguments],
        capture_output=True,
        text=True,
        check=False,
        env={**without_cloud(os.environ), "OS_CLIENT_CONFIG_FILE": str(clouds_file), "OS_CLOUD": cloud},
    )
    if ran.returncode != 0:
        raise ClientError(ran.stderr)
    return ran.stdout


def without_cloud(environment: os._Environ[str]) -> dict[str, str]:
    return {name: value for name, value in environment.items() if not name.startswith("OS_")}
