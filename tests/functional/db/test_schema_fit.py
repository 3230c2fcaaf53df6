"""Which releases may run on which schema, in all cases, as each command and each process says it."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import sqlalchemy as sa
from sqlalchemy.engine import Engine

from moorage.core.health import Health
from moorage.db import declared, engine, health, migrate, schema_fit
from moorage.db.database import Database
from moorage.db.migrate import SchemaTooNewError
from moorage.db.schema_fit import Fit
from moorage.http import health_pages

PROGRAMS = Path(sys.executable).parent
NEWER = "9999"


@pytest.fixture
def database(empty_database_url: str) -> Iterator[Engine]:
    connected = engine.connect(empty_database_url)
    migrate.sync(connected)
    yield connected
    connected.dispose()


@pytest.fixture
def config(tmp_path: Path, empty_database_url: str) -> Path:
    path = tmp_path / "moorage.conf"
    path.write_text(f"[database]\nconnection = {empty_database_url}\n[auth]\nstrategy = none\n")
    return path


def become(database: Engine, version: str, oldest: str | None = None) -> None:
    """What a newer or an older release has made of it."""
    with database.begin() as connection:
        connection.execute(sa.text("UPDATE alembic_version SET version_num = :v"), {"v": version})
        if oldest is not None:
            schema_fit.support(connection, oldest)


def run(config: Path, program: str, *words: str) -> tuple[int, str]:
    command = [str(PROGRAMS / program), "--config-file", str(config), *words]
    ran = subprocess.run(command, capture_output=True, text=True, check=False)
    return ran.returncode, ran.stdout + ran.stderr


def serve(config: Path) -> tuple[int, str]:
    """A process that stops by itself right after it has looked: the secret is missing."""
    ran = subprocess.run(
        [str(PROGRAMS / "moorage-metadata"), "--config-file", str(config)],
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    return ran.returncode, ran.stderr


def test_a_schema_that_is_older(database: Engine, config: Path) -> None:
    become(database, "0001")
    assert schema_fit.look(database).fit is Fit.OLDER
    newest = declared.newest()
    said = f"is 0001, this release needs {newest}: run `moorage-manage db sync`"
    assert run(config, "moorage-manage", "db", "version") == (0, f"0001 (it {said})\n")
    assert serve(config) == (1, f"error: the schema {said}\n")
    code, told = run(config, "moorage-status", "upgrade", "check", "--json")
    assert (code, f"The schema {said}." in told) == (2, True)


def test_a_schema_that_is_current(database: Engine, config: Path) -> None:
    newest = declared.newest()
    assert schema_fit.look(database).fit is Fit.CURRENT
    assert run(config, "moorage-manage", "db", "version") == (0, f"{newest} (up to date)\n")
    assert run(config, "moorage-manage", "db", "sync") == (0, f"schema {newest}: nothing to do\n")
    assert "shared_secret" in serve(config)[1]


def test_a_newer_schema_that_supports_us(database: Engine, config: Path) -> None:
    newest = declared.newest()
    become(database, NEWER, newest)
    said = f"is 9999, newer than this release's {newest}, and supports {newest} and later"
    assert run(config, "moorage-manage", "db", "sync") == (0, f"schema 9999: nothing to do: it {said}\n")
    assert run(config, "moorage-manage", "db", "version") == (0, f"9999 (it {said})\n")
    shown = json.loads(run(config, "moorage-manage", "db", "version", "--json")[1])
    assert (shown["fit"], shown["current"], shown["oldest"]) == ("newer", False, newest)
    _, told = serve(config)
    assert f"the schema {said}" in told
    assert "shared_secret" in told  # it went on
    checked = run(config, "moorage-status", "upgrade", "check", "--json")
    assert (checked[0], f"The schema {said}." in checked[1]) == (1, True)
    for text in (told, checked[1]):
        assert "db sync" not in text
    assert schema_fit.version(database) == NEWER


def test_a_newer_schema_that_does_not_support_us(database: Engine, config: Path) -> None:
    become(database, NEWER, "9998")
    said = (
        f"is 9999, newer than this release's {declared.newest()}, and supports 9998 and later only: "
        "run the release that made it, or a newer one"
    )
    assert run(config, "moorage-manage", "db", "sync") == (1, f"error: the schema {said}\n")
    assert run(config, "moorage-manage", "db", "version") == (0, f"9999 (it {said})\n")
    assert serve(config) == (1, f"error: the schema {said}\n")
    code, told = run(config, "moorage-status", "upgrade", "check", "--json")
    assert (code, f"The schema {said}." in told, "db sync" in told) == (2, True, False)


def test_a_newer_schema_that_says_nothing_is_not_trusted(database: Engine) -> None:
    with database.begin() as connection:
        connection.execute(sa.text("DELETE FROM schema_support"))
    become(database, NEWER)
    assert schema_fit.look(database).fit is Fit.TOO_NEW
    with pytest.raises(SchemaTooNewError, match="does not say"):
        migrate.sync(database)


def test_readiness_goes_on_and_says_so(database: Engine, caplog: pytest.LogCaptureFixture) -> None:
    """While the process runs, a newer release changes its schema, and later contracts it."""
    caplog.set_level("INFO")
    watched = Health(health.checks(Database(database)), fresh_seconds=0)
    newest = declared.newest()

    def page() -> tuple[str, str]:
        found = health_pages.page(watched, health_pages.READINESS)
        return found.status, found.body.decode()

    assert page() == ("200 OK", "database: ok\nschema: ok\n")
    become(database, NEWER, newest)
    said = f"schema: is 9999, newer than this release's {newest}, and supports {newest} and later"
    assert page() == ("200 OK", f"database: ok\n{said}\n")
    page()
    assert [one.message for one in caplog.records if one.name == "moorage.core.health"] == [said]
    become(database, NEWER, "9998")
    status, body = page()
    assert (status[:3], "supports 9998 and later only" in body) == ("503", True)


def test_each_sync_writes_down_what_is_supported(database: Engine, tmp_path: Path) -> None:
    """A release that contracts says which code does not use any more what it takes away."""
    scripts = tmp_path / "migrations"
    shutil.copytree(declared.MIGRATIONS, scripts)
    newest = declared.newest()
    write(scripts, "0901", newest, 'kind = "expand"', 'op.execute("CREATE TABLE berths (id INTEGER)")')
    migrate.sync(database, scripts=scripts)
    assert schema_fit.look(database).oldest == "0001"
    assert schema_fit.look(database).fit is Fit.NEWER
    write(scripts, "0902", "0901", 'kind = "contract"\noldest = "0901"', 'op.execute("DROP TABLE berths")')
    declared.migrations.cache_clear()
    migrate.sync(database, scripts=scripts)
    assert schema_fit.look(database).oldest == "0901"
    assert schema_fit.look(database).fit is Fit.TOO_NEW
    assert schema_fit.look(database, scripts).fit is Fit.CURRENT


def test_what_is_only_taken_away_may_wait(database: Engine, tmp_path: Path) -> None:
    """Code that knows of a contraction runs before it, as after it."""
    scripts = tmp_path / "migrations"
    shutil.copytree(declared.MIGRATIONS, scripts)
    newest = declared.newest()
    write(scripts, "0901", newest, f'kind = "contract"\noldest = "{newest}"', "pass")
    found = schema_fit.look(database, scripts)
    assert (found.fit, found.needed, found.newest) == (Fit.CURRENT, newest, "0901")
    assert found.sentence == f"is {newest}; what 0901 takes away waits: run `moorage-manage db sync`"


def write(scripts: Path, revision: str, before: str, said: str, work: str) -> None:
    (scripts / "versions" / f"{revision}_of_a_test.py").write_text(
        f"from alembic import op\nrevision = {revision!r}\ndown_revision = {before!r}\n{said}\n\n"
        f"def upgrade():\n    {work}\n"
    )
