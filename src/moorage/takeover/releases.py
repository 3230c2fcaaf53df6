"""Which releases of another system wrote a database: its schema's revision, as alembic keeps it."""

from __future__ import annotations

from collections.abc import Mapping

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from moorage.takeover.errors import TakeoverError

_VERSION = sa.table("alembic_version", sa.column("version_num"))


def revision(connection: Connection) -> str | None:
    """None for a database that alembic has not made."""
    if not sa.inspect(connection).has_table(_VERSION.name):
        return None
    found: str | None = connection.execute(sa.select(_VERSION.c.version_num)).scalar_one_or_none()
    return found


def require_known(connection: Connection, known: Mapping[str, str], *, what: str, command: str) -> str:
    """The revision, if it is one of `known`, which has the releases of each revision that can be read.

    `what` is the name of the database, as in "the reference's Placement database"; `command` is what brings
    an older one up to date.
    """
    found = revision(connection)
    if found is not None and found in known:
        return found
    readable = "; ".join(f"{number} ({releases})" for number, releases in known.items())
    if found is None:
        raise TakeoverError(f"this is not {what}: it has no revision of a schema. Can be read: {readable}")
    raise TakeoverError(
        f"the schema of {what} has the revision {found}, which this release does not know. "
        f"Can be read: {readable}. An older one is brought up to date by `{command}`"
    )
