"""Whether the database answers, and has the schema that this release needs."""

from __future__ import annotations

from functools import partial

import sqlalchemy as sa

from moorage.core.health import HealthCheck
from moorage.db import migrate
from moorage.db.database import Database


def checks(database: Database) -> list[HealthCheck]:
    return [
        HealthCheck("database", partial(_reach, database), vital=True),
        HealthCheck("schema", partial(_compare, database)),
    ]


def _reach(database: Database) -> str | None:
    try:
        with database.read() as connection:
            connection.exec_driver_sql("SELECT 1")
    except sa.exc.DBAPIError as error:
        return f"can't be reached: {error.orig}"
    return None


def _compare(database: Database) -> str | None:
    found, wanted = migrate.version(database.engine), migrate.newest()
    return None if found == wanted else f"is {found or 'empty'}, this release needs {wanted}"
