"""Delete: the server goes from its host, then its addresses and its claim, then its row is marked.

It may come at any moment of a build. The build was cancelled in the transaction that enqueued this; what a
conductor had under way for it then is waited for before the claim is dropped, so that nothing comes after.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import msgspec
from sqlalchemy.engine import Connection

from moorage.compute import servers
from moorage.compute.fault import fault
from moorage.conductor import ledger
from moorage.conductor.agents import Agents
from moorage.conductor.hosts import Hosts
from moorage.conductor.runner import Step
from moorage.conductor.work import Work
from moorage.db.database import Database
from moorage.network.contract import Network, PortRecord
from moorage.placement.client.contract import PlacementClient

_LOOK_AGAIN_SECONDS = 0.5
_RETRY_SECONDS = 5.0


class Delete:
    def __init__(
        self, database: Database, agents: Agents, hosts: Hosts, network: Network, placement: PlacementClient
    ) -> None:
        self._database = database
        self._agents = agents
        self._hosts = hosts
        self._network = network
        self._placement = placement

    def steps(self) -> dict[str, Step]:
        return {
            "begin": self.begin,
            "destroy": self.destroy,
            "destroyed": self.destroyed,
            "release": self.release,
        }

    def begin(self, batch: Sequence[Work]) -> None:
        with self._database.read() as connection:
            busy = ledger.under_way(connection, [work.server["id"] for work in batch])
        for work in batch:
            if work.server["id"] in busy:
                work.wait("begin", _LOOK_AGAIN_SECONDS)
            else:
                work.advance("destroy" if work.server["host"] else "release")

    def destroy(self, batch: Sequence[Work]) -> None:
        """A host that is down can't be asked: it cleans up by itself when it comes back."""
        up = self._hosts.up()
        reachable = [work for work in batch if work.server["host"] in up]
        for work in batch:
            if work.server["host"] not in up:
                work.advance("release")
        self._agents.ask(reachable, "destroy", then="destroyed", payload=lambda _work: {})

    def destroyed(self, batch: Sequence[Work]) -> None:
        for work in batch:
            result = work.take_result()
            if result is None:
                if not self._agents.ask_again(work, "destroy"):
                    self.give_up(work, "the host did not answer")
            elif result["ok"]:
                work.advance("release")
            elif work.operation.tries < 5:
                work.try_again("destroy", _RETRY_SECONDS)
            else:
                self.give_up(work, result["error"])

    def give_up(self, work: Work, error: str) -> None:
        work.changes = {"vm_state": "error", "task_state": None, "fault": fault(error)}
        work.fail(error)

    def release(self, batch: Sequence[Work]) -> None:
        self._network.release(
            {
                work.server["uuid"]: [
                    msgspec.convert(port, PortRecord) for port in work.server["request"].get("ports", [])
                ]
                for work in batch
            }
        )
        self._placement.release([work.operation.server_uuid for work in batch])
        for work in batch:
            work.writes.append(partial(_mark_deleted, work.server["id"]))
            work.finish()


def _mark_deleted(server_id: int, connection: Connection) -> None:
    servers.mark_deleted(connection, server_id)
