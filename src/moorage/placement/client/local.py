"""Placement in the same process: asked directly, with no HTTP and no JSON in between."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import msgspec
import sqlalchemy as sa
from sqlalchemy.engine import Connection

from moorage.placement import report, reshape
from moorage.placement.claims import ANY, Claim
from moorage.placement.client.chunks import in_chunks
from moorage.placement.client.contract import (
    MICROVERSION,
    NODE_TRAIT,
    AllocationRequest,
    Candidates,
    ConsumerChangedError,
    ConsumerClaim,
    Miscount,
    PlacementRefusedError,
    PlacementUnavailableError,
    ProviderAggregates,
    ProviderInventory,
    ProviderSummary,
    ReportedProvider,
    TreeProvider,
    TreeUsage,
    Written,
    ignore,
)
from moorage.placement.client.telling import told
from moorage.placement.errors import (
    ClassNotFound,
    ConflictError,
    ConsumerGenerationConflict,
    PlacementError,
    ProviderNotFound,
    TraitNotFound,
)
from moorage.placement.fleet.fleet import Fleet
from moorage.placement.fleet.names import UnknownClassError, UnknownTraitError
from moorage.placement.report import Report
from moorage.placement.reshape import Reshaped
from moorage.placement.search import parse
from moorage.placement.search.candidates import find_candidates
from moorage.placement.search.providers import find_providers
from moorage.placement.search.request import SearchRequest
from moorage.placement.search.result import SearchResult
from moorage.placement.search.why import explain
from moorage.placement.service import PlacementService
from moorage.placement.store import (
    allocations,
    counters,
    inventories,
    memberships,
    names,
    providers,
    reports,
    traits,
)
from moorage.placement.store.allocations import UNKNOWN_TYPE, Allocation, Consumer
from moorage.placement.store.inventories import Inventory
from moorage.placement.store.memberships import Membership


class LocalPlacement:
    """A `PlacementClient` on the service object itself."""

    def __init__(self, service: PlacementService) -> None:
        self._service = service
        self._summaries = _Summaries()

    def candidates(self, query: Sequence[tuple[str, str]]) -> Candidates:
        with _answering(), self._service.picture() as (fleet, _):
            result = find_candidates(fleet, _request(query), self._service.settings.search)
            return Candidates(_allocation_requests(fleet, result), self._summaries.of(fleet, result))

    def claim(self, claims: Sequence[ConsumerClaim]) -> list[PlacementRefusedError | None]:
        requests = [[_claim(claim)] for claim in claims]
        return [_refusal(error) for error in self._service.claims.submit_many(requests)]

    def claim_together(self, claims: Sequence[ConsumerClaim]) -> PlacementRefusedError | None:
        (error,) = self._service.claims.submit_many([[_claim(claim) for claim in claims]])
        return _refusal(error)

    def release(self, consumer_uuids: Sequence[str]) -> None:
        requests = [[Claim(uuid, "", "", {}, generation=ANY)] for uuid in dict.fromkeys(consumer_uuids)]
        for error in self._service.claims.submit_many(requests):
            refusal = _refusal(error)
            if refusal is not None:
                raise refusal

    def allocations(self, consumer_uuid: str) -> tuple[dict[str, dict[str, int]], int | None]:
        with _answering(), self._service.database.read() as connection:
            found = allocations.of_consumer(connection, consumer_uuid)
        held: dict[str, dict[str, int]] = {}
        for allocation in found:
            held.setdefault(allocation.provider_uuid, {})[allocation.class_name] = allocation.used
        return held, found[0].consumer_generation if found else None

    def tree_has(self, provider_uuid: str, traits: Collection[str]) -> bool:
        query = [("in_tree", provider_uuid)]
        if traits:
            query.append(("required", ",".join(sorted(traits))))
        return self._is_any(query)

    def is_among(self, provider_uuid: str, member_of: Collection[str]) -> bool:
        return self._is_any([("uuid", provider_uuid), *(("member_of", value) for value in member_of)])

    def _is_any(self, query: Sequence[tuple[str, str]]) -> bool:
        with _answering(), self._service.picture() as (fleet, _):
            return bool(find_providers(fleet, parse.provider_filters(query, MICROVERSION)))

    def why(self, query: Sequence[tuple[str, str]]) -> Mapping[str, Any] | None:
        with _answering(), self._service.picture() as (fleet, _):
            return told(explain(fleet, _request(query)))

    def report(self, providers: Sequence[ReportedProvider]) -> None:
        for chunk in in_chunks(providers):
            with _answering():
                self._report(chunk)

    def _report(self, chunk: list[ReportedProvider]) -> None:
        given = _as_report(chunk)
        report.check(given)
        service = self._service
        with service.picture() as (fleet, _), service.database.read() as connection:
            changed = report.seems_changed(connection, fleet, given.providers)
        if changed:
            service.database.transact(lambda connection: reports.write(connection, changed))

    def tree(self, root_uuid: str) -> list[TreeProvider]:
        with _answering(), self._service.database.snapshot() as connection:
            return [
                TreeProvider(
                    provider.uuid,
                    provider.name,
                    provider.generation,
                    provider.parent_uuid,
                    {
                        name: msgspec.convert(inventory.values(), ProviderInventory)
                        for name, inventory in inventories.of_provider(connection, provider.id).items()
                    },
                )
                for provider in providers.in_tree(connection, root_uuid)
            ]

    def tree_usages(self, root_uuids: Collection[str]) -> dict[str, TreeUsage]:
        with _answering(), self._service.picture() as (fleet, _):
            slots = {uuid: fleet.slot_of_uuid(uuid) for uuid in root_uuids}
            return {uuid: _tree_usage(fleet, slot) for uuid, slot in slots.items() if slot is not None}

    def consumers(self, provider_uuids: Collection[str]) -> list[ConsumerClaim]:
        with _answering(), self._service.database.snapshot() as connection:
            found = allocations.consumers_of(connection, provider_uuids)
            return [
                _claim_of(consumer, allocations.of_consumer(connection, consumer.uuid)) for consumer in found
            ]

    def reshape(self, providers: Sequence[TreeProvider], claims: Sequence[ConsumerClaim]) -> None:
        wanted = {
            provider.uuid: Reshaped(
                provider.generation,
                {
                    name: Inventory(**msgspec.structs.asdict(one))
                    for name, one in provider.inventories.items()
                },
            )
            for provider in providers
        }
        request = [_claim(claim) for claim in claims]
        with _answering():
            self._service.database.transact(lambda connection: _reshape(connection, wanted, request))

    def nodes(self) -> set[str]:
        query = [("required", NODE_TRAIT)]
        with _answering(), self._service.picture() as (fleet, _):
            found = find_providers(fleet, parse.provider_filters(query, MICROVERSION))
            return {fleet.uuids[slot] for slot in found}

    def miscounts(self, provider_uuid: str | None = None) -> list[Miscount]:
        with _answering(), self._service.database.read() as connection:
            return [Miscount(*row) for row in counters.wrong(connection, provider_uuid)]

    def recount(self, provider_uuid: str) -> None:
        with _answering():
            self._service.database.transact(lambda connection: counters.recount(connection, provider_uuid))

    def set_trait(self, provider_uuids: Collection[str], trait: str, *, present: bool) -> None:
        with _answering():
            self._service.database.transact(
                lambda connection: traits.mark(connection, provider_uuids, trait, present=present)
            )

    def delete_provider(self, uuid: str) -> None:
        with _answering():
            try:
                self._service.database.transact(lambda connection: providers.delete(connection, uuid))
            except ProviderNotFound:
                return

    def members(self, aggregate_uuids: Collection[str]) -> dict[str, set[str]]:
        with _answering(), self._service.database.read() as connection:
            found = memberships.members(connection, aggregate_uuids)
        return {uuid: set(inside) for uuid, inside in found.items()}

    def aggregates(self, provider_uuids: Collection[str]) -> dict[str, ProviderAggregates]:
        with _answering(), self._service.database.snapshot() as connection:
            found = memberships.of_providers(connection, provider_uuids)
        return {uuid: ProviderAggregates(uuid, *membership) for uuid, membership in found.items()}

    def set_aggregates(
        self, wanted: Sequence[ProviderAggregates], written: Written = ignore
    ) -> dict[str, PlacementRefusedError]:
        changes = {one.uuid: Membership(one.generation, one.aggregates) for one in wanted}
        with _answering():
            refused = self._service.database.transact(
                lambda connection: memberships.replace(connection, changes)
            )
        for uuid in changes.keys() - refused.keys():
            written(uuid)
        return {
            uuid: PlacementRefusedError(409 if isinstance(error, ConflictError) else 404, str(error))
            for uuid, error in refused.items()
        }


def _claim(claim: ConsumerClaim) -> Claim:
    return Claim(
        consumer_uuid=claim.consumer_uuid,
        project_id=claim.project_id,
        user_id=claim.user_id,
        resources=claim.allocations,
        generation=claim.consumer_generation,
        type_name=claim.consumer_type,
    )


def _claim_of(consumer: Consumer, held: Sequence[Allocation]) -> ConsumerClaim:
    amounts: dict[str, dict[str, int]] = {}
    for allocation in held:
        amounts.setdefault(allocation.provider_uuid, {})[allocation.class_name] = allocation.used
    return ConsumerClaim(
        consumer_uuid=consumer.uuid,
        allocations=amounts,
        project_id=consumer.project_id,
        user_id=consumer.user_id,
        consumer_type="INSTANCE" if consumer.type_name == UNKNOWN_TYPE else consumer.type_name,
        consumer_generation=consumer.generation,
    )


def _reshape(connection: Connection, wanted: Mapping[str, Reshaped], request: Sequence[Claim]) -> None:
    for name in sorted({name for target in wanted.values() for name in target.inventories}):
        if names.is_custom(name):
            names.ensure_class(connection, name)
    reshape.reshape(connection, wanted, request)


class _Summaries:
    """What candidates say of providers, kept until a provider changes: most don't between two questions.

    The kept objects are handed out again and again, so nobody may change them.
    """

    def __init__(self) -> None:
        self._basis: tuple[Fleet, int] | None = None
        self._kept: dict[int, tuple[int, ProviderSummary]] = {}

    def of(self, fleet: Fleet, result: SearchResult) -> dict[str, ProviderSummary]:
        if self._basis is None or self._basis[0] is not fleet or self._basis[1] != fleet.names.renames:
            self._basis = (fleet, fleet.names.renames)
            self._kept.clear()
        return {fleet.uuids[slot]: self._summary(fleet, slot) for slot in result.summarised}

    def _summary(self, fleet: Fleet, slot: int) -> ProviderSummary:
        stamp = fleet.stamps[slot]
        kept = self._kept.get(slot)
        if kept is None or kept[0] != stamp:
            kept = self._kept[slot] = (stamp, _summary(fleet, slot))
        return kept[1]


def _summary(fleet: Fleet, slot: int) -> ProviderSummary:
    parent = fleet.parent_of(slot)
    return ProviderSummary(
        resources={
            fleet.names.class_name(class_id): {"capacity": capacity, "used": used}
            for class_id, (capacity, used) in fleet.inventory(slot).items()
        },
        traits=[fleet.names.trait_name(trait_id) for trait_id in fleet.traits_of[slot]],
        parent_provider_uuid=None if parent is None else fleet.uuids[parent],
        root_provider_uuid=fleet.uuids[fleet.root_of(slot)],
    )


def _tree_usage(fleet: Fleet, root: int) -> TreeUsage:
    capacity: Counter[str] = Counter()
    used: Counter[str] = Counter()
    for slot in fleet.tree(root):
        for class_id, (has, uses) in fleet.inventory(slot).items():
            capacity[fleet.names.class_name(class_id)] += has
            used[fleet.names.class_name(class_id)] += uses
    return TreeUsage(dict(capacity), dict(used))


def _allocation_requests(fleet: Fleet, result: SearchResult) -> list[AllocationRequest]:
    uuids = fleet.uuids
    return [
        AllocationRequest(
            {uuids[slot]: {"resources": held} for slot, held in candidate.allocations.items()},
            {suffix: [uuids[slot] for slot in slots] for suffix, slots in candidate.mappings.items()},
        )
        for candidate in result.candidates
    ]


def _request(query: Sequence[tuple[str, str]]) -> SearchRequest:
    return parse.candidates_request(query, MICROVERSION)


def _as_report(chunk: list[ReportedProvider]) -> Report:
    """Checked as a body from outside would be; what is None is left out, and so stays as it is."""
    fields = {"providers": [msgspec.to_builtins(provider) for provider in chunk]}
    return msgspec.convert(fields, Report)


@contextmanager
def _answering() -> Iterator[None]:
    """Errors in the words of the contract."""
    try:
        yield
    except (parse.QueryError, msgspec.ValidationError) as error:
        raise PlacementRefusedError(400, str(error)) from error
    except UnknownClassError as error:
        raise _told(ClassNotFound(error.name)) from error
    except UnknownTraitError as error:
        raise _told(TraitNotFound(error.name)) from error
    except PlacementError as error:
        raise _told(error) from error
    except sa.exc.DBAPIError as error:
        raise PlacementUnavailableError(f"Placement's database does not answer: {error}") from error


def _refusal(error: Exception | None) -> PlacementRefusedError | None:
    """What became of a claim; what is no refusal is raised, since nobody knows what is true then."""
    if error is None:
        return None
    if isinstance(error, PlacementError):
        return _told(error)
    raise PlacementUnavailableError(f"the claim could not be written: {error}") from error


def _told(error: PlacementError) -> PlacementRefusedError:
    kind = ConsumerChangedError if isinstance(error, ConsumerGenerationConflict) else PlacementRefusedError
    return kind(409 if isinstance(error, ConflictError) else 400, str(error))
