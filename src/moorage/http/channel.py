"""One connection of our server: what it may keep us waiting for, and bodies that are taken as they arrive."""

from __future__ import annotations

import copy
import re
import sys
import time
from typing import Any

from waitress.adjustments import Adjustments
from waitress.channel import HTTPChannel
from waitress.parser import HTTPRequestParser

from moorage.http.inflow import Inflow

REQUEST_SECONDS = 60.0
"""That a request may take to arrive, from its first byte to its last one; or, of one that is taken as it
arrives, from one part to the next."""
ANSWER_SECONDS = 120.0
"""That a client may take to read an answer; or the next part of one that is still being written."""


class _Request(HTTPRequestParser):  # type: ignore[misc]
    """One that may begin before its body is there."""

    adj: Adjustments
    inflow: Inflow | None = None

    def __init__(self, adj: Adjustments, channel: ClientChannel) -> None:
        super().__init__(adj)
        self._channel = channel

    def parse_header(self, header_plus: bytes) -> None:
        super().parse_header(header_plus)
        streamed: re.Pattern[str] | None = self._channel.server.streamed
        if self.body_rcv is None or streamed is None or not streamed.fullmatch(f"{self.command} {self.path}"):
            return
        self.inflow = self.body_rcv.buf = Inflow(self._channel.server.pull_trigger)
        self.adj = copy.copy(self.adj)
        self.adj.max_request_body_size = sys.maxsize  # nothing is kept; who reads it knows the limit


class ClientChannel(HTTPChannel):  # type: ignore[misc]
    begun_at: float | None = None
    """When the first part came of a request that has not arrived as a whole."""
    answering_since: float | None = None
    _arriving: _Request | None = None
    """The request that is worked on already."""

    def parser_class(self, adj: Adjustments) -> _Request:
        return _Request(adj, self)

    def received(self, data: bytes) -> bool:
        taken: bool = super().received(data)
        arriving = self._arriving
        if arriving is not None and arriving.completed:
            self._end(whole=arriving.error is None)
        self._begin()
        now = time.monotonic()
        if self.request is None:
            self.begun_at = None
        elif self.begun_at is None or (self._inflow is not None and not self._inflow.is_unwanted):
            self.begun_at = now
        return taken

    def _begin(self) -> None:
        """Work on a request whose body is to be taken as it arrives, unless it is there as a whole."""
        with self.requests_lock:
            for complete in self.requests:
                if complete.inflow is not None and complete is not self._arriving:
                    complete.inflow.end(whole=complete.error is None)
            request = self.request
            if request is None or request.inflow is None or self._arriving is not None or self.requests:
                return
            self._arriving = request
            request.empty = True  # when its body is there, it is not another request
            self.requests.append(request)
            self.server.add_task(self)

    @property
    def _inflow(self) -> Inflow | None:
        return None if self._arriving is None else self._arriving.inflow

    def _end(self, *, whole: bool) -> None:
        if self._inflow is not None:
            self._inflow.end(whole=whole)
        self._arriving = None

    def readable(self) -> bool:
        if self._inflow is None:
            ready: bool = super().readable()
            return ready
        return not (self.will_close or self.close_when_flushed or self._inflow.is_full)

    def handle_close(self) -> None:
        super().handle_close()
        self._end(whole=False)

    def keeps_us_waiting(self, now: float) -> bool:
        """`now` is of the monotonic clock."""
        if self.total_outbufs_len and not self.requests:
            self.answering_since = self.answering_since or now
        else:
            self.answering_since = None
        if self._inflow is not None and self._inflow.is_full:
            self.begun_at = now  # it is us who keep the client waiting
        return (
            (self.begun_at is not None and now - self.begun_at > REQUEST_SECONDS)
            or (self.answering_since is not None and now - self.answering_since > ANSWER_SECONDS)
            or self._has_stalled()
        )

    def _has_stalled(self) -> bool:
        """Whether a part of an answer lies there that the client does not fetch."""
        idle: Any = time.time() - self.last_activity
        return bool(self.requests) and bool(self.total_outbufs_len) and idle > ANSWER_SECONDS
