"""What agents say: heartbeats become service and node records, results wake the operations that wait."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

import msgspec
import sqlalchemy as sa
from prometheus_client import Counter
from sqlalchemy.engine import Connection

from moorage.bus.contract import (
    ERA,
    SAY_AGAIN,
    Bid,
    BusError,
    Heartbeat,
    NodeFacts,
    NotNowError,
    Result,
    Task,
)
from moorage.compute.aggregates import outbox
from moorage.compute.aggregates.known_aggregates import KnownAggregates
from moorage.compute.hosts import build_failures, registry
from moorage.compute.hosts.registry import AGENT_BINARY
from moorage.compute.servers import lost_machines
from moorage.conductor.agents import failing_machines, observations, progress, start_permits
from moorage.conductor.agents.listening import ListeningPeriod
from moorage.conductor.agents.observations import DesiredHostState
from moorage.conductor.agents.own_word import own_word
from moorage.conductor.chores import leftovers
from moorage.conductor.ownership import ownership
from moorage.conductor.ownership.ownership import OwnershipChange
from moorage.core.clock import utcnow
from moorage.db.among import among
from moorage.db.database import Database
from moorage.db.era import KnownEra
from moorage.db.tables.compute import nodes
from moorage.ledger import agent_answers
from moorage.ledger.agent_answers import AgentAnswer

LOG = logging.getLogger(__name__)
T = TypeVar("T")

RESULTS = Counter("moorage_conductor_results_total", "Results from agents.", ["kind"])
UNUSABLE = Counter(
    "moorage_conductor_unusable_total", "Messages of agents that could not be written down.", ["kind"]
)


class Inbox:
    def __init__(
        self,
        database: Database,
        aggregates: KnownAggregates,
        wake: Callable[[], None],
        cast: Callable[[str, list[Task]], None],
        nodes_changed: Callable[[], None] = lambda: None,
        listening: ListeningPeriod | None = None,
        era: KnownEra | None = None,
    ) -> None:
        """`wake` and `nodes_changed` tell others in this process that there is something to do for them."""
        self._database = database
        self._era = era or KnownEra(database)
        self._aggregates = aggregates
        self._wake = wake
        self._cast = cast
        self._nodes_changed = nodes_changed
        self._listening = listening or ListeningPeriod(60)
        self._misunderstood: set[str] = set()
        """Hosts that said something which could not be written down, and have to say everything again."""

    def on_results(self, results: Sequence[Result]) -> None:
        """One that can't be written down is lost, and asked for again: the others must not wait for it."""
        try:
            self._take_results(results)
        except NotNowError:
            raise
        except Exception:
            if len(results) > 1:
                for result in results:
                    self.on_results([result])
            else:
                UNUSABLE.labels("result").inc()
                LOG.exception("a result can't be written down, and is dropped: %.500r", results)

    def _take_results(self, results: Sequence[Result]) -> None:
        answers = [
            AgentAnswer(result.operation_id, result.attempt, msgspec.to_builtins(result))
            for result in results
        ]
        fresh = self._write(lambda connection: agent_answers.answer(connection, answers))
        RESULTS.labels("fresh").inc(len(fresh))
        RESULTS.labels("stale").inc(len(results) - len(fresh))
        self._wake()

    def on_heartbeat(self, heartbeat: Heartbeat) -> None:
        """One that can't be written down is lost, rather than to come again and again before all others; once
        its host makes sense, it says everything anew."""
        try:
            try:
                self._take_heartbeat(heartbeat)
            except sa.exc.IntegrityError:  # another conductor was quicker with the same
                self._take_heartbeat(heartbeat)
        except NotNowError:
            raise
        except Exception:
            UNUSABLE.labels("heartbeat").inc()
            LOG.exception("a heartbeat of host %.100r can't be written down, and is dropped", heartbeat.host)
            self._misunderstood.add(heartbeat.host)
        else:
            if heartbeat.host in self._misunderstood:
                self._misunderstood.discard(heartbeat.host)
                self._tell(heartbeat.host, [Task(0, "", SAY_AGAIN, 0, "")])

    def _take_heartbeat(self, heartbeat: Heartbeat) -> None:
        self._listening.heard()
        recorded = self._write(lambda connection: self._record(connection, heartbeat))
        if heartbeat.nodes is not None or recorded.nodes_changed:
            self._nodes_changed()
        self._tell(heartbeat.host, recorded.orders)
        for host, lost in recorded.revoked.items():
            self._tell(host, [ownership.revocation(lost)])
        for host, won in recorded.passed_on.items():
            self._tell(host, [ownership.grant(won)])

    def _tell(self, host: str, orders: list[Task]) -> None:
        if not orders:
            return
        try:
            self._cast(host, orders)
        except BusError as error:  # the agent says everything again, sooner or later
            LOG.warning("host %s could not be told what to do: %s", host, error)

    def _record(self, connection: Connection, heartbeat: Heartbeat) -> _Recorded:
        """Write down what an agent says; answers with what it has to be told."""
        heartbeat = own_word(connection, heartbeat)
        if heartbeat.nodes is not None or (heartbeat.bid and heartbeat.bid.everything):  # as after a start
            build_failures.forgive_restarted(connection, heartbeat.host, heartbeat.facts)
        entry = registry.heartbeat(
            connection, heartbeat.host, AGENT_BINARY, version=heartbeat.version, facts=heartbeat.facts
        )
        if entry.new:
            LOG.info("host %s is here", heartbeat.host)
        era = self._era.now()
        known = heartbeat.facts.get(ERA, era.number)
        if known != era.number:  # what it says is about another database
            return _Recorded([Task(0, "", SAY_AGAIN, 0, "")] if known < era.number else [])
        if heartbeat.nodes is not None:
            _record_nodes(connection, heartbeat.host, heartbeat.nodes)
        observations.follow(connection, heartbeat.host, heartbeat.observed, era)
        ratios = self._aggregates.facts().ratios.get(heartbeat.host, {})
        wished = DesiredHostState(entry.disabled, ratios, keeps_strays=era.is_held)
        orders = observations.orders(connection, heartbeat, wished)
        if entry.new and heartbeat.nodes is None:  # it was deleted, and says only what changed since
            orders.append(Task(0, "", SAY_AGAIN, 0, ""))
        progress.follow(connection, heartbeat.host, heartbeat.progress)
        orders += [] if era.is_held else leftovers.orders(connection, heartbeat)
        lost_machines.lose(connection, heartbeat.host, heartbeat.lost)
        orders += failing_machines.follow(connection, heartbeat)
        orders += start_permits.orders(connection, heartbeat, entry, self._listening.down_time)
        reminders = ownership.reminders(connection, heartbeat)
        return self._decide_owners(connection, heartbeat, _Recorded(reminders + orders))

    def _decide_owners(self, connection: Connection, heartbeat: Heartbeat, recorded: _Recorded) -> _Recorded:
        down_after = self._listening.down_after()
        recorded.orders += ownership.peer_orders(connection, heartbeat, down_after)
        inherited = ownership.assign_pools(connection, heartbeat, down_after)
        lease = self._listening.down_time
        self._follow_change(recorded, inherited, ownership.order(inherited, Bid(), lease))
        if heartbeat.bid is not None:
            change = ownership.decide(connection, heartbeat, heartbeat.bid, down_after)
            answer = ownership.order(change, heartbeat.bid, lease)
            self._follow_change(recorded, change, answer)
        elif heartbeat.digest is not None:
            recorded.orders += ownership.corrections(connection, heartbeat.host, heartbeat.digest, lease)
        return recorded

    def _follow_change(self, recorded: _Recorded, change: OwnershipChange, answer: Task | None) -> None:
        recorded.orders += [answer] if answer is not None else []
        for host, lost in change.revoked.items():
            recorded.revoked.setdefault(host, {}).update(lost)
        recorded.passed_on |= change.passed_on
        recorded.nodes_changed |= change.changed

    def _write(self, work: Callable[[Connection], T]) -> T:
        try:
            return self._database.transact(work)
        except sa.exc.OperationalError as error:
            self._listening.interrupted()
            raise NotNowError(f"the database does not answer: {error.orig}") from error


