"""Placement over HTTP: ours or the reference's, as long as it speaks the API."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

import msgspec

from moorage.placement.client.chunks import in_chunks
from moorage.placement.client.contract import (
    NODE_TRAIT,
    Candidates,
    ConsumerChangedError,
    ConsumerClaim,
    Miscount,
    PlacementRefusedError,
    ProviderAggregates,
    ReportedProvider,
    TreeProvider,
    TreeUsage,
    Written,
    ignore,
)
from moorage.placement.client.dialect import CandidatesQuery
from moorage.placement.client.link import (
    COUNTERS,
    REPORT,
    WHY,
    Link,
    decoded,
    expect,
    is_concurrent_update,
    refusal,
)
from moorage.placement.client.membership_calls import MembershipCalls, together
from moorage.placement.client.provider_calls import ProviderCalls
from moorage.placement.client.telling import told
from moorage.placement.client.transport import PatientTransport, Response, Transport
from moorage.placement.client.tree_calls import TreeCalls
from moorage.placement.microversions import Microversion
from moorage.placement.search.why import Explanation


class HttpPlacement:
    """A `PlacementClient` over a session or an adapter (see `transport.py`)."""

    def __init__(self, transport: Transport) -> None:
        patient = transport if isinstance(transport, PatientTransport) else PatientTransport(transport)
        self._link = Link(patient)
        self._providers = ProviderCalls(self._link)
        self._memberships = MembershipCalls(self._link)
        self._trees = TreeCalls(self._link, self._body)

    def candidates(self, query: Sequence[tuple[str, str]]) -> Candidates:
        question: CandidatesQuery | None = CandidatesQuery.of(query, self._link.version)
        while question is not None:
            members = self._members(question.outside)
            answer = self._link.get("/allocation_candidates", question.pairs())
            found = decoded(expect(answer, 200), Candidates)
            kept = question.kept(found, members)
            question = question.wider(len(found.allocation_requests), len(kept.allocation_requests))
        return kept

    def _members(self, aggregates: frozenset[str]) -> frozenset[str]:
        """The providers in any of these."""
        if not aggregates:
            return frozenset()
        return self._providers_of([("member_of", f"in:{','.join(sorted(aggregates))}")])

    def _providers_of(self, query: Sequence[tuple[str, str]]) -> frozenset[str]:
        listed = decoded(expect(self._link.get("/resource_providers", query), 200), _Listing)
        return frozenset(provider.uuid for provider in listed.resource_providers)

    def check(self) -> tuple[int, int]:
        """The version that we speak with it; raises unless it answers, is new enough and lets us in."""
        expect(self._link.get("/resource_classes/VCPU"), 200)
        return self._link.version

    def claim(self, claims: Sequence[ConsumerClaim]) -> list[PlacementRefusedError | None]:
        return self._claim(list(claims), doubtful=False)

    def _claim(self, claims: list[ConsumerClaim], *, doubtful: bool) -> list[PlacementRefusedError | None]:
        """All in one request, which comes true as a whole or not at all; if not, each half by itself.

        It is `doubtful` whether a claim came true before, if a request with it was sent more than once.
        """
        if not claims:
            return []
        together, later = _about_different_consumers(claims)
        if later:
            return _in_order(
                claims,
                self._claim(together, doubtful=doubtful),
                self._claim(later, doubtful=doubtful),
                later,
            )
        answer = self._link.send(
            "POST", "/allocations", {claim.consumer_uuid: self._body(claim) for claim in claims}
        )
        doubtful |= answer.repeated
        if answer.status == 204:
            return [None] * len(claims)
        if len(claims) == 1:
            return [None if doubtful and self._holds(claims[0]) else self._refusal(answer, claims)]
        middle = len(claims) // 2
        return [
            *self._claim(claims[:middle], doubtful=doubtful),
            *self._claim(claims[middle:], doubtful=doubtful),
        ]

    def claim_together(self, claims: Sequence[ConsumerClaim]) -> PlacementRefusedError | None:
        answer = self._link.send(
            "POST", "/allocations", {claim.consumer_uuid: self._body(claim) for claim in claims}
        )
        if answer.status == 204 or (answer.repeated and all(map(self._holds, claims))):
            return None
        return self._refusal(answer, claims)

    def _refusal(self, answer: Response, claims: Sequence[ConsumerClaim]) -> PlacementRefusedError:
        """Placement has one code for all that changed meanwhile: a look tells whether it was a consumer."""
        refused = refusal(answer)
        if is_concurrent_update(answer) and any(map(self._has_changed, claims)):
            return ConsumerChangedError(refused.status, refused.detail)
        return refused

    def _body(self, claim: ConsumerClaim) -> dict[str, Any]:
        body: dict[str, Any] = {
            "allocations": {uuid: {"resources": held} for uuid, held in claim.allocations.items()},
            "project_id": claim.project_id,
            "user_id": claim.user_id,
            "consumer_generation": claim.consumer_generation,
        }
        if self._link.version >= Microversion.CONSUMER_TYPES:
            body["consumer_type"] = claim.consumer_type
        return body

    def _holds(self, claim: ConsumerClaim) -> bool:
        return self.allocations(claim.consumer_uuid)[0] == claim.allocations

    def _has_changed(self, claim: ConsumerClaim) -> bool:
        return self.allocations(claim.consumer_uuid)[1] != claim.consumer_generation

    def release(self, consumer_uuids: Sequence[str]) -> None:
        for uuid in dict.fromkeys(consumer_uuids):
            expect(self._link.send("DELETE", f"/allocations/{uuid}"), 204, 404)

    def allocations(self, consumer_uuid: str) -> tuple[dict[str, dict[str, int]], int | None]:
        body = expect(self._link.get(f"/allocations/{consumer_uuid}"), 200)
        found = decoded(body, _Allocations)
        return {uuid: held.resources for uuid, held in found.allocations.items()}, found.consumer_generation

    def tree_has(self, provider_uuid: str, traits: Collection[str]) -> bool:
        query = [("in_tree", provider_uuid)]
        if traits:
            query.append(("required", ",".join(sorted(traits))))
        return bool(self._providers_of(query))

    def is_among(self, provider_uuid: str, member_of: Collection[str]) -> bool:
        itself = ("uuid", provider_uuid)
        if self._link.version >= Microversion.FORBIDDEN_AGGREGATES:
            return bool(self._providers_of([itself, *(("member_of", value) for value in member_of)]))
        inside = [("member_of", value) for value in member_of if not value.startswith("!")]
        outside = [("member_of", value[1:]) for value in member_of if value.startswith("!")]
        return bool(self._providers_of([itself, *inside])) and not any(
            self._providers_of([itself, pair]) for pair in outside
        )

    def why(self, query: Sequence[tuple[str, str]]) -> Mapping[str, Any] | None:
        path = self._link.extension(WHY)
        if path is None:
            return None
        return told(decoded(expect(self._link.get(path, query), 200), Explanation))

    def report(self, providers: Sequence[ReportedProvider]) -> None:
        bulk = self._link.extension(REPORT)
        for chunk in in_chunks(providers):
            if bulk is not None:
                expect(self._link.send("POST", bulk, {"providers": chunk}), 200)
            else:
                for provider in chunk:
                    self._providers.report(provider)

    def tree(self, root_uuid: str) -> list[TreeProvider]:
        return self._trees.tree(root_uuid)

    def tree_usages(self, root_uuids: Collection[str]) -> dict[str, TreeUsage]:
        found = together(self._trees.usage, list(root_uuids))
        usages = zip(root_uuids, found, strict=True)
        return {uuid: usage for uuid, usage in usages if usage is not None}

    def consumers(self, provider_uuids: Collection[str]) -> list[ConsumerClaim]:
        return self._trees.consumers(provider_uuids)

    def reshape(self, providers: Sequence[TreeProvider], claims: Sequence[ConsumerClaim]) -> None:
        for provider in providers:
            self._providers.make_classes(provider.inventories)
        self._trees.reshape(providers, claims)

    def nodes(self) -> set[str]:
        return set(self._providers_of([("required", NODE_TRAIT)]))

    def miscounts(self, provider_uuid: str | None = None) -> list[Miscount]:
        path = self._link.extension(COUNTERS)
        if path is None:
            return []
        query = [] if provider_uuid is None else [("provider", provider_uuid)]
        return decoded(expect(self._link.get(path, query), 200), _Miscounts).miscounts

    def recount(self, provider_uuid: str) -> None:
        path = self._link.extension(COUNTERS)
        if path is not None:
            expect(self._link.send("POST", path, {"provider": provider_uuid}), 204)

    def set_trait(self, provider_uuids: Collection[str], trait: str, *, present: bool) -> None:
        together(lambda uuid: self._providers.set_trait(uuid, trait, present=present), list(provider_uuids))

    def delete_provider(self, uuid: str) -> None:
        expect(self._link.send("DELETE", f"/resource_providers/{uuid}"), 204, 404)

    def members(self, aggregate_uuids: Collection[str]) -> dict[str, set[str]]:
        return self._memberships.members(aggregate_uuids)

    def aggregates(self, provider_uuids: Collection[str]) -> dict[str, ProviderAggregates]:
        return self._memberships.of_providers(provider_uuids)

    def set_aggregates(
        self, wanted: Sequence[ProviderAggregates], written: Written = ignore
    ) -> dict[str, PlacementRefusedError]:
        return self._memberships.replace(wanted, written)


class _Miscounts(msgspec.Struct):
    miscounts: list[Miscount]


class _Listed(msgspec.Struct):
    uuid: str


class _Listing(msgspec.Struct):
    resource_providers: list[_Listed]


class _Held(msgspec.Struct):
    resources: dict[str, int]


class _Allocations(msgspec.Struct):
    allocations: dict[str, _Held]
    consumer_generation: int | None = None


def _about_different_consumers(
    claims: list[ConsumerClaim],
) -> tuple[list[ConsumerClaim], list[ConsumerClaim]]:
    """A request takes one claim a consumer; a second one about the same has to wait for the first."""
    together: dict[str, ConsumerClaim] = {}
    later = []
    for claim in claims:
        if claim.consumer_uuid in together:
            later.append(claim)
        else:
            together[claim.consumer_uuid] = claim
    return list(together.values()), later


def _in_order(
    claims: list[ConsumerClaim],
    first: list[PlacementRefusedError | None],
    second: list[PlacementRefusedError | None],
    later: list[ConsumerClaim],
) -> list[PlacementRefusedError | None]:
    late = {id(claim) for claim in later}
    outcomes, others = iter(first), iter(second)
    return [next(others) if id(claim) in late else next(outcomes) for claim in claims]
