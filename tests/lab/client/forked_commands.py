"""Runs commands of the official client, each in a forked process: importing it takes a second, which most
commands don't. Runs under the client's own Python:

    python -P forked_commands.py

Each line on standard input is a command: its arguments and its environment, as JSON. The answer is a line
with the status that it left with, and with what it printed.
"""

from __future__ import annotations

import importlib
import importlib.metadata
import json
import os
import sys
import tempfile
from typing import IO, Any

from cliff import command as cliff_command
from openstackclient import shell

_GROUPS = "openstack."
"""How the groups of entry points begin in which the client looks for its commands, whichever is asked for."""
_LATER = ("cryptography.x509", "keystoneauth1.extras", "keystoneauth1.loading", "osc_lib.cli.parseractions")
"""What is imported only when a command needs it."""


def import_all() -> None:
    points = importlib.metadata.entry_points()
    modules = {
        point.module
        for group in points.groups
        if group.startswith(_GROUPS)
        for point in points.select(group=group)
    }
    for name in (*sorted(modules), *_LATER):
        importlib.import_module(name)
    # For the last line of its help, which is made for each command, cliff looks whose each module is.
    cliff_command._get_distribution_for_module(shell)


def run(command: dict[str, Any], output: IO[str], errors: IO[str]) -> None:
    """The life of a forked process."""
    for number, end in enumerate((os.open(os.devnull, os.O_RDONLY), output.fileno(), errors.fileno())):
        os.dup2(end, number)
    os.environ.clear()
    os.environ.update(command["environment"])
    sys.argv = ["openstack", *command["arguments"]]
    try:
        status = shell.main(command["arguments"])
    except SystemExit as error:
        status = error.code
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(status if isinstance(status, int) else int(status is not None))


def answer(command: dict[str, Any]) -> dict[str, Any]:
    with tempfile.TemporaryFile("w+") as output, tempfile.TemporaryFile("w+") as errors:
        child = os.fork()
        if child == 0:
            try:
                run(command, output, errors)
            finally:
                os._exit(70)  # whatever happened, there must not be two of us
        _, ended = os.waitpid(child, 0)
        for file in (output, errors):
            file.seek(0)
        return {
            "status": os.waitstatus_to_exitcode(ended),
            "output": output.read(),
            "errors": errors.read(),
        }


def main() -> None:
    import_all()
    for line in sys.stdin:
        sys.stdout.write(json.dumps(answer(json.loads(line))) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
