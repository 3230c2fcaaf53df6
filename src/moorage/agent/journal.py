"""What an agent remembers of its tasks, in a file: which it took on, and what became of them.

Only the newest task of a server matters. A task is newer than another if its operation is, or if the
operation is at a later attempt; within one attempt `destroy` comes after everything else, because it undoes
it. A task that comes again gets the answer that it got before; but a destroy that failed is tried again, and
so is one that was done, if the server was seen here afterwards.
"""

from __future__ import annotations

import logging
import sqlite3
import threading
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

import msgspec

from moorage.bus.contract import DISCARD, RELEASE_PORTS, NotNowError, Result, Task
from moorage.core import private
from moorage.core.outage import Outage

LOG = logging.getLogger(__name__)

_SCHEMA = (
    """CREATE TABLE IF NOT EXISTS tasks (
        server TEXT PRIMARY KEY, operation INTEGER NOT NULL, attempt INTEGER NOT NULL, last INTEGER NOT NULL,
        task BLOB, result BLOB, reported INTEGER NOT NULL DEFAULT 0, changed REAL NOT NULL
    ) WITHOUT ROWID""",
    "CREATE INDEX IF NOT EXISTS open_tasks ON tasks (reported) WHERE reported = 0",
    "CREATE TABLE IF NOT EXISTS settings (name TEXT PRIMARY KEY, value TEXT NOT NULL)",
    "CREATE TABLE IF NOT EXISTS told_traits (node TEXT PRIMARY KEY, traits TEXT NOT NULL) WITHOUT ROWID",
)

_FIRST_ERA = 1
Fence = tuple[int, int, int]


_REMOVALS = ("destroy", DISCARD, RELEASE_PORTS)


def fence(task: Task) -> Fence:
    return (task.operation_id, task.attempt, int(is_removal(task)))


def is_removal(task: Task) -> bool:
    return task.kind in _REMOVALS


def in_order(task: Task) -> tuple[int, ...]:
    """What makes a task newer than others, across eras: those of an earlier one are not in the journal."""
    return (task.era, *fence(task))


class JournalUnwritableError(NotNowError):
    """Its disk is full, say: whatever was to be written down has to come again."""


class AcceptedTasks(msgspec.Struct):
    """What is to be done about tasks that came in."""

    fresh: list[Task] = []
    """Never seen before: do them."""
    answers: list[Result] = []
    """Done already: say so again."""
    stale: int = 0
    """Overtaken by newer ones: nothing."""


class NewestTask(msgspec.Struct):
    """The newest task of a server; no result yet means that it is at work."""

    fence: Fence
    result: Result | None

    def may_be_tried_again(self, task: Task) -> bool:
        """A server is discarded only because it was seen here, whatever we answered before: a call that was
        delayed may have brought it back, or its node may have been another host's then."""
        if self.result is None or self.fence != fence(task):
            return False
        return task.kind == DISCARD or (is_removal(task) and not self.result.ok)


