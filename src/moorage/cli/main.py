"""`moorage`: run it, and ask it things."""

from __future__ import annotations

from moorage.cli.errors import Commands
from moorage.cli.up import up

commands = Commands(help="A compute control plane that speaks the OpenStack APIs.")
commands.command()(up)


@commands.callback()
def group() -> None:
    """A compute control plane that speaks the OpenStack APIs."""


def main() -> None:
    commands()
