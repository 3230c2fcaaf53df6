"""Whether this release may run on the schema that a database has, and what to do if not."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path

import msgspec
import sqlalchemy as sa
from sqlalchemy.engine import Connection, Engine

from moorage.db import declared
from moorage.db.declared import MIGRATIONS
from moorage.db.tables.schema_support import schema_support

_VERSION = sa.table("alembic_version", sa.column("version_num"))
SYNC = "run `moorage-manage db sync`"


class Fit(StrEnum):
    OLDER = "older"
    """Or empty: it has to be brought up first."""
    CURRENT = "current"
    NEWER = "newer"
    """A newer release has only added to it, so this one may go on."""
    TOO_NEW = "too new"
    """It lacks what this release uses."""


class SchemaFit(msgspec.Struct, frozen=True):
    found: str | None
    needed: str
    newest: str
    fit: Fit
    oldest: str | None = None
    """Of a newer one: the oldest revision whose code may run on it, as far as it says so."""

    @property
    def may_run(self) -> bool:
        return self.fit in (Fit.CURRENT, Fit.NEWER)

    @property
    def sentence(self) -> str:
        """What it is, and what to do: never to make an older schema of a newer one."""
        if self.fit is Fit.OLDER:
            return f"is {self.found or 'empty'}, this release needs {self.needed}: {SYNC}"
        if self.fit is Fit.NEWER:
            newer = f"is {self.found}, newer than this release's {self.newest}"
            return f"{newer}, and supports {self.oldest} and later"
        if self.fit is Fit.TOO_NEW:
            supported = (
                f"supports {self.oldest} and later only" if self.oldest else "does not say that it may"
            )
            return (
                f"is {self.found}, newer than this release's {self.newest}, and {supported}: "
                "run the release that made it, or a newer one"
            )
        if self.found != self.newest:
            return f"is {self.found}; what {self.newest} takes away waits: {SYNC}"
        return f"is {self.found}"


def look(engine: Engine, scripts: Path = MIGRATIONS) -> SchemaFit:
    with engine.connect() as connection:
        return look_by(connection, scripts)


def look_by(connection: Connection, scripts: Path = MIGRATIONS) -> SchemaFit:
    found = version_by(connection)
    needed, newest = declared.needed(scripts), declared.newest(scripts)
    if found is None or found < needed:
        return SchemaFit(found, needed, newest, Fit.OLDER)
    if found <= newest:
        return SchemaFit(found, needed, newest, Fit.CURRENT)
    oldest = supported(connection)
    fit = Fit.NEWER if oldest is not None and oldest <= newest else Fit.TOO_NEW
    return SchemaFit(found, needed, newest, fit, oldest)


def version(engine: Engine) -> str | None:
    """The schema that the database has; None for an empty one."""
    with engine.connect() as connection:
        return version_by(connection)


def version_by(connection: Connection) -> str | None:
    if not sa.inspect(connection).has_table(_VERSION.name):
        return None
    found: str | None = connection.execute(sa.select(_VERSION.c.version_num)).scalar_one_or_none()
    return found


def supported(connection: Connection) -> str | None:
    """The oldest revision whose code may run here; None if the schema is too old to say."""
    if not sa.inspect(connection).has_table(schema_support.name):
        return None
    found: str | None = connection.execute(sa.select(schema_support.c.oldest)).scalar_one_or_none()
    return found


def support(connection: Connection, oldest: str) -> None:
    """Write it down, where there is a place for it."""
    if supported(connection) != oldest and sa.inspect(connection).has_table(schema_support.name):
        connection.execute(sa.delete(schema_support))
        connection.execute(sa.insert(schema_support).values(oldest=oldest))
