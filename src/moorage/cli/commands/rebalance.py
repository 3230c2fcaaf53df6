"""`moorage rebalance`: the few moves that make hosts more alike, or free, with what they win in numbers."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any

import msgspec
import typer

from moorage.cli import service
from moorage.cli.errors import CommandError, Commands
from moorage.cli.options import Cloud, Data, Json
from moorage.cli.service import ServiceType
from moorage.scheduler.rebalance.proposal import Goal, Measure, Proposal, WorthwhileMove

rebalance = Commands(help="Propose the few moves that win the most.\n\nExample: moorage rebalance --most 5")


class _Shown(msgspec.Struct):
    rebalance: Proposal


@rebalance.callback(invoke_without_command=True, no_args_is_help=False)
def propose(
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
    live: Annotated[bool, typer.Option("--live", help="Move only what can be moved while it runs.")] = False,
    cold: Annotated[bool, typer.Option("--cold", help="Stop what runs, and start it elsewhere.")] = False,
    auto: Annotated[
        bool, typer.Option("--auto", help="Live where that is possible, cold otherwise: the default.")
    ] = False,
    cloud: Cloud = None,
    data: Data = Path("data"),
    as_json: Json = False,
) -> None:
    """Propose the few moves that win the most: hosts that are used alike, or hosts that become free.

    Each move is one that the scheduler would make now. Nothing is moved.

    Example: moorage rebalance --goal free --most 20
    """
    asked: dict[str, Any] = {"goal": goal.value, "most": most, "way": way_of(live, cold, auto)}
    optional = {"aggregate": aggregate, "zone": zone, "min_gain": min_gain}
    asked |= {name: value for name, value in optional.items() if value is not None}
    answer = service.put_to(
        "/moorage-rebalances/plan", {"rebalance": asked}, cloud, data, ServiceType.COMPUTE
    )
    proposal = msgspec.json.decode(answer, type=_Shown).rebalance
    typer.echo(msgspec.json.encode(proposal) if as_json else "\n".join(told(proposal)))


def way_of(live: bool, cold: bool, auto: bool) -> str:
    if live + cold + auto > 1:
        raise CommandError("--live, --cold and --auto exclude each other")
    return "live" if live else "cold" if cold else "auto"


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
    wins = f"frees 1/{round(1 / move.gain)} of it" if goal is Goal.FREE else f"wins {move.gain:.2f}"
    return (
        f"{move.server} ({move.name}, {move.flavor}): {move.source} → {move.target}, {move.move}; "
        f"{left:.1f} → {leaves:.1f} %, {came:.1f} → {comes:.1f} %, {wins}"
    )


def _won(proposal: Proposal) -> str:
    if proposal.goal is Goal.FREE:
        return f"would free {_counted(proposal.after.empty - proposal.before.empty, 'host')}"
    return f"would win {proposal.before.deviation - proposal.after.deviation:.2f} points"


def _counted(count: int, what: str) -> str:
    return f"{count} {what}" if count == 1 else f"{count} {what}s"
