"""Where writes of one kind queue up: those that wait while others are written are written together.

A commit costs the same for one request and for many, so the busier a desk is, the cheaper each request gets.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import Generic, TypeVar

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from moorage.db.database import Database

R = TypeVar("R")
O = TypeVar("O")  # noqa: E741
Work = Callable[[Connection, Sequence[R]], Sequence[O | Exception]]
"""Does what independent requests want in one transaction; for each its outcome, or what is wrong with it."""


class Desk(Generic[R, O]):
    """Takes requests from many threads; the first in line writes for all that wait with it."""

    def __init__(self, database: Database, work: Work[R, O], most_together: int = 32) -> None:
        self._database = database
        self._work = work
        self._most_together = most_together
        self._queue = threading.Lock()
        self._waiting: list[_Ticket[R, O]] = []
        self._attended = False

    def submit(self, request: R) -> O:
        """The outcome of `request`; raises, with nothing changed, if it can't be."""
        ticket: _Ticket[R, O] = _Ticket(request)
        with self._queue:
            self._waiting.append(ticket)
            clerk = not self._attended
            self._attended = True
        if not clerk:
            ticket.called.wait()
        if ticket.outcome is None:
            self._attend()
        return ticket.result()

    def _attend(self) -> None:
        """Serve those in line, the caller first among them, and call the next clerk."""
        with self._queue:
            tickets = self._waiting[: self._most_together]
            del self._waiting[: self._most_together]
        try:
            self._serve(tickets)
        finally:
            with self._queue:
                successor = self._waiting[0] if self._waiting else None
                self._attended = successor is not None
            for ticket in tickets if successor is None else (successor, *tickets):
                ticket.called.set()

    def _serve(self, tickets: Sequence[_Ticket[R, O]]) -> None:
        requests = [ticket.request for ticket in tickets]
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


class _Ticket(Generic[R, O]):
    """One request in line; `called` wakes its thread when it is done, or when it is to be the clerk."""

    __slots__ = ("called", "outcome", "request")

    def __init__(self, request: R) -> None:
        self.request = request
        self.called = threading.Event()
        self.outcome: O | Exception | None = None

    def result(self) -> O:
        if self.outcome is None:
            raise RuntimeError("the thread that wrote this request was interrupted")
        if isinstance(self.outcome, Exception):
            raise self.outcome
        return self.outcome
