"""Quotas: how much a project, or one user in it, may have.

The limit that holds is the user's own, else the project's, else the default class's, else the configured one.
"""

from __future__ import annotations

from collections.abc import Mapping

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from moorage.compute.errors import ComputeError
from moorage.db import revisions
from moorage.db.tables.compute import quotas
from moorage.db.upsert import upsert

SUBJECT = "quotas"
"""Its revision grows with every change of any limit."""

UNLIMITED = -1
DEFAULT_CLASS = "default"
_CLASS = "class:"
"""Classes are kept with the projects; no project's id has a colon."""

Limits = Mapping[str, int]


def class_owner(name: str) -> str:
    """Whose limits those of a class are, in the table."""
    return _CLASS + name


def defaults(connection: Connection, configured: Limits) -> dict[str, int]:
    """What holds for a project that nobody set limits for."""
    return {**configured, **_stored(connection, class_owner(DEFAULT_CLASS), "")}


def of_class(connection: Connection, configured: Limits, name: str) -> dict[str, int]:
    return {**configured, **_stored(connection, class_owner(name), "")}


def of_project(connection: Connection, configured: Limits, project_id: str) -> dict[str, int]:
    return {**defaults(connection, configured), **_stored(connection, project_id, "")}


def of_user(connection: Connection, configured: Limits, project_id: str, user_id: str) -> dict[str, int]:
    own = own_limits(connection, project_id, user_id)
    return {**of_project(connection, configured, project_id), **own}


def own_limits(connection: Connection, project_id: str, user_id: str) -> dict[str, int]:
    """Only those that were set for this user."""
    return _stored(connection, project_id, user_id)


_IN_FORCE = sa.select(quotas.c.project_id, quotas.c.user_id, quotas.c.resource, quotas.c.bound).where(
    quotas.c.project_id.in_((sa.bindparam("default"), sa.bindparam("project"))),
    quotas.c.user_id.in_(("", sa.bindparam("user"))),
)


def in_force(
    connection: Connection, configured: Limits, project_id: str, user_id: str
) -> tuple[dict[str, int], dict[str, int]]:
    """What `of_project` and `own_limits` say, in one look: each boot asks for both."""
    default = class_owner(DEFAULT_CLASS)
    found: dict[tuple[str, str], dict[str, int]] = {}
    asked = {"default": default, "project": project_id, "user": user_id}
    for owner, user, resource, bound in connection.execute(_IN_FORCE, asked):
        found.setdefault((owner, user), {})[resource] = bound
    project = {**configured, **found.get((default, ""), {}), **found.get((project_id, ""), {})}
    return project, found.get((project_id, user_id), {}) if user_id else {}


def _stored(connection: Connection, owner: str, user_id: str) -> dict[str, int]:
    query = sa.select(quotas.c.resource, quotas.c.bound).where(
        quotas.c.project_id == owner, quotas.c.user_id == user_id
    )
    return {row.resource: row.bound for row in connection.execute(query)}


def set_limits(connection: Connection, project_id: str, user_id: str, limits: Limits) -> None:
    """For the project as a whole if `user_id` is empty."""
    _store(connection, project_id, user_id, limits)


def set_class(connection: Connection, name: str, limits: Limits) -> None:
    _store(connection, class_owner(name), "", limits)


def _store(connection: Connection, owner: str, user_id: str, limits: Limits) -> None:
    revisions.grow(connection, SUBJECT)
    rows = [
        {"project_id": owner, "user_id": user_id, "resource": resource, "bound": bound}
        for resource, bound in limits.items()
    ]
    if rows:
        key = ["project_id", "user_id", "resource"]
        connection.execute(upsert(connection, quotas, key, renewed=["bound"]), rows)


def forget(connection: Connection, project_id: str, user_id: str | None = None) -> None:
    """Back to the defaults: a whole project with all its users, or one user of it."""
    revisions.grow(connection, SUBJECT)
    gone = sa.delete(quotas).where(quotas.c.project_id == project_id)
    connection.execute(gone if user_id is None else gone.where(quotas.c.user_id == user_id))


def check_settable(resource: str, limit: int, least: int, most: int) -> None:
    """A limit below what is used, or a user's above the project's, is refused."""
    if _size(limit) < _size(least):
        raise ComputeError(
            f"Quota limit {limit} for {resource} must be greater than or equal to already used and "
            f"reserved {least}."
        )
    if _size(limit) > _size(most):
        raise ComputeError(f"Quota limit {limit} for {resource} must be less than or equal to {most}.")


def _size(limit: int) -> float:
    return float("inf") if limit == UNLIMITED else limit
