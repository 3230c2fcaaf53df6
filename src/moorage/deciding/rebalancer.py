"""Proposes moves: thought out on a picture of the cloud, and asked of the scheduler before they are told."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from moorage.compute.drains.drain import DrainWay
from moorage.compute.servers import servers
from moorage.compute.servers.server import Server
from moorage.db.database import Database
from moorage.deciding.cloud_picture import EVERYWHERE, CloudPictures, Scope
from moorage.deciding.planner import Planner
from moorage.scheduler.rebalance import proposal
from moorage.scheduler.rebalance.freeing import freeing
from moorage.scheduler.rebalance.picture import Bars, ChosenMove, CloudPicture, MovableServer
from moorage.scheduler.rebalance.proposal import Goal, Proposal
from moorage.scheduler.rebalance.spread import spread

_PATIENCE = 10
"""So many times others are chosen in the place of single moves that the scheduler refuses; then what it
refuses is left where it is, so that an answer comes in any case."""


@dataclass(frozen=True, slots=True)
class RebalanceRequest:
    goal: Goal
    most: int
    min_gain: float = 0.0
    """Of the standard deviation, as a share; only for the spread."""
    way: DrainWay = DrainWay.AUTO
    scope: Scope = EVERYWHERE


class Rebalancer:
    def __init__(self, database: Database, pictures: CloudPictures, planner: Planner) -> None:
        self._database = database
        self._pictures = pictures
        self._planner = planner

    def propose(self, asked: RebalanceRequest) -> Proposal:
        """Moves that the scheduler would make; nothing is claimed."""
        picture = self._pictures.take(asked.scope, asked.way)
        return proposal.told(asked.goal, picture, self._agreed(asked, picture))

    def _agreed(self, asked: RebalanceRequest, picture: CloudPicture) -> list[ChosenMove]:
        """Each round has fewer moves to choose from, so there is a last one."""
        bars = Bars(picture)
        asked_for: set[object] = set()
        rounds = 0
        while chosen := _choose(asked, picture, bars):
            moved = self._servers(chosen)
            gone = {move.server.id for move in chosen if not _is_there(move.server, moved)}
            if gone:
                picture = replace(picture, servers=[one for one in picture.servers if one.id not in gone])
                continue
            refused = self._refused(picture, chosen, moved)
            if not refused:
                break
            rounds += 1
            for move in refused:
                kind = move.server.kind
                bars.bar(kind, move.target)
                if rounds > _PATIENCE:
                    bars.bar_everywhere(kind)
                elif kind not in asked_for:
                    asked_for.add(kind)
                    fitting = self._planner.nodes_for(moved[move.server.id], 2 * len(picture.hosts))
                    bars.leave_only(kind, fitting | {move.server.node_uuid})
        return chosen

    def _refused(
        self, picture: CloudPicture, chosen: Sequence[ChosenMove], moved: Mapping[int, Server]
    ) -> list[ChosenMove]:
        """Asked together, so that each sees what those before it would take."""
        plans = self._planner.plan_moves(
            [moved[move.server.id] for move in chosen], [picture.hosts[move.target].host for move in chosen]
        )
        return [
            move
            for move, plan in zip(chosen, plans, strict=True)
            if plan.place is None or plan.place.node_uuid != picture.hosts[move.target].node_uuid
        ]

    def _servers(self, chosen: Sequence[ChosenMove]) -> dict[int, Server]:
        with self._database.read() as connection:
            return servers.by_id(connection, [move.server.id for move in chosen])


def _is_there(server: MovableServer, found: Mapping[int, Server]) -> bool:
    """Whether it is where the picture has it: some time has passed since."""
    return server.id in found and found[server.id].node_uuid == server.node_uuid


def _choose(asked: RebalanceRequest, picture: CloudPicture, bars: Bars) -> list[ChosenMove]:
    if asked.goal is Goal.SPREAD:
        return spread(picture, bars, asked.most, asked.min_gain)
    return freeing(picture, bars, asked.most)
