"""`moorage rebalance`: the few moves that make hosts more alike, or free, with what they win in numbers."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any

import msgspec
import typer

from moorage.cli.commands.drain_options import Auto, Cold, Deadline, Detach, Live, Parallel, seconds, way_of
from moorage.cli.commands.drains import DrainAccess, finish, headline
from moorage.cli.commands.drains import told as told_so_far
from moorage.cli.errors import Commands
from moorage.cli.options import Cloud, Data, Json
from moorage.scheduler.rebalance.proposal import Goal, Measure, Proposal, WorthwhileMove

rebalance = Commands(
    help="Propose the few moves that win the most: hosts that are used alike, or hosts that become free."
    "\n\nEach move is one that the scheduler would make now. With --apply they are made, and go on if this"
    " command, or any other process, is ended; the exit status is 2 if servers stay where they were."
    "\n\nExample: moorage rebalance --goal free --most 20"
)


@rebalance.callback(invoke_without_command=True, no_args_is_help=False)
def propose(
    context: typer.Context,
    goal: Annotated[
        Goal, typer.Option(help="Use hosts alike (spread), or empty some of them (free).")
    ] = Goal.SPREAD,
    most: Annotated[int, typer.Option(min=1, max=1000, help="How many moves there may be.")] = 10,
    aggregate: Annotated[
        str | None, typer.Option(help="Only the hosts of this aggregate.", show_default=False)
    ] = None,
    zone: Annotated[
        str | None, typer.Option(help="Only the hosts of this availability zone.", show_default=False)
    ] = None,
    min_gain: Annotated[
        float | None,
        typer.Option(
            min=0,
            max=100,
            help="Percentage points of the standard deviation that each move has to win at least.",
            show_default=False,
        ),
    ] = None,
    live: Live = False,
    cold: Cold = False,
    auto: Auto = False,
    apply: Annotated[bool, typer.Option("--apply", help="Make the moves that are proposed.")] = False,
    max_parallel: Parallel = 5,
    deadline: Deadline = None,
    detach: Detach = False,
    cloud: Cloud = None,
    data: Data = Path("data"),
    as_json: Json = False,
) -> None:
    """Propose moves, and make them if that is asked for."""
    if context.invoked_subcommand is not None:
        return
    access, way = DrainAccess(cloud, data), way_of(live=live, cold=cold, auto=auto)
    pace = {"max_parallel": max_parallel, **seconds(deadline)}
    asked: dict[str, Any] = {"goal": goal.value, "most": most, "way": way}
    optional = {"aggregate": aggregate, "zone": zone, "min_gain": min_gain}
    proposal = access.propose(asked | {name: value for name, value in optional.items() if value is not None})
    if as_json and not (apply and proposal.moves):
        typer.echo(msgspec.json.encode(proposal))
        return
    for line in () if as_json else told(proposal):
        typer.echo(line)
    if apply and proposal.moves:
        moves = [
            {"server": move.server, "source": move.source, "target": move.target} for move in proposal.moves
        ]
        wanted = {"goal": goal.value, "way": way, "moves": moves, **pace}
        finish(access.begin_rebalance(wanted), access, detach=detach, as_json=as_json)


@rebalance.command()
def status(cloud: Cloud = None, data: Data = Path("data"), as_json: Json = False) -> None:
    """Tell how far the last rebalance is.

    Example: moorage rebalance status
    """
    newest = DrainAccess(cloud, data).newest_rebalance()
    typer.echo(msgspec.json.encode(newest) if as_json else "\n".join(told_so_far(newest)))


@rebalance.command()
def cancel(cloud: Cloud = None, data: Data = Path("data"), as_json: Json = False) -> None:
    """Begin no more moves of the last rebalance; those that are under way go on.

    Example: moorage rebalance cancel
    """
    access = DrainAccess(cloud, data)
    cancelled = access.cancel(access.newest_rebalance())
    typer.echo(msgspec.json.encode(cancelled) if as_json else headline(cancelled))


def told(proposal: Proposal) -> Iterator[str]:
    """How it is, each move, and how it would be."""
    yield f"{proposal.hosts} hosts, {proposal.servers} servers, of which {proposal.movable} can be moved."
    yield f"now:   {_measured(proposal.before)}"
    if not proposal.moves:
        yield _NOTHING[proposal.goal]
        return
    yield f"after: {_measured(proposal.after)}"
    for number, move in enumerate(proposal.moves, 1):
        yield f"{number:3}. {_move(move, proposal.goal)}"
    yield f"{_counted(len(proposal.moves), 'move')} {_won(proposal)}."


_NOTHING = {
    Goal.SPREAD: "Already as even as moves can make it.",
    Goal.FREE: "No host can be freed with so few moves.",
}


def _measured(measure: Measure) -> str:
    return (
        f"{measure.mean:.1f} % used on average, standard deviation {measure.deviation:.2f} points, "
        f"from {measure.lowest:.1f} to {measure.highest:.1f} %, {_counted(measure.empty, 'empty host')}"
    )


def _move(move: WorthwhileMove, goal: Goal) -> str:
    (left, leaves), (came, comes) = move.source_share, move.target_share
    wins = _freed(move) if goal is Goal.FREE else f"wins {move.gain:.2f}"
    return (
        f"{move.server} ({move.name}, {move.flavor}): {move.source} → {move.target}, {move.move}; "
        f"{left:.1f} → {leaves:.1f} %, {came:.1f} → {comes:.1f} %, {wins}"
    )


def _freed(move: WorthwhileMove) -> str:
    others = round(1 / move.gain) - 1
    return f"frees {move.source}" + (f" with {_counted(others, 'other')}" if others else "")


def _won(proposal: Proposal) -> str:
    if proposal.goal is Goal.FREE:
        return f"would free {_counted(proposal.after.empty - proposal.before.empty, 'host')}"
    return f"would win {proposal.before.deviation - proposal.after.deviation:.2f} points"


def _counted(count: int, what: str) -> str:
    return f"{count} {what}" if count == 1 else f"{count} {what}s"
