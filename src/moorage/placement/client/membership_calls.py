"""The aggregates of many providers: in a few requests if the service is ours, else provider by provider."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

import msgspec

from moorage.placement.client.chunks import LARGEST
from moorage.placement.client.contract import PlacementRefusedError, ProviderAggregates, Written
from moorage.placement.client.link import AGGREGATES, Link, decoded, expect, refusal

T = TypeVar("T")
R = TypeVar("R")
THREADS = 8
"""Requests at the same time, to a service that takes one provider a request."""


class _Members(msgspec.Struct):
    members: dict[str, set[str]]


class _Memberships(msgspec.Struct):
    providers: list[ProviderAggregates]


class _Refusal(msgspec.Struct):
    status: int
    detail: str


class _Outcome(msgspec.Struct):
    refused: dict[str, _Refusal]


class _Listed(msgspec.Struct):
    uuid: str


class _Listing(msgspec.Struct):
    resource_providers: list[_Listed]


class _Aggregates(msgspec.Struct):
    aggregates: frozenset[str]
    resource_provider_generation: int


class MembershipCalls:
    def __init__(self, link: Link) -> None:
        self._link = link

    def members(self, aggregate_uuids: Collection[str]) -> dict[str, set[str]]:
        bulk = self._link.extension(AGGREGATES)
        if bulk is None:
            return dict(together(self._members, list(aggregate_uuids)))
        answer = self._link.send("POST", f"{bulk}/members", {"aggregates": list(aggregate_uuids)})
        return decoded(expect(answer, 200), _Members).members

    def of_providers(self, provider_uuids: Collection[str]) -> dict[str, ProviderAggregates]:
        bulk = self._link.extension(AGGREGATES)
        if bulk is None:
            each = together(self._of_provider, list(provider_uuids))
            return {found.uuid: found for found in each if found is not None}
        found = {}
        for portion in _portions(list(provider_uuids)):
            answer = self._link.send("POST", f"{bulk}/providers", {"providers": portion})
            for membership in decoded(expect(answer, 200), _Memberships).providers:
                found[membership.uuid] = membership
        return found

    def replace(
        self, wanted: Sequence[ProviderAggregates], written: Written
    ) -> dict[str, PlacementRefusedError]:
        bulk = self._link.extension(AGGREGATES)
        if bulk is None:
            outcomes = together(lambda one: self._replace(one, written), wanted)
            each = zip(wanted, outcomes, strict=True)
            return {one.uuid: refused for one, refused in each if refused is not None}
        refusals: dict[str, PlacementRefusedError] = {}
        for portion in _portions(wanted):
            answer = self._link.send("PUT", f"{bulk}/providers", {"providers": portion})
            if answer.status == 409:
                refusals |= {one.uuid: refusal(answer) for one in portion}
                continue
            refused = decoded(expect(answer, 200), _Outcome).refused
            for one in portion:
                if one.uuid in refused:
                    told = refused[one.uuid]
                    refusals[one.uuid] = PlacementRefusedError(told.status, told.detail)
                else:
                    written(one.uuid)
        return refusals

    def _members(self, aggregate_uuid: str) -> tuple[str, set[str]]:
        answer = self._link.get("/resource_providers", [("member_of", aggregate_uuid)])
        listed = decoded(expect(answer, 200), _Listing).resource_providers
        return aggregate_uuid, {provider.uuid for provider in listed}

    def _of_provider(self, uuid: str) -> ProviderAggregates | None:
        answer = self._link.get(_path(uuid))
        if answer.status == 404:
            return None
        found = decoded(expect(answer, 200), _Aggregates)
        return ProviderAggregates(uuid, found.resource_provider_generation, found.aggregates)

    def _replace(self, wanted: ProviderAggregates, written: Written) -> PlacementRefusedError | None:
        body = _Aggregates(wanted.aggregates, wanted.generation)
        answer = self._link.send("PUT", _path(wanted.uuid), body)
        if answer.status in (404, 409):
            return refusal(answer)
        expect(answer, 200)
        written(wanted.uuid)
        return None


def _path(provider_uuid: str) -> str:
    return f"/resource_providers/{provider_uuid}/aggregates"


def _portions(items: Sequence[T]) -> Iterator[Sequence[T]]:
    for start in range(0, len(items), LARGEST):
        yield items[start : start + LARGEST]


def together(ask: Callable[[T], R], items: Sequence[T]) -> list[R]:
    """In the order of `items`; the first failure ends it: a dead service is not asked thousands of times."""
    if len(items) <= 1:
        return [ask(item) for item in items]
    pool = ThreadPoolExecutor(min(THREADS, len(items)), thread_name_prefix="placement-aggregates")
    try:
        return list(pool.map(ask, items))
    finally:
        pool.shutdown(cancel_futures=True)
