"""The schema's version: alembic, driven from code so that no ini file is needed."""

from __future__ import annotations

from functools import cache
from pathlib import Path

from alembic import command
from alembic.config import Config
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy.engine import Engine

_MIGRATIONS = Path(__file__).parent / "migrations"


def sync(engine: Engine) -> None:
    """Bring the database to the newest schema; nothing happens if it is there already."""
    if version(engine) == newest():
        return
    with engine.connect() as connection:
        if engine.dialect.name == "postgresql":  # a large table takes its time
            connection.exec_driver_sql("SET LOCAL statement_timeout = 0")
        config = _config()
        config.attributes["connection"] = connection
        command.upgrade(config, "head")
        connection.commit()


def version(engine: Engine) -> str | None:
    """The schema that the database has; None for an empty one."""
    with engine.connect() as connection:
        return MigrationContext.configure(connection).get_current_revision()


@cache
def newest() -> str:
    """The schema that this code needs."""
    head = ScriptDirectory.from_config(_config()).get_current_head()
    assert head is not None
    return head


def _config() -> Config:
    config = Config()
    config.set_main_option("script_location", str(_MIGRATIONS))
    return config
