"""Host aggregates, mirrored as placement aggregates, so that a request can be limited to them in Placement.

The mirror reads what a provider is in, then what it should be in, and writes the difference if the provider
has not changed meanwhile. If what it should be in changed while it wrote, it does so again. So two of them at
the same provider agree in the end, and nobody has to lock anything.
"""

from __future__ import annotations

import logging
import random
import time
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field

from prometheus_client import Counter

from moorage.compute.aggregates import membership
from moorage.compute.aggregates.membership import DesiredMemberships
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
ATTEMPTS = 8
_PAUSE = 0.02
_LONGEST_PAUSE = 0.5
_CONFLICT = 409
_DUE_AT_ONCE = 2_000


class BusyProviderError(PlacementUnavailableError):
    def __init__(self, uuids: Collection[str]) -> None:
        super().__init__(f"{len(uuids)} providers are changed by others again and again: {min(uuids)}, ...")


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

    def follow_host(self, host: str, event: str) -> None:
        """A host was added to an aggregate or removed from one; its user is not kept from it by Placement."""
        with self._database.read() as connection:
            uuids = membership.nodes_of(connection, host)
        with _tolerating(event, f"the nodes of host {host}"):
            missing = self.settle(uuids).missing
            self._database.transact(lambda connection: membership.mark_due(connection, missing))

    def follow_deletion(self, aggregate_uuid: str) -> None:
        with _tolerating("delete", f"what is left in aggregate {aggregate_uuid}"):
            self.settle(self._placement.members([aggregate_uuid])[aggregate_uuid])

    def nodes_wait(self) -> bool:
        """Whether there are nodes that came, moved or left, and that nobody has looked after yet."""
        with self._database.read() as connection:
            return bool(membership.due(connection, most=1))

    def follow_nodes(self) -> None:
        """Look after all nodes that came, moved or left. One that Placement does not know yet stays due."""
        with _tolerating("node", "nodes that came, moved or left"):
            while self._follow_some():
                pass

    def _follow_some(self) -> bool:
        """Whether there are more."""
        with self._database.snapshot() as connection:
            waiting = membership.due(connection, _DUE_AT_ONCE)
            wanted = membership.wanted(connection, waiting.keys())
        if not wanted.aggregates and not wanted.deleted:
            expected = set()  # there is nothing that they could be in
        else:
            expected = self.settle(waiting.keys()).missing & wanted.hosts.keys()
        settled = {uuid: since for uuid, since in waiting.items() if uuid not in expected}
        self._database.transact(lambda connection: membership.forget_due(connection, settled))
        self._database.transact(lambda connection: membership.postpone(connection, expected))
        return len(settled) == _DUE_AT_ONCE

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
        changes = _changes(found, self._wanted(uuids))
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
        return conflicting | _changes(written, self._wanted(written.keys())).keys()

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


@contextmanager
def _tolerating(event: str, what: str) -> Iterator[None]:
    """Placement is told later if it can't be told now: by the periodic comparison, or by the command."""
    try:
        yield
    except PROBLEMS as error:
        FAILURES.labels(event).inc()
        LOG.warning("Placement does not know the aggregates of %s yet: %s", what, error)
