"""Bringing everything over, and back: all of it and exactly, or nothing."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from enum import StrEnum
from typing import Protocol

import msgspec
import sqlalchemy as sa

from moorage.db.database import Database
from moorage.placement.store.names import is_custom
from moorage.placement.takeover import our_checks, reference_checks
from moorage.placement.takeover import reference_tables as theirs
from moorage.placement.takeover.comparison import Comparison, compare
from moorage.placement.takeover.our_contents import OurContents
from moorage.placement.takeover.our_writing import OurWriting
from moorage.placement.takeover.records import Contents, Counts, NameTables, WholeConsumer, WholeProvider
from moorage.placement.takeover.reference_contents import ReferenceContents
from moorage.placement.takeover.reference_writing import ReferenceWriting
from moorage.takeover.errors import TakeoverError
from moorage.takeover.foreign import ForeignDatabase
from moorage.takeover.progress import Progress, unseen
from moorage.takeover.remainders import Remainders


class MoveResult(StrEnum):
    WRITTEN = "written"
    COUNTED = "counted"
    """A dry run: nothing was written, but would be."""
    SAME = "same"
    """Both sides had the same before: nothing was to be done."""
    BLOCKED = "blocked"
    """Something can't go over: nothing was written."""
    OCCUPIED = "occupied"
    """The target has something else already: nothing was written."""
    UNEQUAL = "unequal"
    """What had been written was not the same, and was taken back."""


class Takeover(msgspec.Struct):
    """What became of an import or an export."""

    result: MoveResult
    revision: str
    """Of the reference's schema."""
    counts: Counts
    """Of the side that it comes from."""
    remainders: Remainders
    comparison: Comparison | None = None


class Writing(Protocol):
    """How either side takes records in."""

    def begin(self, known: NameTables, provider_uuids: Sequence[str]) -> None: ...

    def add_providers(self, batch: Sequence[WholeProvider]) -> None: ...

    def add_consumers(self, batch: Sequence[WholeConsumer]) -> None: ...

    def finish(self) -> None: ...


def bring(
    foreign: ForeignDatabase,
    database: Database,
    *,
    dry_run: bool = False,
    leave_out: bool = False,
    progress: Progress = unseen,
) -> Takeover:
    """From the reference to us; `leave_out` leaves behind what refers to nothing that exists."""
    with foreign.read() as there:
        revision = theirs.require_readable(there)
        source = ReferenceContents(there, revision)
        remainders = reference_checks.remainders(there)
        takeover = Takeover(MoveResult.COUNTED, revision, source.counts(), remainders)
        if remainders.blocking(leave_out=leave_out):
            takeover.result = MoveResult.BLOCKED
            return takeover
        try:
            with database.snapshot() if dry_run else database.write() as here:
                writing = None if dry_run else OurWriting(here)

                def compared() -> Comparison:
                    return compare(source, OurContents(here), progress=progress)

                _move(takeover, source, OurContents(here), writing, compared, progress)
        except _TakeBack:
            takeover.result = MoveResult.UNEQUAL
    return takeover


def send(
    database: Database, foreign: ForeignDatabase, *, dry_run: bool = False, progress: Progress = unseen
) -> Takeover:
    """From us to the reference, whose own command has made the tables."""
    with database.snapshot() as here:
        source = OurContents(here)
        remainders = our_checks.remainders(here, to_mariadb=foreign.is_mariadb)
        takeover = Takeover(MoveResult.COUNTED, "", source.counts(), remainders)
        try:
            with foreign.read() if dry_run else foreign.write() as there:
                revision = takeover.revision = theirs.require_writable(there)
                if remainders.blocking(leave_out=False):
                    takeover.result = MoveResult.BLOCKED
                    return takeover
                writing = None if dry_run else ReferenceWriting(there)

                def compared() -> Comparison:
                    target = ReferenceContents(there, revision)
                    return compare(target, source, progress=progress, by_mariadb=foreign.is_mariadb)

                _move(takeover, source, ReferenceContents(there, revision), writing, compared, progress)
        except _TakeBack:
            takeover.result = MoveResult.UNEQUAL
        except sa.exc.DBAPIError as error:
            raise TakeoverError(
                f"{foreign.name} refused what was to be written, and has nothing of it: {error.orig}"
            ) from error
    return takeover


def contrast(foreign: ForeignDatabase, database: Database, progress: Progress = unseen) -> Comparison:
    """The differences, each side as of one moment."""
    with foreign.read() as there, database.snapshot() as here:
        reference = ReferenceContents(there, theirs.require_readable(there))
        return compare(reference, OurContents(here), progress=progress, by_mariadb=foreign.is_mariadb)


class _TakeBack(Exception):
    """Ends the target's transaction without a commit."""


def _move(
    takeover: Takeover,
    source: Contents,
    target: Contents,
    writing: Writing | None,
    compared: Callable[[], Comparison],
    progress: Progress,
) -> None:
    """Within the target's transaction. What was written counts only once it was read back and is the same."""
    if _is_occupied(source, target):
        takeover.comparison = compared()
        takeover.result = MoveResult.SAME if takeover.comparison.is_equal else MoveResult.OCCUPIED
    elif writing is not None:
        _copy(source, writing, takeover.counts, progress)
        takeover.comparison = compared()
        if not takeover.comparison.is_equal:
            raise _TakeBack
        takeover.result = MoveResult.WRITTEN


def _is_occupied(source: Contents, target: Contents) -> bool:
    """Names that nobody has made are no matter: either side makes its own when it starts."""
    theirs, mine = source.names(), target.names()
    strange = (mine.classes.keys() - theirs.classes.keys()) | (mine.traits.keys() - theirs.traits.keys())
    return not target.counts().is_empty or any(map(is_custom, strange))


def _copy(source: Contents, writing: Writing, counts: Counts, progress: Progress) -> None:
    writing.begin(source.names(), source.provider_uuids())
    done = 0
    for providers in source.providers():
        writing.add_providers(providers)
        done += len(providers)
        progress("providers", done, counts.providers)
    done = 0
    for consumers in source.consumers():
        writing.add_consumers(consumers)
        done += len(consumers)
        progress("consumers", done, counts.consumers)
    writing.finish()
