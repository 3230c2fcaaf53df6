"""Trees that move while others hang providers into them: every provider ends under the root it has."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import pytest
import sqlalchemy as sa

from moorage.core import uuids
from moorage.db import engine, migrate
from moorage.db.database import Database
from moorage.db.tables.placement import providers as table
from moorage.placement.store import providers
from tests.support.processes import wait_until


@pytest.fixture
def database(postgres_url: str) -> Iterator[Database]:
    """PostgreSQL only: SQLite has one writer at a time."""
    database = Database(engine.connect(postgres_url))
    migrate.sync(database.engine)
    yield database
    database.engine.dispose()


def create(database: Database, name: str, parent: str | None = None) -> str:
    def make(connection: sa.Connection) -> str:
        return providers.create(connection, uuids.generate(), name, parent).uuid

    return database.transact(make)


def move(database: Database, uuid: str, parent: str) -> None:
    def put(connection: sa.Connection) -> None:
        providers.set_parent(connection, providers.lock(connection, uuid), parent, reparenting=True)

    database.transact(put)


def roots(database: Database) -> dict[str, str]:
    """By name: the name of the root that each provider is said to have."""
    root = table.alias()
    query = sa.select(table.c.name, root.c.name).join_from(table, root, table.c.root_id == root.c.id)
    with database.read() as connection:
        return {row[0]: row[1] for row in connection.execute(query)}


def waits_for_a_lock(database: Database) -> bool:
    query = "SELECT count(*) FROM pg_locks WHERE NOT granted"
    with database.read() as connection:
        return bool(connection.exec_driver_sql(query).scalar_one())


def test_a_child_that_is_made_while_its_tree_moves_moves_along(database: Database) -> None:
    top, elsewhere = create(database, "top"), create(database, "elsewhere")
    middle = create(database, "middle", top)
    with database.write() as connection:
        providers.create(connection, uuids.generate(), "leaf", middle)
        mover = threading.Thread(target=move, args=(database, top, elsewhere))
        mover.start()
        wait_until(lambda: waits_for_a_lock(database), "the move to wait for the new leaf")
    mover.join()
    assert roots(database) == dict.fromkeys(("top", "middle", "leaf", "elsewhere"), "elsewhere")


def test_a_tree_that_is_hung_into_one_that_moves_moves_along(database: Database) -> None:
    top, elsewhere, guest = (create(database, name) for name in ("top", "elsewhere", "guest"))
    middle = create(database, "middle", top)
    create(database, "guest's child", guest)
    with database.write() as connection:
        providers.set_parent(connection, providers.lock(connection, guest), middle, reparenting=True)
        mover = threading.Thread(target=move, args=(database, top, elsewhere))
        mover.start()
        wait_until(lambda: waits_for_a_lock(database), "the move to wait for the guest")
    mover.join()
    assert set(roots(database).values()) == {"elsewhere"}
