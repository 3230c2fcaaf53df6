"""A client of Placement that remembers what candidates it was asked for."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

from moorage.placement.client.contract import Candidates, PlacementClient

Query = tuple[tuple[str, str], ...]


class Recorder:
    """Passes everything on."""

    def __init__(self, inner: PlacementClient) -> None:
        self._inner = inner
        self.queries: list[Query] = []

    @property
    def client(self) -> PlacementClient:
        return cast(PlacementClient, self)

    def candidates(self, query: Sequence[tuple[str, str]]) -> Candidates:
        self.queries.append(tuple(query))
        return self._inner.candidates(query)

    def unbounded(self) -> list[Query]:
        """Questions that a whole cloud would be the answer to."""
        return [
            query
            for query in self.queries
            if not any(name == "limit" or name.startswith("in_tree") for name, _ in query)
        ]

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)
