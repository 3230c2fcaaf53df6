"""All aggregates held against Placement: what differs is put right, and what can't be is told.

Comparing costs one request (an aggregate, if the Placement is not ours), however many nodes there are; only
providers that differ are read and written.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Mapping, Set
from dataclasses import dataclass, field
from datetime import timedelta

from moorage.compute.aggregates import membership
from moorage.compute.aggregates.membership import NOWHERE, DesiredMemberships
from moorage.compute.aggregates.mirror import FAILURES, PROBLEMS, Mirror, Settled
from moorage.core.clock import utcnow
from moorage.db.database import Database
from moorage.placement.client.contract import PlacementClient
from moorage.scheduler import own_aggregate

LOG = logging.getLogger(__name__)

PORTION = 2_000
"""Providers that are put right together."""
REMEMBER_DELETED = timedelta(hours=1)
"""Longer than anybody takes who is just about to put a provider into one that is deleted meanwhile."""
NO_HOST = ""
"""Stands for the host of providers that are no nodes of ours."""
Progress = Callable[[int, int], None]
"""Gets how many providers are done, of how many."""


@dataclass(frozen=True)
class MembershipChange:
    """What differed at one provider."""

    host: str
    provider: str
    added: frozenset[str]
    removed: frozenset[str]


@dataclass
class Findings:
    """What a comparison found, and what it did about it. Pairs of a provider and an aggregate are counted.

    Own aggregates of hosts are put right, too, but are nobody's business: they are not counted, nor told.
    """

    added: int = 0
    removed: int = 0
    unchanged: int = 0
    changes: list[MembershipChange] = field(default_factory=list)
    hosts_without_nodes: list[str] = field(default_factory=list)
    """Hosts in aggregates that have no node, so that there is nothing to mirror."""
    missing_providers: dict[str, str] = field(default_factory=dict)
    """Nodes that Placement does not know, with the host of each."""
    failed_hosts: dict[str, str] = field(default_factory=dict)
    """Hosts whose nodes could not be put right, with the reason."""

    gave_up: bool = False
    """Placement stopped to answer under way."""


@dataclass(frozen=True)
class Difference:
    """A provider that is not where it should be, as far as our aggregates go; own ones are left out."""

    host: str
    provider: str
    held: frozenset[str]
    wanted: frozenset[str]

    @property
    def matters(self) -> bool:
        """Whether it is about more than an own aggregate."""
        return self.held != self.wanted


Work = Callable[[list[Difference], Findings], None]


class Reconciliation:
    def __init__(self, database: Database, placement: PlacementClient) -> None:
        self._database = database
        self._placement = placement
        self._mirror = Mirror(database, placement)

    def run(
        self,
        *,
        dry: bool = False,
        progress: Progress = lambda _done, _total: None,
        findings: Findings | None = None,
    ) -> Findings:
        """Compare, and put right unless it is a `dry` run; raises one of `PROBLEMS` if it can't be read.

        Who gives `findings` knows what was done until then.
        """
        findings = findings or Findings()
        with self._database.snapshot() as connection:
            wanted = membership.wanted(connection)
        members = self._placement.members(wanted.aggregates | wanted.deleted | set(wanted.own.values()))
        findings.hosts_without_nodes = sorted(wanted.of_host.keys() - set(wanted.hosts.values()))
        differences = _differences(wanted, members, findings)
        total = max(len(wanted.hosts), len(differences))
        done = total - len(differences)
        progress(done, total)
        work = self._look if dry else self._settle
        for portion in _portions(differences):
            self._carefully(work, portion, findings)
            done += len(portion)
            progress(done, total)
        if not dry and not findings.gave_up:
            self._clean_up(members, wanted)
        return findings

    def _carefully(self, work: Work, portion: list[Difference], findings: Findings) -> None:
        """All together; if that fails host by host, so that one that fails does not keep the others back."""
        if findings.gave_up:
            _fail(findings, portion, "Placement does not answer")
            return
        try:
            work(portion, findings)
        except PROBLEMS as error:
            by_host: dict[str, list[Difference]] = {}
            for difference in portion:
                by_host.setdefault(difference.host, []).append(difference)
            if len(by_host) == 1:
                _fail(findings, portion, str(error))
                findings.gave_up = not self._answers()
                return
            for alone in by_host.values():
                self._carefully(work, alone, findings)

    def _look(self, portion: list[Difference], findings: Findings) -> None:
        there = self._placement.aggregates([difference.provider for difference in portion]).keys()
        for difference in portion:
            if difference.provider in there:
                added = difference.wanted - difference.held
                _note(findings, difference, added, difference.held - difference.wanted)
            elif difference.matters:
                findings.missing_providers[difference.provider] = difference.host

    def _settle(self, portion: list[Difference], findings: Findings) -> None:
        settled = Settled()
        try:
            self._mirror.settle([difference.provider for difference in portion], settled)
        finally:
            for difference in portion:
                added = _shared(settled.added.get(difference.provider, NOWHERE))
                removed = _shared(settled.removed.get(difference.provider, NOWHERE))
                _note(findings, difference, added, removed)
        for difference in portion:
            if difference.matters and difference.provider in settled.missing:
                findings.missing_providers[difference.provider] = difference.host

    def _answers(self) -> bool:
        """Whether it was only about one host."""
        try:
            self._placement.aggregates([_NOBODY])
        except PROBLEMS:
            return False
        return True

    def _clean_up(self, members: Mapping[str, set[str]], wanted: DesiredMemberships) -> None:
        empty = [uuid for uuid in wanted.deleted if not members[uuid]]
        before = utcnow() - REMEMBER_DELETED
        self._database.transact(lambda connection: membership.forget_deleted(connection, empty, before))
        self._mirror.drain()


_NOBODY = "00000000-0000-0000-0000-000000000000"
"""A provider that does not exist, to see whether Placement says so."""


def _differences(
    wanted: DesiredMemberships, members: Mapping[str, set[str]], findings: Findings
) -> list[Difference]:
    """Also counts what agrees."""
    held: dict[str, set[str]] = {}
    for aggregate, providers in members.items():
        for provider in providers:
            held.setdefault(provider, set()).add(aggregate)
    found = []
    for uuid, host in wanted.hosts.items():
        should = wanted.of_node(uuid)
        does = held.pop(uuid, NOWHERE)
        findings.unchanged += len(_shared(should & does))
        if should != does or uuid in wanted.untold:
            found.append(Difference(host, uuid, _shared(does), _shared(should)))
    for uuid, others in held.items():
        does = frozenset(others)
        should = wanted.target(uuid, does)
        if should != does:
            found.append(Difference(NO_HOST, uuid, does, should))
    return found


def _shared(aggregates: Set[str]) -> frozenset[str]:
    """Without own ones."""
    return frozenset(uuid for uuid in aggregates if not own_aggregate.is_own(uuid))


def _portions(differences: list[Difference]) -> Iterator[list[Difference]]:
    ordered = sorted(differences, key=lambda difference: difference.host)
    for start in range(0, len(ordered), PORTION):
        yield ordered[start : start + PORTION]


def _note(findings: Findings, difference: Difference, added: frozenset[str], removed: frozenset[str]) -> None:
    """A difference that somebody else has put right meanwhile is none."""
    if added or removed:
        findings.added += len(added)
        findings.removed += len(removed)
        findings.changes.append(MembershipChange(difference.host, difference.provider, added, removed))


def _fail(findings: Findings, portion: list[Difference], reason: str) -> None:
    for difference in portion:
        findings.failed_hosts[difference.host] = reason
    FAILURES.labels("sync").inc()
    LOG.warning("the aggregates of %d providers were not put right: %s", len(portion), reason)
