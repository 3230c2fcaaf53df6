"""Drains and rebalances as the Compute API tells of them, and as a command tells of them in turn."""

from __future__ import annotations

import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import msgspec
import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from moorage.cli import service
from moorage.cli.errors import CommandError
from moorage.cli.service import ServiceType
from moorage.scheduler.rebalance.proposal import Proposal

_LOOK_AGAIN = 1.0


class ToldServer(msgspec.Struct):
    id: str
    source: str | None
    target: str | None
    state: str
    move: str | None
    tries: int
    reason: str | None


class ToldDrain(msgspec.Struct):
    """A list of drains does not tell of servers."""

    id: str
    host: str | None
    goal: str | None
    way: str
    state: str
    disabled_host: bool
    created_at: str
    finished_at: str | None
    counts: dict[str, int]
    servers: list[ToldServer] = []

    @property
    def settled(self) -> int:
        return self.counts["moved"] + self.counts["gone"] + self.counts["staying"]

    @property
    def name(self) -> str:
        return self.host or "rebalance"


class PlacedServer(msgspec.Struct):
    id: str
    name: str
    status: str
    host: str | None
    reason: str | None


class ToldPlan(msgspec.Struct):
    host: str
    servers: list[PlacedServer]


class _ShownDrain(msgspec.Struct):
    drain: ToldDrain


class _ShownDrains(msgspec.Struct):
    drains: list[ToldDrain]


class _ShownProposal(msgspec.Struct):
    rebalance: Proposal


class _ShownPlan(msgspec.Struct):
    plan: ToldPlan


class DrainAccess:
    """The part of the Compute API that is about drains and rebalances."""

    def __init__(self, cloud: str | None, data: Path) -> None:
        self._cloud = cloud
        self._data = data

    def plan(self, asked: dict[str, Any]) -> ToldPlan:
        return msgspec.json.decode(self._post("/moorage-drains/plan", {"drain": asked}), type=_ShownPlan).plan

    def begin(self, asked: dict[str, Any]) -> ToldDrain:
        return msgspec.json.decode(self._post("/moorage-drains", {"drain": asked}), type=_ShownDrain).drain

    def propose(self, asked: dict[str, Any]) -> Proposal:
        answer = self._post("/moorage-rebalances/plan", {"rebalance": asked})
        return msgspec.json.decode(answer, type=_ShownProposal).rebalance

    def begin_rebalance(self, asked: dict[str, Any]) -> ToldDrain:
        answer = self._post("/moorage-rebalances", {"rebalance": asked})
        return msgspec.json.decode(answer, type=_ShownDrain).drain

    def newest_rebalance(self) -> ToldDrain:
        found = msgspec.json.decode(self._get("/moorage-drains", "kind=rebalance"), type=_ShownDrains).drains
        if not found:
            raise CommandError("nothing was ever rebalanced")
        return self.show(found[0].id)

    def show(self, drain_id: str) -> ToldDrain:
        return msgspec.json.decode(self._get(f"/moorage-drains/{drain_id}"), type=_ShownDrain).drain

    def drains(self, host: str | None = None) -> list[ToldDrain]:
        query = "" if host is None else f"host={host}"
        return msgspec.json.decode(self._get("/moorage-drains", query), type=_ShownDrains).drains

    def newest(self, host: str) -> ToldDrain:
        found = self.drains(host)
        if not found:
            raise CommandError(f"{host} was never drained")
        return self.show(found[0].id)

    def cancel(self, drain: ToldDrain) -> ToldDrain:
        answer = self._post(f"/moorage-drains/{drain.id}/action", {"cancel": None})
        return msgspec.json.decode(answer, type=_ShownDrain).drain

    def enable(self, host: str) -> None:
        found = msgspec.json.decode(self._get("/os-services", f"host={host}&binary=nova-compute"))["services"]
        for one in found:
            service.answer(
                "PUT",
                f"/os-services/{one['id']}",
                {"status": "enabled"},
                self._cloud,
                self._data,
                ServiceType.COMPUTE,
            )

    def _get(self, path: str, query: str = "") -> bytes:
        return service.ask(path, query, self._cloud, self._data, ServiceType.COMPUTE)

    def _post(self, path: str, body: Any) -> bytes:
        return service.put_to(path, body, self._cloud, self._data, ServiceType.COMPUTE)


def planned(plan: ToldPlan, *, only_staying: bool = False) -> Iterator[str]:
    """Where each would go; those that would go nowhere come first, for they are what to look at."""
    staying = [server for server in plan.servers if server.host is None]
    leaving = [server for server in plan.servers if server.host is not None]
    yield f"{len(leaving)} of {len(plan.servers)} servers would find a place elsewhere."
    for server in staying:
        yield f"  {server.id} ({server.name}, {server.status}) stays: {server.reason}"
    for server in () if only_staying else leaving:
        yield f"  {server.id} ({server.name}, {server.status}) → {server.host}"


def told(drain: ToldDrain) -> Iterator[str]:
    """How far it is, and what keeps those that have not left."""
    yield headline(drain)
    for server in drain.servers:
        if server.state == "staying" or (server.state == "waiting" and server.reason):
            tries = f", tried {server.tries} times" if server.tries > 1 else ""
            yield f"  {server.id} {server.state}{tries}: {server.reason}"
        elif server.state == "moving":
            target = "" if server.target is None else f" to {server.target}"
            yield f"  {server.id} moving{target} ({server.move})"


def headline(drain: ToldDrain) -> str:
    counted = ", ".join(f"{count} {state}" for state, count in drain.counts.items() if count)
    if drain.host is None:
        said = f"rebalance {drain.id} ({drain.goal}, {drain.way})"
    else:
        said = f"{drain.host}: drain {drain.id} ({drain.way})"
    return f"{said} is {drain.state}: {counted or 'no servers'}"


def finish(begun: ToldDrain, access: DrainAccess, *, detach: bool, as_json: bool) -> None:
    """Wait for the end of what was begun, unless nobody wants to, and tell of it."""
    ended = begun if detach else _watch(begun, access)
    typer.echo(msgspec.json.encode(ended) if as_json else "\n".join(told(ended)))
    if ended.finished_at is not None and ended.counts["staying"]:
        raise typer.Exit(2)


def _watch(drain: ToldDrain, access: DrainAccess) -> ToldDrain:
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=Console(stderr=True)) as progress:
        task = progress.add_task(drain.name)
        while drain.finished_at is None:
            total = sum(drain.counts.values())
            moving = drain.counts["moving"]
            progress.update(
                task, completed=drain.settled, total=total, description=f"{drain.name}, {moving} moving"
            )
            time.sleep(_LOOK_AGAIN)
            drain = service.patiently(partial(access.show, drain.id))
        progress.update(task, completed=drain.settled, total=sum(drain.counts.values()))
    return drain
