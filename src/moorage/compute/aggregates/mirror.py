"""Host aggregates, mirrored as placement aggregates, so that a request can be limited to them in Placement.

The mirror reads what a provider is in, then what it should be in, and writes the difference if the provider
has not changed meanwhile. If what it should be in changed while it wrote, it does so again. So two of them at
the same provider agree in the end, and nobody has to lock anything.
"""

from __future__ import annotations

import logging
import random
import time
from collections.abc import Collection, Iterator, Mapping, Set
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime

from prometheus_client import Counter
from sqlalchemy.engine import Connection

from moorage.compute.aggregates import membership, outbox
from moorage.compute.aggregates.membership import DesiredMemberships
from moorage.core.outage import Outage
from moorage.db.database import Database
from moorage.placement.client.contract import (
    PlacementClient,
    PlacementRefusedError,
    PlacementUnavailableError,
    ProviderAggregates,
)

LOG = logging.getLogger(__name__)

CHANGES = Counter(
    "moorage_mirror_changes_total", "Providers added to and removed from aggregates.", ["change"]
)
FAILURES = Counter(
    "moorage_mirror_failures_total", "Times that Placement could not be told of a change.", ["event"]
)
PROBLEMS = (PlacementUnavailableError, PlacementRefusedError)
"""What may go wrong with Placement; all of it is worth another try later."""
ATTEMPTS = 20
"""A provider that servers come to and leave all the time has a new generation whenever one does; each attempt
has its chance to fall in between, on a busy machine a small one."""
_PAUSE = 0.02
_LONGEST_PAUSE = 0.2
_CONFLICT = 409
_AT_ONCE = 2_000


class BusyProviderError(PlacementUnavailableError):
    def __init__(self, uuids: Collection[str]) -> None:
        super().__init__(f"{len(uuids)} providers are changed by others again and again: {min(uuids)}, ...")
        self.uuids = frozenset(uuids)


@dataclass
class Settled:
    """What became of some providers."""

    added: dict[str, frozenset[str]] = field(default_factory=dict)
    """By provider, the aggregates that it was put into."""
    removed: dict[str, frozenset[str]] = field(default_factory=dict)
    missing: set[str] = field(default_factory=set)
    """Providers that Placement does not have."""


