"""The meaning of a candidates request, as plainly as it can be put: try everything, keep what is right.

Works on records, knows nothing of columns, and is far too slow for anything but small fleets.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import product
from math import inf

from moorage.placement.fleet.names import SHARING_TRAIT
from moorage.placement.fleet.record import ProviderRecord
from moorage.placement.search.request import GroupPolicy, RequestGroup, SearchRequest
from tests.unit.placement.fleets import CLASS_IDS, TRAITS

Placing = tuple[tuple[str, str | None, int, ProviderRecord], ...]
"""(suffix, class or None, amount, provider) for all that a candidate takes."""
Answer = tuple[frozenset[tuple[str, str, int]], frozenset[tuple[str, frozenset[str]]]]


class Oracle:
    def __init__(self, records: Sequence[ProviderRecord]) -> None:
        self.by_id = {record.id: record for record in records}
        self.by_uuid = {record.uuid: record for record in records}
        self.records = records
        self.has_trees = any(record.parent_id is not None for record in records)

    def answers(self, request: SearchRequest) -> set[Answer]:
        """All candidates of a request, in a form that can be compared."""
        return set().union(*(self.answers_at(anchor, request) for anchor in self.records))

    def anchors(self, request: SearchRequest) -> list[ProviderRecord]:
        return [anchor for anchor in self.records if self.answers_at(anchor, request)]

    def answers_at(self, anchor: ProviderRecord, request: SearchRequest) -> set[Answer]:
        if anchor.parent_id is not None or not self._is_anchor(anchor, request):
            return set()
        per_group = [list(self._ways(anchor, group)) for group in request.groups]
        placings = (tuple(part for way in ways for part in way) for ways in product(*per_group))
        return {_answer(placing) for placing in placings if self._holds_together(placing, request)}

    def traits(self, record: ProviderRecord) -> set[str]:
        return {TRAITS[number] for number in record.trait_ids}

    def serves_at(self, record: ProviderRecord, anchor: ProviderRecord) -> bool:
        if record.root_id == anchor.id:
            return True
        return SHARING_TRAIT in self.traits(record) and any(
            other.root_id == anchor.id and set(other.aggregates) & set(record.aggregates)
            for other in self.records
        )

    def fits(self, record: ProviderRecord, name: str, amount: int) -> bool:
        for stock in record.inventories:
            if stock.class_id == CLASS_IDS[name]:
                return (
                    stock.used + amount <= stock.capacity
                    and stock.min_unit <= amount <= stock.max_unit
                    and amount % stock.step_size == 0
                )
        return False

    def _is_anchor(self, anchor: ProviderRecord, request: SearchRequest) -> bool:
        traits = self.traits(anchor)
        return request.root_required <= traits and not request.root_forbidden & traits

    def _in_tree(self, record: ProviderRecord, group: RequestGroup) -> bool:
        if group.in_tree is None:
            return True
        named = self.by_uuid.get(group.in_tree)
        return named is not None and (named.root_id == record.root_id or not group.resources)

    def _ways(self, anchor: ProviderRecord, group: RequestGroup) -> Iterator[Placing]:
        if group.suffix:
            for record in self.records:
                if self.serves_at(record, anchor) and self.satisfies(record, group):
                    needs: list[tuple[str | None, int]] = [*group.resources.items()] or [(None, 0)]
                    yield tuple((group.suffix, name, amount, record) for name, amount in needs)
            return
        choices = [
            [
                (group.suffix, name, amount, record)
                for record in self.records
                if self.serves_at(record, anchor)
                and self.fits(record, name, amount)
                and self._may_join(record, anchor, group)
            ]
            for name, amount in group.resources.items()
        ]
        for way in product(*choices):
            between_them = set().union(*(self.traits(record) for *_, record in way))
            if all(wanted & between_them for wanted in group.required_traits):
                yield way

    def satisfies(self, record: ProviderRecord, group: RequestGroup) -> bool:
        if not group.resources and not group.required_traits and not group.member_of:
            return False
        return self.meets(record, group) and self._in_tree(record, group)

    def meets(self, record: ProviderRecord, group: RequestGroup) -> bool:
        """All conditions on the provider itself; not the tree, which depends on who asks."""
        traits, aggregates = self.traits(record), set(record.aggregates)
        return (
            all(self.fits(record, name, amount) for name, amount in group.resources.items())
            and all(wanted & traits for wanted in group.required_traits)
            and not group.forbidden_traits & traits
            and all(wanted & aggregates for wanted in group.member_of)
            and not group.forbidden_aggregates & aggregates
        )

    def _may_join(self, record: ProviderRecord, anchor: ProviderRecord, group: RequestGroup) -> bool:
        """Whether one provider may be part of what the unsuffixed group gets at this anchor."""
        own = record.root_id == anchor.id
        if not self._in_tree(record, group) or (group.in_tree is not None and not own):
            return False
        if group.forbidden_traits & self.traits(record):
            return False
        if group.forbidden_aggregates & {*record.aggregates, *anchor.aggregates}:
            return False
        judged = [record, anchor] if own else [record]
        return any(all(wanted & set(judge.aggregates) for wanted in group.member_of) for judge in judged)

    def _holds_together(self, placing: Placing, request: SearchRequest) -> bool:
        granular = {(suffix, record.id) for suffix, _, _, record in placing if suffix}
        isolated = len({number for _, number in granular}) == len({suffix for suffix, _ in granular})
        if request.group_policy is GroupPolicy.ISOLATE and not isolated:
            return False
        for suffixes in request.same_subtrees:
            if not self._one_subtree({record.id for suffix, _, _, record in placing if suffix in suffixes}):
                return False
        used = {record.id: record.root_id for _, name, _, record in placing if name is not None}
        if not request.nested and self.has_trees and len(set(used.values())) < len(used):
            return False
        return all(self._has_room(record, name, amount) for record, name, amount in _sums(placing))

    def _one_subtree(self, ids: set[int]) -> bool:
        return any(all(top in self._line(number) for number in ids) for top in ids)

    def _line(self, number: int | None) -> set[int]:
        line = set()
        while number is not None:
            line.add(number)
            number = self.by_id[number].parent_id
        return line

    def _has_room(self, record: ProviderRecord, name: str, amount: int) -> bool:
        stock = next(stock for stock in record.inventories if stock.class_id == CLASS_IDS[name])
        return stock.used + amount <= stock.capacity and amount <= (stock.max_unit or inf)


def _sums(placing: Placing) -> Iterator[tuple[ProviderRecord, str, int]]:
    sums: dict[tuple[int, str], int] = {}
    records = {record.id: record for *_, record in placing}
    for _, name, amount, record in placing:
        if name is not None:
            sums[record.id, name] = sums.get((record.id, name), 0) + amount
    for (number, name), amount in sums.items():
        yield records[number], name, amount


def _answer(placing: Placing) -> Answer:
    mappings: dict[str, set[str]] = {}
    for suffix, _, _, record in placing:
        mappings.setdefault(suffix, set()).add(record.uuid)
    return (
        frozenset((record.uuid, name, amount) for record, name, amount in _sums(placing)),
        frozenset((suffix, frozenset(uuids)) for suffix, uuids in mappings.items()),
    )
