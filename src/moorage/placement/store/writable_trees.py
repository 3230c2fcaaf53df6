"""The trees that a caller may write to: all of them, unless it is an agent whose own are known."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Protocol

from sqlalchemy.engine import Connection

from moorage.placement.errors import TreeRefused

if TYPE_CHECKING:
    from moorage.placement.claims import Claim


class WritableTrees(Protocol):
    """Asked by whoever writes, in its transaction, with the providers locked: so what is said here holds
    until the end of it. What is refused is raised, and rolls back what was written before."""

    def admit(self, connection: Connection, root_ids: Collection[int]) -> None:
        """Something in the trees of these roots is written."""

    def admit_providers(self, connection: Connection, uuids: Collection[str]) -> None:
        """The same, for the trees that these providers are in; those that don't exist are in none."""

    def admit_claims(self, connection: Connection, claims: Sequence[Claim]) -> None:
        """What consumers hold is about to become this."""

    def admit_rename(self, name: str) -> None:
        """A resource class gets another name, which shows in everybody's providers."""

    def refusals(self, connection: Connection, root_ids: Collection[int]) -> Mapping[int, TreeRefused]:
        """For who writes to each on its own merits: what would be raised, by root."""

    def keep(self, connection: Connection, root_ids: Collection[int]) -> None:
        """The caller has made these roots."""


class _AnyTree:
    """Of administrators and services; asks the database nothing."""

    def admit(self, connection: Connection, root_ids: Collection[int]) -> None:
        pass

    def admit_providers(self, connection: Connection, uuids: Collection[str]) -> None:
        pass

    def admit_claims(self, connection: Connection, claims: Sequence[Claim]) -> None:
        pass

    def admit_rename(self, name: str) -> None:
        pass

    def refusals(self, connection: Connection, root_ids: Collection[int]) -> Mapping[int, TreeRefused]:
        return {}

    def keep(self, connection: Connection, root_ids: Collection[int]) -> None:
        pass


ANY_TREE: WritableTrees = _AnyTree()
