"""Each migration is what it says: one that expands leaves code alone that knows nothing of it."""

from __future__ import annotations

from pathlib import Path

import pytest

from moorage.db import data_migrations, declared, engine, migrate
from moorage.db.declared import MigrationKind
from tests.support.schema_changes import objections, snapshot

BERTHS = """
    CREATE TABLE berths (id INTEGER PRIMARY KEY, size INTEGER NOT NULL DEFAULT 1, note VARCHAR(9))
"""
BREAKING = {
    "ALTER TABLE berths DROP COLUMN size": "berths.size is gone",
    "ALTER TABLE berths RENAME COLUMN note TO remark": "berths.note is gone",
    "ALTER TABLE berths RENAME TO moorings": "the table berths is gone",
    "DROP TABLE berths": "the table berths is gone",
    "DROP INDEX ix_berths_note": "the index ix_berths_note is gone",
    "CREATE UNIQUE INDEX uq_berths ON berths (note)": "berths demands unique ['note'] of its rows",
    "CREATE TABLE other (id INTEGER PRIMARY KEY, b INTEGER NOT NULL)": None,
    "ALTER TABLE berths ADD COLUMN depth INTEGER": None,
    "ALTER TABLE berths ADD COLUMN depth INTEGER NOT NULL DEFAULT 0": None,
    "CREATE INDEX ix_more ON berths (note, id)": None,
}
TIGHTENING = {
    "ALTER TABLE berths ALTER COLUMN note SET NOT NULL": "berths.note must have a value",
    "ALTER TABLE berths ALTER COLUMN note TYPE varchar(3)": "berths.note was VARCHAR(9) and is VARCHAR(3)",
    "ALTER TABLE berths ADD COLUMN depth INTEGER NOT NULL": "berths.depth is new and must have a value",
    "ALTER TABLE berths ALTER COLUMN size DROP DEFAULT": "berths.size has no default any more",
    "ALTER TABLE berths ADD CONSTRAINT few CHECK (size < 3)": "berths demands check size < 3 of its rows",
}
"""SQLite's ALTER TABLE has none of these."""


@pytest.mark.filterwarnings("ignore:Did not recognize type 'xid8'")
def test_what_says_that_it_expands_only_adds(empty_database_url: str) -> None:
    database = engine.connect(empty_database_url)
    found: dict[str, list[str]] = {}
    before = None
    for migration in declared.migrations():
        migrate.sync(database, migration.revision)
        with database.connect() as connection:
            after = snapshot(connection)
        if before is not None and migration.kind is MigrationKind.EXPAND:
            found[migration.revision] = objections(before, after)
        before = after
    database.dispose()
    assert {revision: said for revision, said in found.items() if said} == {}


def test_what_would_break_older_code_is_noticed(empty_database_url: str) -> None:
    database = engine.connect(empty_database_url)
    cases = {**BREAKING, **(TIGHTENING if database.dialect.name == "postgresql" else {})}
    found = {}
    for change in cases:
        with database.connect() as connection:
            connection.exec_driver_sql(BERTHS)
            connection.exec_driver_sql("CREATE INDEX ix_berths_note ON berths (note)")
            before = snapshot(connection)
            connection.exec_driver_sql(change)
            found[change] = objections(before, snapshot(connection))
            connection.rollback()
    database.dispose()
    assert {change: said[0] if said else None for change, said in found.items()} == cases


def test_what_contracts_names_what_it_leaves_behind() -> None:
    """What is to be complete before it is known, and it supports a revision that there was."""
    known = {one.name for one in data_migrations.ALL}
    revisions = {one.revision for one in declared.migrations()}
    for migration in declared.migrations():
        assert set(migration.needs) <= known, migration.revision
        assert migration.kind is MigrationKind.CONTRACT or not migration.needs, migration.revision
        assert not migration.oldest or migration.oldest in revisions, migration.revision


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ('revision = "0001"\n', "missing required field `kind`"),
        ('revision = "0001"\nkind = "both"\n', "Invalid enum value 'both'"),
        ('revision = "0001"\nkind = "contract"\n', "says `oldest`"),
        ('revision = "0002"\nkind = "expand"\noldest = "0001"\n', "says `oldest`"),
    ],
)
def test_a_migration_has_to_say_which_kind_it_is(tmp_path: Path, text: str, complaint: str) -> None:
    (tmp_path / "versions").mkdir()
    (tmp_path / "versions" / "0001_x.py").write_text(text)
    with pytest.raises(ValueError, match=f"^0001_x.py: .*{complaint}"):
        declared.migrations(tmp_path)
