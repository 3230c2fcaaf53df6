"""What a search asks for, after parsing: names, not ids, and no microversion left in it.

The same two types serve `GET /allocation_candidates`, `GET /resource_providers` (one group), the `why`
explanation and the capacity count.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum


class GroupPolicy(StrEnum):
    """How granular groups may share one provider."""

    NONE = "none"
    ISOLATE = "isolate"


@dataclass(frozen=True, slots=True)
class RequestGroup:
    """Resources that go together, and what the providers that give them must be.

    The group with the empty suffix may be spread over a tree and the providers that share with it; any
    other ("granular") group is satisfied by one provider.
    """

    suffix: str = ""
    resources: dict[str, int] = field(default_factory=dict)
    required_traits: tuple[frozenset[str], ...] = ()
    """All of these, each satisfied by any of its members."""
    forbidden_traits: frozenset[str] = frozenset()
    member_of: tuple[frozenset[str], ...] = ()
    """All of these, each satisfied by any of its members (aggregate UUIDs)."""
    forbidden_aggregates: frozenset[str] = frozenset()
    in_tree: str | None = None

    @property
    def granular(self) -> bool:
        return self.suffix != ""


@dataclass(frozen=True, slots=True)
class SearchRequest:
    """One allocation-candidates request: its groups, and what holds for all of them."""

    groups: tuple[RequestGroup, ...]
    limit: int | None = None
    group_policy: GroupPolicy | None = None
    root_required: frozenset[str] = frozenset()
    root_forbidden: frozenset[str] = frozenset()
    same_subtrees: tuple[frozenset[str], ...] = ()
    nested: bool = True
    """False below microversion 1.29: two providers of one tree never serve one candidate."""
