"""Where writes of one kind queue up: those that wait while others are written are written together.

A commit costs the same for one request and for many, so the busier a desk is, the cheaper each request gets.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Sequence
from typing import Generic, TypeVar, cast

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from moorage.db.database import Database

R = TypeVar("R")
O = TypeVar("O")  # noqa: E741
Work = Callable[[Connection, Sequence[R]], Sequence[O | Exception]]
"""Does what independent requests want in one transaction; for each its outcome, or what is wrong with it."""


def _about_nothing(_request: object) -> Iterable[str]:
    return ()


class Desk(Generic[R, O]):
    """Takes requests from many threads, and writes all that are waiting in one transaction.

    One thread at a time is the clerk: it writes its own request and those that wait with it, then hands
    the desk to the next one in line. The others sleep until their request is done.
    """

    def __init__(
        self,
        database: Database,
        work: Work[R, O],
        most_together: int = 32,
        subjects: Callable[[R], Iterable[str]] = _about_nothing,
    ) -> None:
        """Requests that are about the same subject are not independent: one waits for the other."""
        self._database = database
        self._work = work
        self._most_together = most_together
        self._subjects = subjects
        self._queue = threading.Lock()
        self._waiting: list[_Ticket[R, O]] = []
        self._attended = False

    def submit(self, request: R) -> O:
        """The outcome of `request`; raises, with nothing changed, if it can't be."""
        (outcome,) = self.submit_many([request])
        if isinstance(outcome, Exception):
            raise outcome
        return outcome

    def submit_many(self, requests: Sequence[R]) -> list[O | Exception]:
        """The outcomes of independent requests, each on its own merits.

        One thread that has many to submit is as quick with this as many threads that have one each.
        """
        tickets = [_Ticket[R, O](request, set(self._subjects(request))) for request in requests]
        with self._queue:
            self._waiting += tickets
            clerk = bool(tickets) and not self._attended
            self._attended |= clerk
        for ticket in tickets:
            if not clerk:
                ticket.called.wait()
            if not ticket.done:
                self._attend()
            clerk = False
        return [ticket.result() for ticket in tickets]

    def _attend(self) -> None:
        """Serve those in line, the caller first among them, and call the next clerk."""
        tickets = self._take()
        try:
            self._serve(tickets)
        finally:
            with self._queue:
                successor = self._waiting[0] if self._waiting else None
                self._attended = successor is not None
            for ticket in tickets if successor is None else (successor, *tickets):
                ticket.called.set()

    def _take(self) -> list[_Ticket[R, O]]:
        """The requests next in line; one about what another of them is about waits its turn."""
        with self._queue:
            taken: list[_Ticket[R, O]] = []
            left: list[_Ticket[R, O]] = []
            subjects: set[str] = set()
            for ticket in self._waiting:
                if len(taken) < self._most_together and subjects.isdisjoint(ticket.subjects):
                    taken.append(ticket)
                    subjects |= ticket.subjects
                else:
                    left.append(ticket)
            self._waiting = left
        return taken

    def _serve(self, tickets: Sequence[_Ticket[R, O]]) -> None:
        requests = [ticket.request for ticket in tickets]
        outcomes: Sequence[O | Exception]
        try:
            outcomes = self._database.transact(lambda connection: self._work(connection, requests))
        except sa.exc.OperationalError as error:  # asking again for each would take as long each
            outcomes = [error] * len(tickets)
        except Exception as error:
            if len(tickets) > 1:  # one of them spoils it for the others: give each a transaction of its own
                for ticket in tickets:
                    self._serve([ticket])
                return
            outcomes = [error]
        for ticket, outcome in zip(tickets, outcomes, strict=True):
            ticket.outcome = outcome
            ticket.done = True


class _Ticket(Generic[R, O]):
    """One request in line; `called` wakes its thread when it is done, or when it is to be the clerk."""

    __slots__ = ("called", "done", "outcome", "request", "subjects")

    def __init__(self, request: R, subjects: set[str]) -> None:
        self.request = request
        self.subjects = subjects
        self.called = threading.Event()
        self.done = False
        self.outcome: O | Exception | None = None

    def result(self) -> O | Exception:
        if not self.done:
            return RuntimeError("the thread that wrote this request was interrupted")
        return cast("O | Exception", self.outcome)
