"""`moorage-manage ironic` and `moorage ring`: who owns the nodes that hosts share, and who would."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection
from datetime import timedelta
from typing import Annotated, Any

import msgspec
import typer
from oslo_config import cfg
from rich import box
from rich.console import Console
from rich.table import Table

from moorage.cli import settings
from moorage.cli.errors import CommandError, Commands
from moorage.cli.options import ConfigFiles, Json
from moorage.cli.processes.workers import require_fitting_schema
from moorage.compute.hosts import machine_failures
from moorage.conductor.ownership import overlaps, ownership
from moorage.conductor.ownership.ring import OwnedNode, ProposedMove, Ring, read
from moorage.db import engine
from moorage.db.database import Database

_WIDE = 180
"""UUIDs are there to be copied, so that a narrow terminal may break lines, but not shorten them."""
_BAR = 40
"""Characters that all nodes of a partition take."""

ironic = Commands(
    help="The nodes of an Ironic, and their owners.\n\nExample: moorage-manage ironic list-owners"
)

Without = Annotated[
    list[str] | None,
    typer.Option("--without", metavar="HOST", help="As if this host were gone.", show_default=False),
]
With = Annotated[
    list[str] | None,
    typer.Option(
        "--with", metavar="HOST", help="As if this host served the partition, too.", show_default=False
    ),
]


@ironic.command("list-owners")
def list_owners(context: typer.Context, as_json: Json = False) -> None:
    """List every shared node: its group, its owner, the epoch, and the server that it carries.

    Example: moorage-manage --config-file /etc/moorage/moorage.conf ironic list-owners
    """
    conf = settings.read(context.obj)
    found = {node.uuid: node for ring in _rings(conf) for node in ring.nodes}
    if as_json:
        typer.echo(msgspec.json.encode([_node(node) for node in found.values()]))
        return
    table = Table(
        "node", "name", "group", "shard", "owner", "epoch", "server", box=box.SIMPLE_HEAD, pad_edge=False
    )
    for node in found.values():
        table.add_row(
            node.uuid,
            node.name,
            node.group,
            node.shard,
            node.host or "nobody",
            str(node.epoch),
            node.server or "",
        )
    Console(highlight=False, soft_wrap=True, width=_WIDE).print(table)


@ironic.command()
def rebalance(
    context: typer.Context,
    preview: Annotated[bool, typer.Option("--preview", help="Tell what will move.")] = False,
    as_json: Json = False,
) -> None:
    """Tell which nodes will change their owner at the next pass of the hosts that are up.

    Hosts rebalance by themselves; this only tells what they will do.

    Example: moorage-manage --config-file /etc/moorage/moorage.conf ironic rebalance --preview
    """
    if not preview:
        raise CommandError("hosts rebalance by themselves: give --preview to see what they will do")
    conf = settings.read(context.obj)
    moves = [move for ring in _rings(conf) for move in ring.moves(ring.living)]
    if as_json:
        typer.echo(msgspec.json.encode([_move(move) for move in moves]))
        return
    for move in moves:
        typer.echo(f"{move.node.uuid}: {move.node.host or 'nobody'} -> {move.to}")
    typer.echo(f"{len(moves)} nodes will move" if moves else "nothing will move")


@ironic.command("move-node")
def move_node(
    context: typer.Context,
    node: Annotated[str, typer.Argument(help="The UUID of a node.")],
    host: Annotated[str, typer.Argument(help="The host that shall own it.")],
) -> None:
    """Give a node, and the server that it carries, to another host. Its owner has to be down.

    For servers of a host that is gone for good, where `[ironic] failover_servers` is off; else peers do this
    by themselves. A node without a server goes where hashing says, soon after.

    Example: moorage-manage ironic move-node 6f0c2f2e-6c5f-4f0a-9d51-0a4b7f1c2d3e metal-2
    """
    conf = settings.read(context.obj)
    require_fitting_schema(conf)
    database = Database(engine.from_conf(conf))
    try:
        database.transact(lambda connection: ownership.move(connection, node, host, _down_after(conf)))
    except ownership.NotMovableError as error:
        raise CommandError(str(error)) from error
    typer.echo(f"node {node} is host {host}'s; its agent hears of it at its next pass")


@ironic.command()
def release(
    context: typer.Context,
    node: Annotated[str, typer.Argument(help="The UUID of a node of Ironic.")],
) -> None:
    """Let servers come to a machine again that failed too often. What befell it stays in its history.

    So does, by itself, a machine that you take out of use in Ironic (manage), or into maintenance.

    Example: moorage-manage ironic release 6f0c2f2e-6c5f-4f0a-9d51-0a4b7f1c2d3e
    """
    conf = settings.read(context.obj)
    require_fitting_schema(conf)
    database = Database(engine.from_conf(conf))
    if not database.transact(lambda connection: machine_failures.release(connection, [node])):
        raise CommandError(f"node {node} is not in quarantine: `moorage nodes --failed` shows which are")
    typer.echo(f"node {node} is released; its host hears of it with its next heartbeat")


def ring(
    config_file: ConfigFiles = None, without: Without = None, also: With = None, as_json: Json = False
) -> None:
    """Draw who owns what, partition by partition, and what a change of hosts would move.

    It reads the database that the configuration names.

    Example: moorage ring --config-file /etc/moorage/moorage.conf --without metal-2
    """
    conf = settings.read(config_file)
    found = _rings(conf)
    leaving, coming = set(without or ()), set(also or ())
    changed = bool(leaving or coming)
    if as_json:
        typer.echo(msgspec.json.encode([_as_json(one, leaving, coming) for one in found]))
        return
    console = Console(highlight=False, soft_wrap=True)
    if not found:
        console.print("No host shares nodes.")
    for one in found:
        _draw(one, console)
        hosts = (one.living - leaving) | coming
        if changed and (coming or leaving & one.living):
            _draw_moves(one.moves(hosts), hosts, console)
    for overlap in _overlaps(conf):
        console.print(f"[yellow]overlap[/]: {overlap}")


def _overlaps(conf: cfg.ConfigOpts) -> list[overlaps.Overlap]:
    with Database(engine.from_conf(conf)).snapshot() as connection:
        return overlaps.find(connection, _down_after(conf))


def _draw(ring: Ring, console: Console) -> None:
    console.print(f"[bold]{ring.served}[/]: {len(ring.nodes)} nodes")
    owned = Counter(node.host for node in ring.nodes)
    used = Counter(node.host for node in ring.nodes if node.server is not None)
    fair = Counter(ring.proposal(ring.living).values())
    table = Table("host", "", "nodes", "with servers", "by hashing", "", box=box.SIMPLE_HEAD, pad_edge=False)
    up = {member.host: member.up for member in ring.members}
    for host in sorted(up.keys() | owned.keys()):
        state = "" if up.get(host) else ("down" if host in up else "serves something else")
        if not host:
            state = "waits for an owner"
        length = round(_BAR * owned[host] / len(ring.nodes)) if ring.nodes else 0
        table.add_row(
            host or "nobody", state, str(owned[host]), str(used[host]), str(fair[host]), "█" * length
        )
    console.print(table)


def _draw_moves(moves: Collection[ProposedMove], hosts: Collection[str], console: Console) -> None:
    console.print(f"With {', '.join(sorted(hosts)) or 'no host'}, {len(moves)} nodes would move:")
    for (source, target), count in sorted(Counter((move.node.host, move.to) for move in moves).items()):
        console.print(f"  {source or 'nobody'} → {target}: {count}")


def _rings(conf: cfg.ConfigOpts) -> list[Ring]:
    require_fitting_schema(conf)
    with Database(engine.from_conf(conf)).snapshot() as connection:
        return read(connection, _down_after(conf))


def _down_after(conf: cfg.ConfigOpts) -> timedelta:
    return timedelta(seconds=conf.compute.service_down_time)


def _as_json(ring: Ring, leaving: set[str], coming: set[str]) -> dict[str, Any]:
    moves = ring.moves((ring.living - leaving) | coming)
    return {
        "partition_key": ring.served.key,
        "shard": ring.served.shard,
        "hosts": [{"host": member.host, "up": member.up} for member in ring.members],
        "nodes": [_node(node) for node in ring.nodes],
        "moves": [_move(move) for move in moves],
    }


def _node(node: OwnedNode) -> dict[str, Any]:
    return {
        "uuid": node.uuid,
        "name": node.name,
        "conductor_group": node.group,
        "shard": node.shard,
        "host": node.host or None,
        "epoch": node.epoch,
        "server": node.server,
    }


def _move(move: ProposedMove) -> dict[str, Any]:
    return {"node": move.node.uuid, "from": move.node.host or None, "to": move.to}