class Journal:
    """Each method is one transaction, so that batches are cheap. Survives a power cut."""

    def __init__(self, path: Path) -> None:
        private.directory(path.parent, (path.name,))
        private.database(path)
        self._lock = threading.Lock()
        self._trouble: str | None = None
        self._outage = Outage()
        self._file = sqlite3.connect(path, check_same_thread=False, isolation_level=None)
        for statement in ("PRAGMA journal_mode=WAL", "PRAGMA synchronous=FULL", *_SCHEMA):
            self._file.execute(statement)
        self.era = self._read_era()
        """The latest of the database that we have heard of; all tasks in here are of it."""

    def begin_era(self, era: int) -> None:
        """The database was restored: which tasks were done for the one before says nothing any more. What is
        at work comes to its end, and nobody is told."""
        with self._transaction() as file:
            file.execute("DELETE FROM tasks")
            file.execute("INSERT OR REPLACE INTO settings VALUES ('era', ?)", (str(era),))
        self.era = era

    def _read_era(self) -> int:
        row = self._file.execute("SELECT value FROM settings WHERE name = 'era'").fetchone()
        return _FIRST_ERA if row is None else int(row[0])

    def _of_now(self, task: Task) -> Task:
        """Conductors that know no eras mean this one."""
        return task if task.era else msgspec.structs.replace(task, era=self.era)

    def accept(self, tasks: Sequence[Task]) -> AcceptedTasks:
        """Write down what is new among `tasks`; from now on it will be done, whatever happens."""
        accepted = AcceptedTasks()
        with self._transaction() as file:
            for task in map(self._of_now, tasks):
                if task.era < self.era:
                    accepted.stale += 1
                    continue
                known = self._known(file, task.server_uuid)
                if known is None or fence(task) > known.fence or known.may_be_tried_again(task):
                    self._begin(file, task)
                    accepted.fresh.append(task)
                elif fence(task) < known.fence:
                    accepted.stale += 1
                elif known.result is not None:
                    answer = msgspec.structs.replace(known.result, ticket=task.ticket)  # keys may be new
                    accepted.answers.append(answer)
        return accepted

    def finish(self, results: Iterable[tuple[Task, Result]]) -> list[Result]:
        """Keep results until they are reported; answers with those that somebody waits for.

        Nobody waits for the result of a task that a newer one has overtaken, or of a `discard`.
        """
        current = []
        with self._transaction() as file:
            for task, result in results:
                if self._of_now(task).era != self.era:
                    continue
                unwanted = task.kind == DISCARD
                changed = file.execute(
                    "UPDATE tasks SET result = ?, task = NULL, reported = ?, changed = ?"
                    " WHERE server = ? AND operation = ? AND attempt = ? AND last = ?",
                    (msgspec.msgpack.encode(result), unwanted, time.time(), task.server_uuid, *fence(task)),
                ).rowcount
                if changed and not unwanted:
                    current.append(result)
        return current

    def drop(self, task: Task) -> None:
        """As if it had never come: it may come again."""
        if self._of_now(task).era != self.era:
            return
        with self._transaction() as file:
            file.execute(
                "DELETE FROM tasks"
                " WHERE server = ? AND operation = ? AND attempt = ? AND last = ? AND result IS NULL",
                (task.server_uuid, *fence(task)),
            )

    def unfinished(self) -> list[Task]:
        """Those that have secrets say only that they had."""
        with self._lock:
            rows = self._file.execute(
                "SELECT task FROM tasks WHERE reported = 0 AND result IS NULL"
            ).fetchall()
        return [self._of_now(msgspec.msgpack.decode(row[0], type=Task)) for row in rows]

    def unreported(self) -> list[Result]:
        with self._lock:
            rows = self._file.execute(
                "SELECT result FROM tasks WHERE reported = 0 AND result IS NOT NULL"
            ).fetchall()
        return [msgspec.msgpack.decode(row[0], type=Result) for row in rows]

    def reported(self, results: Iterable[Result]) -> None:
        with self._transaction() as file:
            file.executemany(
                "UPDATE tasks SET reported = 1"
                " WHERE server = ? AND operation = ? AND attempt = ? AND result IS NOT NULL",
                [
                    (result.server_uuid, result.operation_id, result.attempt)
                    for result in results
                    if result.era in (0, self.era)
                ],
            )

    def newest(self) -> dict[str, tuple[int, int]]:
        """By server, the last operation that we heard of, and its attempt."""
        with self._lock:
            rows = self._file.execute("SELECT server, operation, attempt FROM tasks").fetchall()
        return {server: (operation, attempt) for server, operation, attempt in rows}

    def forget(self, seconds: float) -> int:
        """Drop the memory of servers that were destroyed so long ago that nothing of them is on its way."""
        with self._transaction() as file:
            return file.execute(
                "DELETE FROM tasks WHERE last = 1 AND reported = 1 AND changed < ?",
                (time.time() - seconds,),
            ).rowcount

    @property
    def disabled(self) -> bool:
        """Whether the host was disabled when we last heard of it."""
        with self._lock:
            row = self._file.execute("SELECT value FROM settings WHERE name = 'disabled'").fetchone()
        return row is not None and row[0] == "1"

    @disabled.setter
    def disabled(self, value: bool) -> None:
        with self._transaction() as file:
            file.execute("INSERT OR REPLACE INTO settings VALUES ('disabled', ?)", (str(int(value)),))

    def reported_traits(self) -> dict[str, frozenset[str]]:
        """By node, the traits that we have ever told Placement of."""
        with self._lock:
            rows = self._file.execute("SELECT node, traits FROM told_traits").fetchall()
        sets: dict[str, frozenset[str]] = {}  # most nodes have the same ones
        return {node: sets.setdefault(traits, frozenset(traits.split())) for node, traits in rows}

    def add_reported_traits(self, told: Mapping[str, Iterable[str]]) -> None:
        """Remember the traits of these nodes, before Placement hears of them."""
        with self._transaction() as file:
            file.executemany(
                "INSERT OR REPLACE INTO told_traits VALUES (?, ?)",
                [(node, " ".join(sorted(traits))) for node, traits in sorted(told.items())],
            )

    @property
    def ratios(self) -> dict[str, float]:
        """The allocation ratios that the host's aggregates said when we last heard of it."""
        with self._lock:
            row = self._file.execute("SELECT value FROM settings WHERE name = 'ratios'").fetchone()
        return {} if row is None else msgspec.json.decode(row[0], type=dict[str, float])

    @ratios.setter
    def ratios(self, value: dict[str, float]) -> None:
        with self._transaction() as file:
            text = msgspec.json.encode(value).decode()
            file.execute("INSERT OR REPLACE INTO settings VALUES ('ratios', ?)", (text,))

    @property
    def shared_through(self) -> dict[str, str]:
        """By node, the placement aggregate that we put it into."""
        with self._lock:
            row = self._file.execute("SELECT value FROM settings WHERE name = 'shared_through'").fetchone()
        return {} if row is None else msgspec.json.decode(row[0], type=dict[str, str])

    @shared_through.setter
    def shared_through(self, value: dict[str, str]) -> None:
        with self._transaction() as file:
            text = msgspec.json.encode(value).decode()
            file.execute("INSERT OR REPLACE INTO settings VALUES ('shared_through', ?)", (text,))

    @property
    def tree_shapes(self) -> dict[str, dict[str, list[str]]]:
        """By node, the shape of the tree that Placement has of it: resource classes by provider."""
        with self._lock:
            row = self._file.execute("SELECT value FROM settings WHERE name = 'tree_shapes'").fetchone()
        return {} if row is None else msgspec.json.decode(row[0], type=dict[str, dict[str, list[str]]])

    @tree_shapes.setter
    def tree_shapes(self, value: dict[str, dict[str, list[str]]]) -> None:
        with self._transaction() as file:
            text = msgspec.json.encode(value).decode()
            file.execute("INSERT OR REPLACE INTO settings VALUES ('tree_shapes', ?)", (text,))

    def close(self) -> None:
        with self._lock:
            self._file.close()

    def _known(self, file: sqlite3.Connection, server_uuid: str) -> NewestTask | None:
        row = file.execute(
            "SELECT operation, attempt, last, result FROM tasks WHERE server = ?", (server_uuid,)
        ).fetchone()
        if row is None:
            return None
        result = None if row[3] is None else msgspec.msgpack.decode(row[3], type=Result)
        return NewestTask(row[:3], result)

    def _begin(self, file: sqlite3.Connection, task: Task) -> None:
        """Of secrets only the names: what is written to a disk is hard to erase from it."""
        names = dict.fromkeys(task.secrets, "")
        kept = msgspec.structs.replace(task, secrets=names) if names else task
        file.execute(
            "INSERT OR REPLACE INTO tasks VALUES (?, ?, ?, ?, ?, NULL, 0, ?)",
            (task.server_uuid, *fence(task), msgspec.msgpack.encode(kept), time.time()),
        )

    def trouble(self) -> str | None:
        """Why nothing can be written down, if nothing can."""
        return self._trouble

    @contextmanager
    def _transaction(self) -> Iterator[sqlite3.Connection]:
        with self._lock:
            before = self._file.total_changes
            try:
                yield from self._write()
            except sqlite3.OperationalError as error:
                self._trouble = f"the journal can't be written: {error}"
                if self._outage.begins():
                    LOG.error("%s: no tasks are taken on, and no results told, until it can", self._trouble)
                raise JournalUnwritableError(self._trouble) from error
            if self._file.total_changes > before:  # who had nothing to write proves nothing
                self._trouble = None
                if self._outage.ends():
                    LOG.info("the journal can be written again")

    def _write(self) -> Iterator[sqlite3.Connection]:
        self._file.execute("BEGIN IMMEDIATE")
        try:
            yield self._file
            self._file.execute("COMMIT")
        except BaseException:
            if self._file.in_transaction:  # a full disk may have ended it
                self._file.execute("ROLLBACK")
            raise
