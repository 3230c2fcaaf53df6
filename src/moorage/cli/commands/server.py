"""`moorage server`: servers that hosts have, and that the database does not know there."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import msgspec
import typer

from moorage.cli import service
from moorage.cli.errors import Commands
from moorage.cli.options import Cloud, Data, Json
from moorage.cli.service import ServiceType

server = Commands(
    help="Servers that hosts have, and that the database does not know there: it was restored from a backup."
    "\n\nExample: moorage server adopt 6f0c2f2e-6c5f-4f0a-9d51-0a4b7f1c2d3e --host compute-7"
)

Uuid = Annotated[str, typer.Argument(metavar="SERVER", help="Its UUID, as `moorage audit` names it.")]
Host = Annotated[str, typer.Option(help="The host that has it.")]
Node = Annotated[
    str | None, typer.Option(help="The UUID of its node, if the host has several.", show_default=False)
]
Project = Annotated[str | None, typer.Option(help="The project that it is for.", show_default=False)]
User = Annotated[str | None, typer.Option(help="The user that it is for.", show_default=False)]
Name = Annotated[str | None, typer.Option(help="How it is called.", show_default=False)]
Flavor = Annotated[str | None, typer.Option(help="The ID of its flavor.", show_default=False)]


@server.command()
def adopt(
    uuid: Uuid,
    host: Host,
    node: Node = None,
    project: Project = None,
    user: User = None,
    name: Name = None,
    flavor: Flavor = None,
    cloud: Cloud = None,
    data: Data = Path("data"),
    as_json: Json = False,
) -> None:
    """Make a server known that a host has: one that nobody knows, or one that is elsewhere by the database.

    Its host says what it knows of it: with libvirt all, with Ironic its name, project, user and flavor. What
    it does not know has to be said here. What was under way for a server that was known is over.

    Example: moorage server adopt 6f0c2f2e-6c5f-4f0a-9d51-0a4b7f1c2d3e --host compute-7
    """
    said = {"node_id": node, "project_id": project, "user_id": user, "name": name, "flavor_id": flavor}
    answer = _adopted(uuid, host, said, cloud, data)
    typer.echo(answer if as_json else f"{uuid}: adopted on {host}")


@server.command()
def remove(
    uuid: Uuid,
    host: Host,
    node: Node = None,
    project: Project = None,
    name: Name = None,
    flavor: Flavor = None,
    cloud: Cloud = None,
    data: Data = Path("data"),
    as_json: Json = False,
) -> None:
    """Delete a server that a host has and nobody knows: it is adopted, and then deleted as any other.

    Its disk goes, its ports and what it holds in Placement. There is no way back.

    Example: moorage server remove 6f0c2f2e-6c5f-4f0a-9d51-0a4b7f1c2d3e --host compute-7
    """
    said = {"node_id": node, "project_id": project, "name": name, "flavor_id": flavor}
    answer = _adopted(uuid, host, said, cloud, data)
    service.answer("DELETE", f"/servers/{uuid}", None, cloud, data, ServiceType.COMPUTE)
    typer.echo(answer if as_json else f"{uuid}: is deleted from {host}")


def _adopted(uuid: str, host: str, said: dict[str, Any], cloud: str | None, data: Path) -> bytes:
    named = {name: value for name, value in said.items() if value is not None}
    body = {"adoption": {"server_id": uuid, "host": host, **named}}
    answer = service.put_to("/moorage-adoptions", body, cloud, data, ServiceType.COMPUTE)
    return msgspec.json.format(answer, indent=0)
