"""Narrowings: the aggregates that a prefilter keeps a server in or out of, and on whose behalf."""

from __future__ import annotations

from enum import StrEnum

import msgspec


class NarrowedBy(StrEnum):
    """What a prefilter goes by; the names are part of the recorded trace."""

    ZONE = "zone"
    DEFAULT_ZONE = "default_zone"
    PROJECT = "project"
    OTHER_PROJECTS = "other_projects"
    TRAITS = "traits"
    IMAGE = "image"
    SEGMENTS = "segments"


class Narrowing(msgspec.Struct, frozen=True):
    by: NarrowedBy
    member_of: str
    """As Placement is asked: `in:` or `!in:`, and the aggregates' UUIDs."""
    subject: str = ""
    """The zone that was asked for, and the like."""
    excluded: int | None = None
    """How many providers this alone excludes; None if nobody counted."""

    def __str__(self) -> str:
        words = _WORDS[self.by].format(subject=self.subject)
        if self.excluded is None:
            return f"Narrowed by {words}."
        return f"Excluded by {words}: {self.excluded} provider{'' if self.excluded == 1 else 's'}."

    def unmet(self) -> str:
        """What hosts that it excludes are, in words for a user."""
        return _UNMET[self.by].format(subject=self.subject)

    def is_inside(self) -> bool:
        return not self.member_of.startswith("!")

    def admits(self, aggregates: frozenset[str]) -> bool:
        """Whether a host that is in these may have the server."""
        named = self.member_of.removeprefix("!").removeprefix("in:").split(",")
        return aggregates.isdisjoint(named) != self.is_inside()


_WORDS = {
    NarrowedBy.ZONE: "the availability zone '{subject}'",
    NarrowedBy.DEFAULT_ZONE: "the availability zone '{subject}'",
    NarrowedBy.PROJECT: "the aggregates of project {subject}",
    NarrowedBy.OTHER_PROJECTS: "the aggregates of other projects",
    NarrowedBy.TRAITS: "aggregates whose traits it does not ask for ({subject})",
    NarrowedBy.IMAGE: "aggregates for other images ({subject})",
    NarrowedBy.SEGMENTS: "the segments of network '{subject}' that have addresses left",
}
_UNMET = {
    NarrowedBy.ZONE: "are not in the availability zone '{subject}'",
    NarrowedBy.DEFAULT_ZONE: "are not in the availability zone '{subject}'",
    NarrowedBy.PROJECT: "are not set apart for this project",
    NarrowedBy.OTHER_PROJECTS: "are set apart for other projects",
    NarrowedBy.TRAITS: "take only servers that ask for {subject}",
    NarrowedBy.IMAGE: "are for images with another {subject}",
    NarrowedBy.SEGMENTS: "reach no segment of network '{subject}' that has addresses left",
}


def inside(aggregates: frozenset[str]) -> str:
    return f"in:{','.join(sorted(aggregates))}"


def outside(aggregates: frozenset[str]) -> str:
    return f"!in:{','.join(sorted(aggregates))}"
