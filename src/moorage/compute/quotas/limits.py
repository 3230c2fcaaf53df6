"""Whose limits hold: those that are kept here, or Keystone's."""

from __future__ import annotations

from typing import Protocol

from sqlalchemy.engine import Connection

from moorage.compute.quotas import quotas
from moorage.compute.quotas.quotas import Limits

EVERYBODY = ""
"""In the place of a project: what holds for those that have no limits of their own."""


class QuotaLimits(Protocol):
    @property
    def are_ours(self) -> bool:
        """Whether they are kept in our database, and set through our API."""

    def fetch(self, project_id: str) -> None:
        """Find out what a project may have, before a transaction begins in which nobody shall wait for it.

        Raises `UnavailableError`.
        """

    def in_force(self, connection: Connection, project_id: str, user_id: str) -> tuple[Limits, Limits]:
        """What requests go by: the project's limits, and the user's own."""

    def shown(self, connection: Connection, project_id: str, user_id: str | None) -> Limits:
        """What a project, or a user in it, is told."""

    def shown_of_class(self, connection: Connection, name: str) -> Limits: ...


class StoredLimits:
    """Those of the database, and of the configuration where nobody set any."""

    are_ours = True

    def __init__(self, configured: Limits) -> None:
        self.configured = configured

    def fetch(self, project_id: str) -> None:
        """They are in the database that the transaction is about."""

    def in_force(self, connection: Connection, project_id: str, user_id: str) -> tuple[Limits, Limits]:
        return quotas.in_force(connection, self.configured, project_id, user_id)

    def shown(self, connection: Connection, project_id: str, user_id: str | None) -> Limits:
        if user_id:
            return quotas.of_user(connection, self.configured, project_id, user_id)
        return quotas.of_project(connection, self.configured, project_id)

    def shown_of_class(self, connection: Connection, name: str) -> Limits:
        return quotas.of_class(connection, self.configured, name)


def in_force(limits: QuotaLimits, connection: Connection, project_id: str, user_id: str) -> Limits:
    """What holds for a user: their own limits, where they have some, else the project's."""
    project, own = limits.in_force(connection, project_id, user_id)
    return {**project, **own} if own else project
