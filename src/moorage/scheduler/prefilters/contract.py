"""What a prefilter is."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol

from moorage.scheduler.request import Request


class Prefilter(Protocol):
    def narrow(self, request: Request) -> Request:
        """The request with one more condition; raises `NoHostAllowedError` if nothing can meet it."""


def narrow(request: Request, prefilters: Iterable[Prefilter]) -> Request:
    for prefilter in prefilters:
        request = prefilter.narrow(request)
    return request
