"""Delete: the server goes from its host, then its addresses and its claim, then its row is marked.

It may come at any moment of a build or a move. That was cancelled in the transaction that enqueued this; what
a conductor had under way for it then is waited for before anything is dropped, so that nothing comes after.
In mid-move both ends may have the server, so both are cleaned, one after the other.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import msgspec
from sqlalchemy.engine import Connection

from moorage.bus.contract import RELEASE_PORTS
from moorage.compute.moves import migrations
from moorage.compute.moves.migrations import Migration
from moorage.compute.servers import servers
from moorage.compute.servers.fault import fault
from moorage.conductor.agents.agents import Agents
from moorage.conductor.engine.runner import Step
from moorage.conductor.engine.work import Work
from moorage.conductor.ports.port_duties import PortDuties
from moorage.db.database import Database
from moorage.deciding.hosts import Hosts
from moorage.ledger import ledger
from moorage.network import delegation
from moorage.network.contract import Holding, Network, Reach
from moorage.placement.client.contract import PlacementClient

_LOOK_AGAIN_SECONDS = 0.5
_RETRY_SECONDS = 5.0
_MOST_TRIES = 5


class Delete:
    def __init__(
        self,
        database: Database,
        agents: Agents,
        hosts: Hosts,
        network: Network,
        placement: PlacementClient,
        duties: PortDuties,
    ) -> None:
        self._database = database
        self._agents = agents
        self._hosts = hosts
        self._network = network
        self._placement = placement
        self._duties = duties

    def steps(self) -> dict[str, Step]:
        return {
            "begin": self.begin,
            "destroy": self.destroy,
            "destroyed": self.destroyed,
            "let_go": self.let_go,
            "gone": self.gone,
            "release": self.release,
        }

    def begin(self, batch: Sequence[Work]) -> None:
        with self._database.read() as connection:
            busy = ledger.under_way(connection, [work.server["id"] for work in batch])
            moves = migrations.active_of(connection, [work.server["id"] for work in batch])
        for work in batch:
            if work.server["id"] in busy:
                work.wait("begin", _LOOK_AGAIN_SECONDS)
                continue
            move = moves.get(work.server["id"])
            work.data["ends"] = _ends(work, move)
            work.data["migration"] = None if move is None else move.uuid
            if work.data["ends"]:
                work.advance("destroy")
            else:
                self._destroyed_everywhere(work)

    def destroy(self, batch: Sequence[Work]) -> None:
        """A host that is down can't be asked: it cleans up when it comes back, or now, if it hears of it."""
        up = self._hosts.up()
        reachable = [work for work in batch if _host(work) in up]
        for work in batch:
            if _host(work) not in up:
                self._agents.discard(work, _host(work))
                self._next_end(work)
        self._agents.ask(
            reachable,
            "destroy",
            then="destroyed",
            payload=lambda _work: {},
            host=_host,
            node_uuid=lambda work: str(work.data["ends"][0][1]),
        )

    def _next_end(self, work: Work) -> None:
        work.data["ends"] = work.data["ends"][1:]
        if work.data["ends"]:
            work.advance_to_task("destroy")
        else:
            self._destroyed_everywhere(work)

    def _destroyed_everywhere(self, work: Work) -> None:
        if self._network.reach is Reach.AGENTS:
            work.advance_to_task("let_go")
        else:
            work.advance("release")

    def destroyed(self, batch: Sequence[Work]) -> None:
        for work in batch:
            result = work.take_result()
            if result is None:
                if not self._agents.ask_again(work, "destroy"):
                    self.give_up(work, "the host did not answer")
            elif result["ok"]:
                self._next_end(work)
            elif work.operation.tries < _MOST_TRIES:
                work.try_again("destroy", _RETRY_SECONDS)
            else:
                self.give_up(work, result["error"])

    def let_go(self, batch: Sequence[Work]) -> None:
        """We have no credentials: have an agent release the ports, that of the server's host if it lives."""
        able = sorted(self._duties.networked())
        for work in batch:
            if able:
                work.data["releaser"] = work.server["host"] if work.server["host"] in able else able[0]
            elif not Holding.of(work.server).ports:  # and who could have made any?
                work.advance("release")
            elif work.operation.tries < _MOST_TRIES:
                work.try_again("let_go", _RETRY_SECONDS)
            else:
                self.give_up(work, "neither the conductors nor any agent have credentials for Neutron")
        self._agents.ask(
            batch if able else [],
            RELEASE_PORTS,
            then="gone",
            payload=lambda work: {delegation.HOLDING: msgspec.to_builtins(Holding.of(work.server))},
            host=lambda work: str(work.data["releaser"]),
            node_uuid=lambda _work: "",
        )

    def gone(self, batch: Sequence[Work]) -> None:
        """The ports are released, if the agent says so."""
        for work in batch:
            result = work.take_result()
            if result is not None and result["ok"]:
                work.advance("release")
            elif work.operation.tries < _MOST_TRIES:
                work.operation.attempt += 1
                work.try_again("let_go", 0.0 if result is None else _RETRY_SECONDS)
            else:
                self.give_up(work, "no agent released the ports" if result is None else result["error"])

    def give_up(self, work: Work, error: str) -> None:
        work.changes = {"vm_state": "error", "task_state": None, "fault": fault(error)}
        work.fail(error)

    def release(self, batch: Sequence[Work]) -> None:
        self._network.release([Holding.of(work.server) for work in batch])
        consumers = [work.operation.server_uuid for work in batch]
        self._placement.release(consumers + [work.data["migration"] for work in batch if _moving(work)])
        for work in batch:
            work.writes.append(partial(_mark_deleted, work.server["id"]))
            work.finish()


def _ends(work: Work, move: Migration | None) -> list[tuple[str, str]]:
    """Host and node of each place where the server may be."""
    found = [(work.server["host"], work.server["node_uuid"])]
    if move is not None:
        found += [(move.source_host, move.source_node_uuid), (move.dest_host, move.dest_node_uuid)]
    return [(host, node_uuid or "") for host, node_uuid in dict.fromkeys(found) if host]


def _host(work: Work) -> str:
    return str(work.data["ends"][0][0])


def _moving(work: Work) -> bool:
    return work.data.get("migration") is not None


def _mark_deleted(server_id: int, connection: Connection) -> None:
    servers.mark_deleted(connection, server_id)
