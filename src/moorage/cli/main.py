"""`moorage`: run it, and ask it things."""

from __future__ import annotations

from moorage.cli.commands.adopt_guests import adopt_guests
from moorage.cli.commands.audit import audit
from moorage.cli.commands.capacity import capacity
from moorage.cli.commands.doctor import doctor
from moorage.cli.commands.explain import explain
from moorage.cli.commands.host import host
from moorage.cli.commands.image import image
from moorage.cli.commands.nodes import nodes
from moorage.cli.commands.ops import ops
from moorage.cli.commands.plan import plan
from moorage.cli.commands.rebalance import rebalance
from moorage.cli.commands.server import server
from moorage.cli.commands.why import why
from moorage.cli.embedded.up import up
from moorage.cli.errors import Commands
from moorage.cli.manage.ironic import ring

commands = Commands(help="A compute control plane that speaks the OpenStack APIs.\n\nExample: moorage up")
commands.command()(up)
commands.command()(doctor)
commands.command()(adopt_guests)
commands.command()(explain)
commands.command()(plan)
commands.command()(audit)
commands.command()(ring)
commands.command()(nodes)

commands.add_typer(image, name="image")
commands.add_typer(host, name="host")
commands.add_typer(server, name="server")
commands.add_typer(rebalance, name="rebalance")
commands.add_typer(ops, name="ops")

placement = Commands(
    help='Ask a running Placement service.\n\nExample: moorage placement why "resources=VCPU:4"'
)
placement.command()(why)
placement.command()(capacity)
commands.add_typer(placement, name="placement")


def main() -> None:
    commands()