class Mirror:
    def __init__(self, database: Database, placement: PlacementClient) -> None:
        self._database = database
        self._placement = placement
        self._outage = Outage()

    def follow_host(self, host: str, event: str) -> None:
        """A host was added to an aggregate or removed from one; its user is not kept from it by Placement."""
        with self._database.read() as connection:
            waiting = outbox.due_of_host(connection, host)
        with self._tolerating(event, f"the nodes of host {host}"):
            self._tell(waiting)

    def follow_deletion(self, aggregate_uuid: str) -> None:
        with self._database.read() as connection:
            waiting = outbox.due_among(connection, [aggregate_uuid])
        with self._tolerating("delete", f"what is left in aggregate {aggregate_uuid}"):
            self._tell(waiting)

    def drain(self) -> bool:
        """Tell Placement all that waits; False if it can't be told now.

        A node that Placement does not know yet goes on waiting.
        """
        with self._tolerating("node", "what is in the outbox"):
            while self._tell_some():
                pass
            return True
        return False

    def _tell_some(self) -> bool:
        """Whether there are more."""
        with self._database.read() as connection:
            waiting = outbox.due(connection, _AT_ONCE)
        return len(self._tell(waiting)) == _AT_ONCE

    def _tell(self, waiting: Mapping[str, datetime]) -> Mapping[str, datetime]:
        """Those that nobody has to come back to; raises one of `PROBLEMS`."""
        if not waiting:
            return waiting
        with self._database.snapshot() as connection:
            wanted = membership.wanted(connection, waiting.keys())
        settled, busy = Settled(), None
        if (
            wanted.aggregates or wanted.deleted or wanted.own
        ):  # otherwise there is nothing that they could be in
            try:
                self._settle_entries(waiting.keys(), wanted, settled)
            except BusyProviderError as error:
                busy = error
        again = settled.missing & wanted.hosts.keys()
        if busy is not None:
            again |= busy.uuids | wanted.deleted
        told = {uuid: since for uuid, since in waiting.items() if uuid not in again}

        def note(connection: Connection) -> None:
            outbox.take_out(connection, told)
            outbox.postpone(connection, again & waiting.keys())

        self._database.transact(note)
        if busy is not None:
            raise busy
        return told

    def _settle_entries(self, uuids: Set[str], wanted: DesiredMemberships, outcome: Settled) -> None:
        """Nodes, and whoever is in an aggregate that was deleted."""
        deleted = uuids & wanted.deleted
        inside = self._placement.members(deleted).values() if deleted else ()
        self.settle(set(uuids - deleted).union(*inside), outcome)
        if self._outage.ends():
            LOG.info("Placement hears of aggregates again")

    def settle(self, provider_uuids: Collection[str], outcome: Settled | None = None) -> Settled:
        """Put providers into the aggregates that they belong into; raises one of `PROBLEMS`.

        Who gives an `outcome` knows what was done until then.
        """
        outcome = outcome or Settled()
        left = set(provider_uuids)
        for attempt in range(ATTEMPTS):
            if not left:
                return outcome
            if attempt:
                time.sleep(random.uniform(0, min(_PAUSE * 2**attempt, _LONGEST_PAUSE)))
            left = self._settle_once(left, outcome)
        if left:
            raise BusyProviderError(left)
        return outcome

    def _settle_once(self, uuids: set[str], outcome: Settled) -> set[str]:
        """Those for which it has to be done again."""
        found = self._placement.aggregates(uuids)
        outcome.missing |= uuids - found.keys()
        wanted = self._wanted(uuids)
        changes = _changes(found, wanted)
        self._note_own(found.keys() - changes.keys(), wanted)
        if not changes:
            return set()
        done: list[str] = []
        try:
            refused = self._placement.set_aggregates(list(changes.values()), done.append)
        finally:
            written = {uuid: changes[uuid] for uuid in done}
            _count(outcome, found, written)
        conflicting = {uuid for uuid, error in refused.items() if error.status == _CONFLICT}
        outcome.missing |= refused.keys() - conflicting
        now = self._wanted(written.keys())
        changed = _changes(written, now).keys()
        self._note_own(written.keys() - changed, now)
        return conflicting | changed

    def _note_own(self, uuids: Set[str], told: DesiredMemberships) -> None:
        if told.untold & uuids:
            self._database.transact(lambda connection: membership.note_own(connection, uuids, told))

    @contextmanager
    def _tolerating(self, event: str, what: str) -> Iterator[None]:
        """What can't be told now stays in the outbox, which a conductor drains every few seconds."""
        try:
            yield
        except PROBLEMS as error:
            FAILURES.labels(event).inc()
            level = logging.WARNING if self._outage.begins() else logging.DEBUG
            LOG.log(level, "Placement does not know the aggregates of %s yet: %s", what, error)

    def _wanted(self, uuids: Collection[str]) -> DesiredMemberships:
        with self._database.snapshot() as connection:
            return membership.wanted(connection, uuids)


def _changes(
    found: Mapping[str, ProviderAggregates], wanted: DesiredMemberships
) -> dict[str, ProviderAggregates]:
    changes = {}
    for uuid, provider in found.items():
        target = wanted.target(uuid, provider.aggregates)
        if target != provider.aggregates:
            changes[uuid] = ProviderAggregates(uuid, provider.generation, target)
    return changes


def _count(
    outcome: Settled, before: Mapping[str, ProviderAggregates], after: Mapping[str, ProviderAggregates]
) -> None:
    for uuid, change in after.items():
        for noted, name, difference in (
            (outcome.added, "added", change.aggregates - before[uuid].aggregates),
            (outcome.removed, "removed", before[uuid].aggregates - change.aggregates),
        ):
            if difference:
                noted[uuid] = noted.get(uuid, membership.NOWHERE) | difference
                CHANGES.labels(name).inc(len(difference))