@dataclass
class _Recorded:
    """What follows from a heartbeat, once it is written down."""

    orders: list[Task]
    revoked: dict[str, dict[str, int]] = field(default_factory=dict)
    passed_on: dict[str, dict[str, int]] = field(default_factory=dict)
    nodes_changed: bool = False


def _record_nodes(connection: Connection, host: str, reported: Sequence[NodeFacts]) -> None:
    """The host's nodes become just these; one that a host had which is no more moves, with a new epoch.

    Those that came, moved or left may have to be in other aggregates in Placement.
    """
    query = sa.select(nodes.c.uuid, nodes.c.host, nodes.c.name, nodes.c.facts).where(
        among(connection, nodes.c.uuid, [node.uuid for node in reported]) | (nodes.c.host == host)
    )
    known = {row.uuid: row for row in connection.execute(query)}
    new = [
        {
            "uuid": node.uuid,
            "name": node.name,
            "host": host,
            "hypervisor_type": node.hypervisor_type,
            "facts": node.facts,
        }
        for node in reported
        if node.uuid not in known
    ]
    if new:
        connection.execute(sa.insert(nodes), new)
    came = [node.uuid for node in reported if node.uuid not in known or known[node.uuid].host != host]
    for node in reported:
        row = known.pop(node.uuid, None)
        if row is None or (row.host, row.name, row.facts) == (host, node.name, node.facts):
            continue
        moved = 0 if row.host == host else 1
        connection.execute(
            sa.update(nodes)
            .where(nodes.c.uuid == node.uuid)
            .values(
                host=host, name=node.name, facts=node.facts, epoch=nodes.c.epoch + moved, updated_at=utcnow()
            )
        )
    gone = [uuid for uuid, row in known.items() if row.host == host]
    if gone:
        connection.execute(sa.delete(nodes).where(among(connection, nodes.c.uuid, gone)))
    outbox.mark(connection, [*came, *gone])
