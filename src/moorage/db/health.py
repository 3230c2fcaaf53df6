"""Whether the database answers, and has a schema that this release may run on."""

from __future__ import annotations

from functools import partial

import sqlalchemy as sa

from moorage.core.health import Fine, HealthCheck
from moorage.db import schema_fit
from moorage.db.database import Database
from moorage.db.schema_fit import Fit


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


def _compare(database: Database) -> str | Fine | None:
    found = schema_fit.look(database.engine)
    if not found.may_run:
        return found.sentence
    return Fine(found.sentence) if found.fit is Fit.NEWER else None
