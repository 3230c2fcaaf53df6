"""Rows get their newer form in small batches, beside those who write; a contraction waits for them."""

from __future__ import annotations

import shutil
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
import sqlalchemy as sa
from sqlalchemy.engine import Connection

from moorage.db import declared, engine, migrate, schema_fit
from moorage.db.data_migrations.run import Stretch
from moorage.db.database import Database
from moorage.db.lock import is_by_row

BERTHS = sa.table("berths", *map(sa.column, ("id", "feet", "metres")))


class ToMetres:
    """As a real one is written: what is left is found by looking, and rows in others' hands are left."""

    name = "metres"
    needs_schema = "0901"

    def left(self, connection: Connection) -> int:
        return int(connection.execute(sa.select(sa.func.count()).where(self._old())).scalar_one())

    def migrate(self, connection: Connection, most: int) -> int:
        chosen = sa.select(BERTHS.c.id, BERTHS.c.feet).where(self._old()).order_by(BERTHS.c.id).limit(most)
        if is_by_row(connection):
            chosen = chosen.with_for_update(skip_locked=True)
        rows = connection.execute(chosen).all()
        for row in rows:
            newer = sa.update(BERTHS).where(BERTHS.c.id == row.id).values(metres=row.feet // 3)
            connection.execute(newer)
        return len(rows)

    def _old(self) -> sa.ColumnElement[bool]:
        return BERTHS.c.metres.is_(None)


TO_METRES = ToMetres()


@pytest.fixture
def scripts(tmp_path: Path) -> Path:
    """Of a release that has the newer form, and of the next, which takes the old one away."""
    directory = tmp_path / "migrations"
    shutil.copytree(declared.MIGRATIONS, directory)
    (directory / "versions" / "0901_expand.py").write_text(
        f'from alembic import op\nrevision = "0901"\ndown_revision = "{declared.newest()}"\nkind = "expand"\n'
        "def upgrade():\n"
        '    op.execute("CREATE TABLE berths (id INTEGER PRIMARY KEY, feet INTEGER, metres INTEGER)")\n'
    )
    (directory / "versions" / "0902_contract.py").write_text(
        'from alembic import op\nrevision = "0902"\ndown_revision = "0901"\nkind = "contract"\n'
        'oldest = "0901"\nneeds = ("metres",)\n'
        'def upgrade():\n    op.execute("ALTER TABLE berths DROP COLUMN feet")\n'
    )
    return directory


@pytest.fixture
def database(database_url: str, scripts: Path) -> Iterator[Database]:
    opened = Database(engine.connect(database_url))
    migrate.sync(opened.engine, "0901", scripts=scripts, known=[TO_METRES])
    with opened.write() as connection:
        connection.execute(sa.insert(BERTHS), [{"id": at, "feet": 3 * at} for at in range(1, 26)])
    yield opened
    opened.engine.dispose()


def test_a_contraction_waits_for_the_data(database: Database, scripts: Path) -> None:
    refused = migrate.sync(database.engine, scripts=scripts, known=[TO_METRES])
    assert (refused.after, refused.waits_for) == ("0901", ["metres"])
    assert schema_fit.look(database.engine, scripts).may_run
    stretch = Stretch(database, TO_METRES, 10)
    assert list(stretch.run(1000)) == [10, 10, 5]
    done = migrate.sync(database.engine, scripts=scripts, known=[TO_METRES])
    assert (done.after, done.waits_for) == ("0902", [])
    with database.read() as connection:
        assert connection.execute(sa.text("SELECT sum(metres) FROM berths")).scalar_one() == 325


def test_an_empty_database_has_nothing_to_wait_for(empty_database_url: str, scripts: Path) -> None:
    connected = engine.connect(empty_database_url)
    assert migrate.sync(connected, scripts=scripts, known=[TO_METRES]).after == "0902"
    connected.dispose()


def test_it_goes_on_where_it_was_cut_off(database: Database) -> None:
    stretch = Stretch(database, TO_METRES, 10)
    assert next(stretch.run(1000)) == 10  # and then it is killed
    again = Stretch(database, TO_METRES, 10)
    assert again.left == 15
    assert list(again.run(7)) == [7]
    assert again.count() == 8


def test_a_row_in_somebody_elses_hands_is_left_for_later(postgres_url: str, scripts: Path) -> None:
    opened = Database(engine.connect(postgres_url))
    migrate.sync(opened.engine, "0901", scripts=scripts, known=[TO_METRES])
    with opened.write() as connection:
        connection.execute(sa.insert(BERTHS), [{"id": at, "feet": 3 * at} for at in range(1, 6)])
    held, done = threading.Event(), threading.Event()

    def hold() -> None:
        with opened.write() as connection:
            connection.execute(sa.update(BERTHS).where(BERTHS.c.id == 2).values(feet=30))
            held.set()
            done.wait(30)

    holder = threading.Thread(target=hold)
    holder.start()
    held.wait(30)
    stretch = Stretch(opened, TO_METRES, 10)
    assert (list(stretch.run(1000)), stretch.count()) == ([4], 1)
    done.set()
    holder.join()
    assert list(Stretch(opened, TO_METRES, 10).run(1000)) == [1]
    with opened.read() as connection:
        assert connection.execute(sa.select(BERTHS.c.metres).where(BERTHS.c.id == 2)).scalar_one() == 10
    opened.engine.dispose()
