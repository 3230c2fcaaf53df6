"""Where claims queue up: those that wait while others are written are written together."""

from __future__ import annotations

import threading

from moorage.db.database import Database
from moorage.placement.claims import ClaimRequest, KnownIds, decide

WRITERS = 1
"""While one transaction waits for its commit, the next is prepared."""

MOST_TOGETHER = 64
"""So many requests share a transaction at the most."""


class ClaimDesk:
    """Takes claims from many threads, and writes all that are waiting in one transaction."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._waiting: list[_Ticket] = []
        self._queue = threading.Lock()
        self._writing = threading.Semaphore(WRITERS)
        self._known = KnownIds()

    def submit(self, request: ClaimRequest) -> None:
        """Make `request` true, or raise and change nothing."""
        ticket = _Ticket(request)
        with self._queue:
            self._waiting.append(ticket)
        while not ticket.done:
            with self._writing:
                if not ticket.done:
                    self._serve(self._take())
        if ticket.error is not None:
            raise ticket.error

    def _take(self) -> list[_Ticket]:
        """The requests next in line; one about a consumer that another of them is about waits its turn."""
        with self._queue:
            taken: list[_Ticket] = []
            left: list[_Ticket] = []
            consumers_taken: set[str] = set()
            for ticket in self._waiting:
                if len(taken) < MOST_TOGETHER and consumers_taken.isdisjoint(ticket.consumers):
                    taken.append(ticket)
                    consumers_taken |= ticket.consumers
                else:
                    left.append(ticket)
            self._waiting = left
        return taken

    def _serve(self, tickets: list[_Ticket]) -> None:
        try:
            requests = [ticket.request for ticket in tickets]
            errors = self._database.transact(lambda connection: decide(connection, requests, self._known))
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
    __slots__ = ("consumers", "done", "error", "request")

    def __init__(self, request: ClaimRequest) -> None:
        self.request = request
        self.consumers = {claim.consumer_uuid for claim in request}
        self.done = False
        self.error: Exception | None = None
