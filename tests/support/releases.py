"""The sources of the release before this one, and of one after it: what runs side by side amid an upgrade."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

from moorage.db import declared

ROOT = Path(__file__).resolve().parents[2]
SAMPLES = ROOT / "tests" / "samples"
"""A directory a release, which comes with its last commit."""
_KEPT = ROOT / ".cache" / "releases"


class NotInThisClone(Exception):
    """A shallow clone has no older commits, and an archive has none at all."""


def previous() -> Path:
    """Where its packages are."""
    commit = _commit()
    kept = _KEPT / commit
    if not kept.exists():
        archive = subprocess.run(["git", "archive", commit, "src"], cwd=ROOT, capture_output=True, check=True)
        making = _KEPT / f"{commit}.{os.getpid()}"
        making.mkdir(parents=True)
        subprocess.run(["tar", "--extract", "--directory", making], input=archive.stdout, check=True)
        try:
            making.rename(kept)
        except OSError:  # another worker was quicker
            shutil.rmtree(making)
    return kept / "src"


def _commit() -> str:
    """That which brought the newest samples. Only a clone that is not whole may lack it: else tests would be
    skipped for ever after a slip."""
    version = max(SAMPLES.iterdir(), key=lambda each: tuple(map(int, each.name.split(".")))).name
    if _git("rev-parse", "--is-shallow-repository") != "false":
        raise NotInThisClone(f"this clone has no commits of {version}: git fetch --unshallow")
    found = _git("log", "--diff-filter=A", "--format=%H", "-1", "--", f"tests/samples/{version}")
    if not found:
        raise LookupError(f"no commit has brought tests/samples/{version}")
    return found


def _git(*words: str) -> str:
    return subprocess.run(
        ["git", *words], cwd=ROOT, capture_output=True, text=True, check=False
    ).stdout.strip()


def following(directory: Path) -> Path:
    """This one with a further migration, as the next will have: a column, and a large index."""
    source = directory / "next"
    shutil.copytree(ROOT / "src", source, ignore=shutil.ignore_patterns("__pycache__"))
    migration = source / "moorage" / "db" / "migrations" / "versions" / "0901_of_a_test.py"
    migration.write_text(
        "import sqlalchemy as sa\nfrom alembic import op\n\n"
        f'revision = "0901"\ndown_revision = "{declared.newest()}"\nkind = "expand"\n'
        'indexes = {"ix_servers_of_a_test": "servers (user_id, created_at)"}\n\n\n'
        "def upgrade() -> None:\n"
        '    op.add_column("servers", sa.Column("of_a_test", sa.String(8), server_default="new"))\n'
    )
    return source


def launched(source: Path | None) -> Sequence[str]:
    """The words before a command that is to be that release's."""
    return [] if source is None else ["/usr/bin/env", f"PYTHONPATH={source}"]
