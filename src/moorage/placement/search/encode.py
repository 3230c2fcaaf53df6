"""The JSON of an allocation-candidates answer, in the shape that a microversion has."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

import msgspec

from moorage.placement.fleet.fleet import Fleet
from moorage.placement.search.result import Candidate, LoneCandidates, SearchResult


@dataclass(frozen=True, slots=True)
class AnswerShape:
    """What the answer has at one microversion."""

    allocations_by_uuid: bool = True
    mappings: bool = True
    traits: bool = True
    all_classes: bool = True
    trees: bool = True

    @classmethod
    def at(cls, minor: int) -> AnswerShape:
        """The shape at microversion 1.`minor`."""
        return cls(
            allocations_by_uuid=minor >= 12,
            traits=minor >= 17,
            all_classes=minor >= 27,
            trees=minor >= 29,
            mappings=minor >= 34,
        )

    @property
    def whole(self) -> bool:
        """Whether summaries have everything, and so are the same for every request."""
        return self.traits and self.all_classes and self.trees


class CandidateEncoder:
    """Encodes search results of one fleet.

    A provider's summary is encoded once and kept until the provider changes, because the summaries
    are most of an answer and most providers do not change between two requests.
    """

    def __init__(self, fleet: Fleet) -> None:
        self._fleet = fleet
        self._summaries: dict[int, tuple[int, bytes]] = {}
        self._renames = fleet.names.renames

    def encode(self, result: SearchResult, shape: AnswerShape, requested: Collection[str] = ()) -> bytes:
        """The body; `requested` are the class names of the request, which older shapes are limited to."""
        requests = self._requests(result.candidates, shape)
        summaries = b",".join(self._all_summaries(result.summarised, shape, requested))
        return b'{"allocation_requests":%b,"provider_summaries":{%b}}' % (requests, summaries)

    def _requests(self, candidates: Sequence[Candidate], shape: AnswerShape) -> bytes:
        describe = _by_uuid if shape.allocations_by_uuid else _as_list
        uuids = self._fleet.uuids
        if not isinstance(candidates, LoneCandidates) or not candidates:
            return msgspec.json.encode([describe(candidate, uuids, shape) for candidate in candidates])
        one = describe(candidates[0], {candidates.slots_used[0]: _BLANK}, shape)
        around = msgspec.json.encode(one).decode().split(_BLANK)
        return f"[{','.join([uuids[slot].join(around) for slot in candidates.slots_used])}]".encode()

    def _all_summaries(
        self, slots: Iterable[int], shape: AnswerShape, requested: Collection[str]
    ) -> Iterable[bytes]:
        if not shape.whole:
            return [self._summary(slot, shape, requested) for slot in slots]
        if self._renames != self._fleet.names.renames:
            self._summaries.clear()
            self._renames = self._fleet.names.renames
        return [self._kept_summary(slot, shape) for slot in slots]

    def _kept_summary(self, slot: int, shape: AnswerShape) -> bytes:
        stamp = self._fleet.stamps[slot]
        kept = self._summaries.get(slot)
        if kept is None or kept[0] != stamp:
            kept = self._summaries[slot] = (stamp, self._summary(slot, shape, ()))
        return kept[1]

    def _summary(self, slot: int, shape: AnswerShape, requested: Collection[str]) -> bytes:
        """`"uuid": {…}`, ready to be joined with others."""
        fleet, names = self._fleet, self._fleet.names
        resources = {}
        for class_id, (capacity, used) in fleet.inventory(slot).items():
            name = names.class_name(class_id)
            if shape.all_classes or name in requested:
                resources[name] = {"capacity": capacity, "used": used}
        summary: dict[str, object] = {"resources": resources}
        if shape.traits:
            summary["traits"] = [names.trait_name(trait_id) for trait_id in fleet.traits_of[slot]]
        if shape.trees:
            parent = fleet.parent_of(slot)
            summary["parent_provider_uuid"] = None if parent is None else fleet.uuids[parent]
            summary["root_provider_uuid"] = fleet.uuids[fleet.root_of(slot)]
        return b'"%b":%b' % (fleet.uuids[slot].encode(), msgspec.json.encode(summary))


Uuids = Sequence[str] | Mapping[int, str]
_BLANK = "*"
"""Stands for a UUID in a pattern: a sign that no name of a class and no suffix of a group can have."""


def _by_uuid(candidate: Candidate, uuids: Uuids, shape: AnswerShape) -> dict[str, object]:
    request: dict[str, object] = {
        "allocations": {uuids[slot]: {"resources": held} for slot, held in candidate.allocations.items()}
    }
    if shape.mappings:
        request["mappings"] = {
            suffix: [uuids[slot] for slot in slots] for suffix, slots in candidate.mappings.items()
        }
    return request


def _as_list(candidate: Candidate, uuids: Uuids, _shape: AnswerShape) -> dict[str, object]:
    return {
        "allocations": [
            {"resource_provider": {"uuid": uuids[slot]}, "resources": held}
            for slot, held in candidate.allocations.items()
        ]
    }
