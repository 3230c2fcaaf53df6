"""PostgreSQL databases that are like a template, for one test each, made of what an earlier test has left.

Clearing it away takes a fraction of what it takes to drop a database and to copy the template. It gets a new
name each time: whoever still talks to the old one, such as a thread that outlives its test, is not heard.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import psycopg
from psycopg import sql

from tests.support.postgres import ADMIN, Postgres

_LARGEST = 64 * 2**20
"""Bytes of the filled tables of a database that is worth keeping."""

# All that a test might have done to the database besides writing rows; as a number, since it is asked often.
_SCHEMA = """
    SELECT count(*), sum(hashtextextended(concat_ws(' ', one, two, three) COLLATE "C", 0)) FROM (
        SELECT relname::text AS one, relkind::text AS two, '' AS three
            FROM pg_class WHERE relnamespace >= 16384 OR relnamespace = 2200
        UNION ALL
        SELECT attname, concat_ws(' ', atttypid, atttypmod, attnotnull, attisdropped), attrelid::text
            FROM pg_attribute WHERE attrelid >= 16384
        UNION ALL SELECT conname, contype::text, conrelid::text FROM pg_constraint
        UNION ALL SELECT tgname, tgenabled::text, tgrelid::text FROM pg_trigger WHERE NOT tgisinternal
        UNION ALL SELECT nspname, '', '' FROM pg_namespace WHERE nspname !~ '^pg_(toast_)?temp'
        UNION ALL SELECT 'setting', setconfig::text, setrole::text FROM pg_db_role_setting JOIN pg_database d
            ON d.oid = setdatabase AND d.datname = current_database()
    ) AS everything
"""
_SEQUENCES = """
    SELECT format('%I.%I', schemaname, sequencename), coalesce(last_value, start_value),
        last_value IS NOT NULL
    FROM pg_sequences ORDER BY 1
"""
_SIZE = """
    SELECT coalesce(sum(pg_total_relation_size(quote_ident(name)::regclass)), 0) FROM unnest(%s::text[]) name
"""
_TABLES = "SELECT tablename FROM pg_tables WHERE schemaname = 'public' ORDER BY 1"


class RecycledDatabases:
    def __init__(self, server: Postgres, template: str) -> None:
        self._server = server
        self._template = template
        self._serial = itertools.count(1)
        self.free: list[str] = []
        with self._connected(template) as connection:
            self._schema = connection.execute(_SCHEMA).fetchall()
            self._setting_sequences = _setting(connection.execute(_SEQUENCES).fetchall())
            self._tables = [name for (name,) in connection.execute(_TABLES)]
            self._content = {name: _rows(connection, name) for name in _filled(connection, self._tables)}

    @contextmanager
    def one(self) -> Iterator[str]:
        """Its URL. What is done to it while it is lent does not matter to the next one."""
        name = self.take()
        yield self._server.database_url(name)
        self.give_back(name)

    def take(self) -> str:
        """Its name."""
        if self.free:
            return self.free.pop()
        name = self._new_name()
        self._server.create_database(name, self._template)
        return name

    def _new_name(self) -> str:
        return f"{self._template}_{next(self._serial)}"

    def give_back(self, lent: str) -> None:
        with self._connected("postgres") as connection:
            if not connection.execute("SELECT FROM pg_database WHERE datname = %s", [lent]).rowcount:
                return
            name = self._new_name()
            renamed = _rename(connection, lent, name)
        if not renamed:
            self._server.drop_database(lent)
            return
        with self._connected(name) as connection:
            usable = self._cleared(connection)
        if usable:
            self.free.append(name)
        else:
            self._server.drop_database(name)

    def _cleared(self, connection: psycopg.Connection[Any]) -> bool:
        """Whether it is like the template again."""
        if connection.execute(_SCHEMA).fetchall() != self._schema:
            return False
        filled = _filled(connection, self._tables)
        size = connection.execute(_SIZE, [filled]).fetchone()
        if size is None or size[0] > _LARGEST:
            return False
        with connection.transaction():
            connection.execute("SET LOCAL session_replication_role = replica")  # in any order
            for name in filled:
                connection.execute(sql.SQL("DELETE FROM {}").format(sql.Identifier(name)))
            for name, rows in self._content.items():
                statement = sql.SQL("COPY {} FROM STDIN (FORMAT binary)").format(sql.Identifier(name))
                with connection.cursor().copy(statement) as copy:
                    copy.write(rows)
            connection.execute(self._setting_sequences)
        return True

    @contextmanager
    def _connected(self, database: str) -> Iterator[psycopg.Connection[Any]]:
        address: dict[str, Any] = {"host": "127.0.0.1", "port": self._server.port, "user": ADMIN}
        with psycopg.connect(
            **address, dbname=database, client_encoding="utf8", autocommit=True
        ) as connection:
            yield connection


def _rename(connection: psycopg.Connection[Any], lent: str, name: str) -> bool:
    """Whether all who were at it could be sent away: on a busy machine one may take its time to leave."""
    names = {"lent": sql.Identifier(lent), "name": sql.Identifier(name), "text": sql.Literal(lent)}
    try:
        for statement in (
            "ALTER DATABASE {lent} ALLOW_CONNECTIONS false",
            "SELECT pg_terminate_backend(pid, 10000) FROM pg_stat_activity WHERE datname = {text}",
            "ALTER DATABASE {lent} RENAME TO {name}",
            "ALTER DATABASE {name} ALLOW_CONNECTIONS true",
        ):
            connection.execute(sql.SQL(statement).format(**names))
    except psycopg.errors.ObjectInUse:
        return False
    return True


def _setting(sequences: list[Any]) -> sql.Composed:
    """One statement that sets all of them to what they are now."""
    calls = [
        sql.SQL("setval({}, {}, {})").format(*(sql.Literal(part) for part in sequence))
        for sequence in sequences
    ]
    return sql.SQL("SELECT {}").format(sql.SQL(", ").join(calls))


def _filled(connection: psycopg.Connection[Any], tables: list[str]) -> list[str]:
    """Those that have rows."""
    asked = [
        sql.SQL("SELECT {} WHERE EXISTS (SELECT FROM {})").format(sql.Literal(name), sql.Identifier(name))
        for name in tables
    ]
    return [name for (name,) in connection.execute(sql.SQL(" UNION ALL ").join(asked))] if asked else []


def _rows(connection: psycopg.Connection[Any], name: str) -> bytes:
    statement = sql.SQL("COPY {} TO STDOUT (FORMAT binary)").format(sql.Identifier(name))
    with connection.cursor().copy(statement) as copy:
        return b"".join(bytes(part) for part in copy)
