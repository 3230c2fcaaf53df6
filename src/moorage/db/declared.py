"""What each migration says of itself: whether processes of an older release may go on after it.

Read from the files' text, since every process asks, and few of them have a use for alembic.
"""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence
from enum import StrEnum
from functools import cache
from pathlib import Path
from typing import Any

import msgspec

MIGRATIONS = Path(__file__).parent / "migrations"


class MigrationKind(StrEnum):
    EXPAND = "expand"
    """It only adds: code that knows nothing of it reads and writes as before."""
    CONTRACT = "contract"
    """It takes something away, which `oldest` and later do not use any more."""


class DeclaredMigration(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The names that a migration's module assigns, as far as they are ours."""

    revision: str
    kind: MigrationKind
    oldest: str = ""
    """Of one that contracts: the oldest revision whose code may run on the schema afterwards."""
    needs: tuple[str, ...] = ()
    """Likewise: data migrations that have to be complete before."""
    indexes: Mapping[str, str] = {}
    """Large ones, by name, each as "table (columns)": built beside those who write, after the rest."""


@cache
def migrations(scripts: Path = MIGRATIONS) -> Sequence[DeclaredMigration]:
    """In their order: the files are named by their revisions."""
    files = sorted(scripts.glob("versions/[0-9]*_*.py"))
    return tuple(_read(file) for file in files)


def newest(scripts: Path = MIGRATIONS) -> str:
    """The schema that this code makes."""
    return migrations(scripts)[-1].revision


def needed(scripts: Path = MIGRATIONS) -> str:
    """The oldest schema that this code runs on: what is only taken away afterwards may wait."""
    return next(one.revision for one in reversed(migrations(scripts)) if one.kind is MigrationKind.EXPAND)


def oldest(version: str, scripts: Path = MIGRATIONS) -> str:
    """The oldest revision whose code may run on the schema `version`."""
    known = [one for one in migrations(scripts) if one.revision <= version]
    contracts = [one.oldest for one in known if one.kind is MigrationKind.CONTRACT]
    return max(contracts, default=known[0].revision)


def _read(file: Path) -> DeclaredMigration:
    found: dict[str, Any] = {}
    for statement in ast.parse(file.read_text()).body:
        if isinstance(statement, ast.Assign) and isinstance(statement.targets[0], ast.Name):
            name = statement.targets[0].id
            if name in DeclaredMigration.__struct_fields__:
                found[name] = ast.literal_eval(statement.value)
    try:
        declared = msgspec.convert(found, DeclaredMigration)
    except msgspec.ValidationError as error:
        raise ValueError(f"{file.name}: {error}") from None
    if (declared.kind is MigrationKind.CONTRACT) != bool(declared.oldest):
        raise ValueError(f"{file.name}: one that contracts says `oldest`, and no other does")
    return declared
