"""What a filter is, and how it says no."""

from __future__ import annotations

from enum import StrEnum
from typing import Protocol, Self

import msgspec

from moorage.scheduler.criteria import Criteria
from moorage.scheduler.hosts import HostState


class ReasonKind(StrEnum):
    """What a host may be passed over for: the name, which is part of the recorded trace, what an operator is
    told of one such host, and what a user is told of several."""

    of_one: str
    of_several: str

    def __new__(cls, name: str, of_one: str, of_several: str) -> Self:
        member = str.__new__(cls, name)
        member._value_ = name
        member.of_one, member.of_several = of_one, of_several
        return member

    NO_HOST = "no_host", "no compute host owns this node", "belong to no compute host"
    ALREADY_TRIED = "already_tried", "it failed this server before", "failed this server before"
    NOT_THE_HOST_ASKED_FOR = "not_the_host_asked_for", "{subject} was asked for", "are not the host asked for"
    HOST_IT_LEAVES = (
        "host_it_leaves",
        "it is the host that the server shall leave",
        "are the host that it shall leave",
    )
    OTHER_CELL = (
        "other_cell",
        "it is in another cell than the server, which has its addresses in {subject}",
        "are in another cell",
    )
    CELL_FULL = (
        "cell_full",
        "its cell {subject} has no addresses left",
        "are in cells that have no addresses left",
    )
    HOST_DOWN = "host_down", "its compute service is down", "are down"
    HOST_DISABLED = "host_disabled", "its compute service is disabled", "are disabled"
    AGGREGATES_CHANGED = (
        "aggregates_changed",
        "its aggregates have changed, and Placement does not know it yet",
        "were put into other aggregates just now",
    )
    TOO_MANY_SERVERS = (
        "too_many_servers",
        "it has {count} servers, {most} are allowed",
        "have as many servers as are allowed",
    )
    NOT_WITH_THE_GROUP = (
        "not_with_the_group",
        "the members of the affinity group are elsewhere",
        "are not where the members of its affinity group are",
    )
    TOO_MANY_OF_THE_GROUP = (
        "too_many_of_the_group",
        "it has {count} of the anti-affinity group, and may have {most}",
        "have members of its anti-affinity group already",
    )
    NOT_THE_SAME_HOST = (
        "not_the_same_host",
        "none of the servers named by same_host is here",
        "are not the host of a server named by same_host",
    )
    NOT_A_DIFFERENT_HOST = (
        "not_a_different_host",
        "a server named by different_host is here",
        "have a server named by different_host",
    )
    IMAGE_NOT_SUPPORTED = "image_not_supported", "it can't run an image for {subject}", "can't run its image"
    ROOM_TAKEN = (
        "room_taken",
        "other servers of the same moment took its room for {subject}",
        "were filled by other servers at the same moment",
    )


class Reason(msgspec.Struct, frozen=True):
    """Why a host was passed over: the kind, and the facts that go with it."""

    kind: ReasonKind
    subject: str = ""
    count: int = 0
    most: int = 0

    def __str__(self) -> str:
        return self.kind.of_one.format(subject=self.subject, count=self.count, most=self.most)


class Filter(Protocol):
    @property
    def name(self) -> str: ...

    def applies(self, request: Criteria) -> bool:
        """Whether such a request has anything to do with this filter."""

    def objection(self, host: HostState, request: Criteria) -> Reason | None:
        """What speaks against this host; None if nothing does."""
