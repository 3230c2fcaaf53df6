"""Aggregates that are for certain images: their metadata names a property, and the values that they take."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from moorage.scheduler.narrowing import NarrowedBy
from moorage.scheduler.request import Request


@dataclass(frozen=True, slots=True)
class AggregateImages:
    taken: Mapping[str, Mapping[str, frozenset[str]]]
    """By aggregate: its metadata that may be properties of images, and the values that it takes."""
    properties: Mapping[str, str]
    """Those of the image; an aggregate has nothing against an image that does not speak of its keys."""

    def narrow(self, request: Request) -> Request:
        closed = {uuid: wrong for uuid, wanted in self.taken.items() if (wrong := self._wrong(wanted))}
        keys = frozenset().union(*closed.values())
        return request.outside(frozenset(closed), NarrowedBy.IMAGE, ", ".join(sorted(keys)))

    def _wrong(self, wanted: Mapping[str, frozenset[str]]) -> frozenset[str]:
        return frozenset(
            key
            for key, values in wanted.items()
            if key in self.properties and str(self.properties[key]) not in values
        )
