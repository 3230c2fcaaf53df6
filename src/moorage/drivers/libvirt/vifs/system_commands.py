"""The programs of the system that set up a host's network: `ip`, `bridge`, `nft`, `sysctl`, `dnsmasq`."""

from __future__ import annotations

import shlex
import subprocess
from collections.abc import Sequence

from moorage.drivers.contract import DriverError

_SECONDS = 60.0
"""So long a program may take; the kernel may hold one up while a device goes."""


class SystemCommandError(DriverError):
    """A program refused; its own words are the reason."""


class SystemCommands:
    def __init__(self, prefix: Sequence[str] = ()) -> None:
        """`prefix` comes before each, for a network that is not this process's own."""
        self._prefix = tuple(prefix)

    def run(self, *words: str, stdin: str = "") -> str:
        """What it printed. SystemCommandError if it failed."""
        try:
            ended = subprocess.run(
                [*self._prefix, *words],
                input=stdin,
                check=False,
                capture_output=True,
                text=True,
                timeout=_SECONDS,
            )
        except FileNotFoundError as error:
            raise SystemCommandError(f"{words[0]} is not installed on this host") from error
        except subprocess.TimeoutExpired as error:
            raise SystemCommandError(f"{shlex.join(words)} does not end") from error
        if ended.returncode:
            told = ended.stderr.strip() or f"status {ended.returncode}"
            raise SystemCommandError(f"{shlex.join(words)} failed: {told[:500]}")
        return ended.stdout
