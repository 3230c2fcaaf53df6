"""What a filter is, and how it says no."""

from __future__ import annotations

from enum import StrEnum
from typing import Protocol

import msgspec

from moorage.scheduler.criteria import Criteria
from moorage.scheduler.hosts import HostState


class ReasonKind(StrEnum):
    """What a host may be passed over for; the names are part of the recorded trace."""

    NO_HOST = "no_host"
    ALREADY_TRIED = "already_tried"
    NOT_THE_HOST_ASKED_FOR = "not_the_host_asked_for"
    HOST_IT_LEAVES = "host_it_leaves"
    OTHER_CELL = "other_cell"
    CELL_FULL = "cell_full"
    HOST_DOWN = "host_down"
    HOST_DISABLED = "host_disabled"
    AGGREGATES_CHANGED = "aggregates_changed"
    TOO_MANY_SERVERS = "too_many_servers"
    NOT_WITH_THE_GROUP = "not_with_the_group"
    TOO_MANY_OF_THE_GROUP = "too_many_of_the_group"
    NOT_THE_SAME_HOST = "not_the_same_host"
    NOT_A_DIFFERENT_HOST = "not_a_different_host"
    IMAGE_NOT_SUPPORTED = "image_not_supported"
    ROOM_TAKEN = "room_taken"


class Reason(msgspec.Struct, frozen=True):
    """Why a host was passed over: the kind, and the facts that go with it."""

    kind: ReasonKind
    subject: str = ""
    count: int = 0
    most: int = 0

    def __str__(self) -> str:
        return _SENTENCES[self.kind].format(subject=self.subject, count=self.count, most=self.most)


_SENTENCES = {
    ReasonKind.NO_HOST: "no compute host owns this node",
    ReasonKind.ALREADY_TRIED: "it failed this server before",
    ReasonKind.NOT_THE_HOST_ASKED_FOR: "{subject} was asked for",
    ReasonKind.HOST_IT_LEAVES: "it is the host that the server shall leave",
    ReasonKind.OTHER_CELL: "it is in another cell than the server, which has its addresses in {subject}",
    ReasonKind.CELL_FULL: "its cell {subject} has no addresses left",
    ReasonKind.HOST_DOWN: "its compute service is down",
    ReasonKind.HOST_DISABLED: "its compute service is disabled",
    ReasonKind.AGGREGATES_CHANGED: "its aggregates have changed, and Placement does not know it yet",
    ReasonKind.TOO_MANY_SERVERS: "it has {count} servers, {most} are allowed",
    ReasonKind.NOT_WITH_THE_GROUP: "the members of the affinity group are elsewhere",
    ReasonKind.TOO_MANY_OF_THE_GROUP: "it has {count} of the anti-affinity group, and may have {most}",
    ReasonKind.NOT_THE_SAME_HOST: "none of the servers named by same_host is here",
    ReasonKind.NOT_A_DIFFERENT_HOST: "a server named by different_host is here",
    ReasonKind.IMAGE_NOT_SUPPORTED: "it can't run an image for {subject}",
    ReasonKind.ROOM_TAKEN: "other servers of the same moment took its room for {subject}",
}


class Filter(Protocol):
    @property
    def name(self) -> str: ...

    def applies(self, request: Criteria) -> bool:
        """Whether such a request has anything to do with this filter."""

    def objection(self, host: HostState, request: Criteria) -> Reason | None:
        """What speaks against this host; None if nothing does."""
