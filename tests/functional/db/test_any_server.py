"""Whatever a PostgreSQL, a database or a role is set to: a connection is what we rely on."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import pytest
import sqlalchemy as sa
from psycopg import sql
from sqlalchemy.engine import Connection

from moorage.db import engine, migrate
from moorage.db.database import Database
from moorage.db.probe import Probe
from moorage.db.tables.placement import inventories, providers, resource_classes
from tests.support import odd_locale
from tests.support.postgres import HOSTILE, ROLE, Postgres

ZONES = ("Etc/UTC", "Europe/Berlin", "America/St_Johns", "Asia/Kolkata", "<+0330>-03:30")
MOMENT = datetime(2026, 7, 1, 23, 59, 58, 123456, tzinfo=UTC)
RATIO = 1.1000000000000003
NAME = "Ω-Knoten №1"


@pytest.fixture
def database(postgres_url: str) -> Iterator[Database]:
    found = Database(engine.connect(postgres_url))
    yield found
    found.engine.dispose()


def _a_provider(database: Database) -> None:
    def make(connection: Connection) -> None:
        connection.execute(sa.insert(resource_classes).values(id=1, name="VCPU"))
        connection.execute(
            sa.insert(providers).values(id=1, uuid="u", name=NAME, root_id=1, updated_at=MOMENT)
        )
        amounts = {"total": 1, "reserved": 0, "min_unit": 1, "max_unit": 1, "step_size": 1}
        connection.execute(
            sa.insert(inventories).values(provider_id=1, class_id=1, allocation_ratio=RATIO, **amounts)
        )

    database.transact(make)


def _what_is_there(connection: Connection) -> None:
    name, moment = connection.execute(sa.select(providers.c.name, providers.c.updated_at)).one()
    assert (name, moment, moment.tzinfo) == (NAME, MOMENT, UTC)
    as_text = connection.execute(sa.select(sa.cast(providers.c.updated_at, sa.Text))).scalar_one()
    assert as_text == "2026-07-01 23:59:58.123456+00"
    assert connection.execute(sa.select(inventories.c.allocation_ratio)).scalar_one() == RATIO
    assert connection.execute(sa.text(r"SELECT 'a\b'")).scalar_one() == r"a\b"


def _shown(connection: Connection, name: str) -> str:
    return str(connection.execute(sa.text(f"SHOW {name}")).scalar_one())


def test_the_servers_of_tests_are_hostile(postgres: Postgres, postgres_url: str) -> None:
    """If they are not, the tests below are in vain."""
    plain = sa.create_engine(postgres_url)
    with plain.connect() as connection:
        for name, value in HOSTILE.items():
            assert _shown(connection, name) == value
        (ordered,) = connection.execute(
            sa.text("SELECT array_agg(t ORDER BY t) FROM unnest(ARRAY['Z', 'a', 'b-1', 'b2', '1']) AS t")
        ).one()
        assert ordered == ["a", "b2", "b-1", "Z", "1"]
        assert _shown(connection, "lc_messages") != odd_locale.NAME
        role = sa.text(
            "SELECT rolsuper, rolcreatedb, rolcreaterole FROM pg_roles WHERE rolname = current_user"
        )
        assert connection.execute(role).one() == (False, False, False)
    plain.dispose()
    assert sa.make_url(postgres_url).username == ROLE


@pytest.mark.parametrize("zone", ZONES)
def test_what_was_written_is_read_in_any_time_zone(postgres: Postgres, postgres_url: str, zone: str) -> None:
    name = sa.make_url(postgres_url).database
    assert name is not None
    postgres.execute(
        sql.SQL("ALTER ROLE {} IN DATABASE {} SET timezone = {}").format(
            sql.Identifier(ROLE), sql.Identifier(name), sql.Literal(zone)
        )
    )
    database = Database(engine.connect(postgres_url))
    _a_provider(database)
    with database.read() as connection:
        _what_is_there(connection)
    database.engine.dispose()


def test_each_way_to_a_connection_has_what_we_rely_on(database: Database) -> None:
    _a_provider(database)
    for way in (database.read, database.snapshot, database.write, database.read):
        with way() as connection:
            _what_is_there(connection)


def test_it_is_still_so_after_a_rollback_and_on_a_new_connection(database: Database) -> None:
    _a_provider(database)
    with pytest.raises(sa.exc.ProgrammingError), database.write() as connection:
        connection.execute(sa.text("SELECT nothing"))
    with database.read() as connection:
        _what_is_there(connection)
    database.engine.dispose()
    with database.read() as connection:
        _what_is_there(connection)


def test_transactions_see_what_others_commit_in_the_meantime(database: Database) -> None:
    """As claims, leases and fences rely on: they look again after they have waited for a lock."""
    _a_provider(database)
    with database.write() as connection:
        assert _shown(connection, "transaction_isolation") == "read committed"
        before = connection.execute(sa.select(providers.c.name)).scalar_one()
        with database.write() as other:
            other.execute(sa.update(providers).values(name="another"))
        after = connection.execute(sa.select(providers.c.name).with_for_update()).scalar_one()
    assert (before, after) == (NAME, "another")
    with database.read() as connection:
        assert _shown(connection, "transaction_isolation") == "read committed"
    with database.snapshot() as connection:
        assert _shown(connection, "transaction_isolation") == "repeatable read"


def test_the_quick_question_gets_moments_as_it_can_read_them(database: Database) -> None:
    _a_provider(database)
    asked = "SELECT updated_at FROM providers"
    probe = Probe(database.engine, postgresql=asked, sqlite=asked)
    assert probe.rows() == [("2026-07-01 23:59:58.123456+00",)]
    probe.close()


def test_time_outs_that_are_meant_for_others_do_not_stop_a_migration(postgres: Postgres) -> None:
    url = postgres.create_database("hasty")
    for name in ("statement_timeout", "lock_timeout"):
        postgres.execute(sql.SQL("ALTER DATABASE hasty SET {} = '1h'").format(sql.Identifier(name)))
    connected = engine.connect(url)
    seen: set[tuple[str, str]] = set()

    @sa.event.listens_for(connected, "before_cursor_execute")
    def look(_connection: object, cursor: Any, statement: str, *_more: object) -> None:
        if "CREATE TABLE" in statement:
            with cursor.connection.cursor() as other:
                timeouts = "SELECT current_setting('statement_timeout'), current_setting('lock_timeout')"
                seen.add(other.execute(timeouts).fetchone())

    migrate.sync(connected)
    connected.dispose()
    postgres.drop_database("hasty")
    assert seen == {("0", "0")}


def test_a_database_that_knows_no_letters_gives_back_what_it_got(postgres: Postgres) -> None:
    """As Debian makes them where no locale is set."""
    postgres.execute(
        sql.SQL("CREATE DATABASE bytes OWNER {} TEMPLATE template0 ENCODING 'SQL_ASCII' LOCALE 'C'").format(
            sql.Identifier(ROLE)
        )
    )
    database = Database(engine.connect(postgres.database_url("bytes")))
    migrate.sync(database.engine)
    _a_provider(database)
    with database.read() as connection:
        _what_is_there(connection)
    database.engine.dispose()
    postgres.drop_database("bytes")
