"""Where claims queue up: those that wait while others are written are written together."""

from __future__ import annotations

import threading
from collections.abc import Sequence

import sqlalchemy as sa

from moorage.db.database import Database
from moorage.placement.claims import ClaimRequest, KnownIds, decide

MOST_TOGETHER = 64
"""So many requests share a transaction at the most."""


class ClaimDesk:
    """Takes claims from many threads, and writes all that are waiting in one transaction.

    One thread at a time is the clerk: it writes its own request and those that wait with it, then hands
    the desk to the next one in line. The others sleep until their request is done.
    """

    def __init__(self, database: Database) -> None:
        self._database = database
        self._known = KnownIds()
        self._queue = threading.Lock()
        self._waiting: list[_Ticket] = []
        self._attended = False

    def submit(self, request: ClaimRequest) -> None:
        """Make `request` true, or raise and change nothing."""
        (error,) = self.submit_many([request])
        if error is not None:
            raise error

    def submit_many(self, requests: Sequence[ClaimRequest]) -> list[Exception | None]:
        """Make independent requests true, each on its own merits; for each its error, or None if it is done.

        One thread that has many to submit is as quick with this as many threads that have one each.
        """
        tickets = [_Ticket(request) for request in requests]
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
        return [ticket.outcome() for ticket in tickets]

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

    def _take(self) -> list[_Ticket]:
        """The requests next in line; one about a consumer that another of them is about waits its turn."""
        with self._queue:
            taken: list[_Ticket] = []
            left: list[_Ticket] = []
            consumers: set[str] = set()
            for ticket in self._waiting:
                if len(taken) < MOST_TOGETHER and consumers.isdisjoint(ticket.consumers):
                    taken.append(ticket)
                    consumers |= ticket.consumers
                else:
                    left.append(ticket)
            self._waiting = left
        return taken

    def _serve(self, tickets: list[_Ticket]) -> None:
        requests = [ticket.request for ticket in tickets]
        try:
            errors = self._database.transact(lambda connection: decide(connection, requests, self._known))
        except (
            sa.exc.OperationalError
        ) as error:  # the database can't: asking again for each takes as long each
            errors = [error] * len(tickets)
        except Exception as error:
            if len(tickets) > 1:  # one of them spoils it for the others: give each a transaction of its own
                for ticket in tickets:
                    self._serve([ticket])
                return
            errors = [error]
        for ticket, outcome in zip(tickets, errors, strict=True):
            ticket.error = outcome
            ticket.done = True


class _Ticket:
    """One request in line; `called` wakes its thread when it is done, or when it is to be the clerk."""

    __slots__ = ("called", "consumers", "done", "error", "request")

    def __init__(self, request: ClaimRequest) -> None:
        self.request = request
        self.consumers = {claim.consumer_uuid for claim in request}
        self.called = threading.Event()
        self.done = False
        self.error: Exception | None = None

    def outcome(self) -> Exception | None:
        if self.error is None and not self.done:
            return RuntimeError("the thread that wrote this claim was interrupted")
        return self.error
