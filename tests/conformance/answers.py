"""When two answers are the same: order, timestamps and request ids aside."""

from __future__ import annotations

import json
from collections import Counter
from typing import Any

from tests.conformance.fleets import SHARING
from tests.conformance.queries import CANDIDATES, Query
from tests.support.wire import Reply, Wire

SAME_BOUND = 5000
"""Beyond this many candidates each service may stop where it likes."""


def differences(query: Query, reference: Wire, ours: Wire) -> list[str]:
    """What an operator who moves from the reference to us would notice."""
    expected = reference.get(query.target, query.version)
    found = ours.get(query.target, query.version)
    if expected.status >= 500:
        return [] if 400 <= found.status < 500 else [f"status {found.status} where the reference fails"]
    if found.status != expected.status:
        return [f"status {found.status} instead of {expected.status}: {found.body!r} / {expected.body!r}"]
    if expected.status != 200:
        return error_differences(found, expected)
    differing = header_differences(found, expected)
    if query.path != CANDIDATES:
        return differing + unequal("body", normal(found.json()), normal(expected.json()))
    if not query.limit and len(expected.json()["allocation_requests"]) <= SAME_BOUND:
        return differing + same_candidates(query, found.json(), expected.json())
    everything = reference.get(query.without_limit().target, query.version).json()
    return differing + part_of_candidates(query, found.json(), expected.json(), everything)


def error_differences(found: Reply, expected: Reply) -> list[str]:
    """The words may differ; what a program reads may not."""
    if not expected.body:
        return unequal("body", found.body, expected.body)
    ours, theirs = (
        [_without_words(error) for error in reply.json()["errors"]] for reply in (found, expected)
    )
    differing = unequal("errors", ours, theirs)
    return [*differing, f"in words: {found.body!r} / {expected.body!r}"] if differing else []


def header_differences(found: Reply, expected: Reply) -> list[str]:
    names = ("content-type", "openstack-api-version", "vary", "cache-control", "allow", "location")
    differing = []
    for name in names:
        ours, theirs = found.headers.get(name), expected.headers.get(name)
        if name == "location" and ours and theirs:
            ours, theirs = (value.rpartition("/")[2] for value in (ours, theirs))
        differing += unequal(name, _media_type(ours), _media_type(theirs))
    # The reference leaves it out of an empty list of inventories; we always say when we looked.
    if "last-modified" in expected.headers and "last-modified" not in found.headers:
        differing.append("last-modified is missing")
    return differing


def same_candidates(query: Query, ours: Any, theirs: Any) -> list[str]:
    """As often, too: where mappings are not shown yet, two candidates can look alike."""
    mine, reference = Counter(candidate_keys(ours)), Counter(candidate_keys(theirs))
    extra = mine - reference
    overlooked = [key for key in extra if is_overlooked(query, json.loads(key), ours["provider_summaries"])]
    differing = unequal("candidates too many", sorted(set(extra) - set(overlooked)), [])
    differing += unequal("candidates missing", sorted((reference - mine).elements()), [])
    summaries, expected = normal(ours["provider_summaries"]), normal(theirs["provider_summaries"])
    if overlooked:
        summaries = {uuid: summary for uuid, summary in summaries.items() if uuid in expected}
    return differing + unequal("summaries", summaries, expected)


def part_of_candidates(query: Query, ours: Any, limited: Any, everything: Any) -> list[str]:
    """With a limit each may choose; the number and the set to choose from are given."""
    mine, possible = Counter(candidate_keys(ours)), Counter(candidate_keys(everything))
    extra = mine - possible
    overlooked = [key for key in extra if is_overlooked(query, json.loads(key), ours["provider_summaries"])]
    differing = unequal("candidates too many", sorted(set(extra) - set(overlooked)), [])
    summaries = normal(everything["provider_summaries"])
    if not overlooked:
        differing += unequal("number of candidates", mine.total(), len(limited["allocation_requests"]))
        for uuid, summary in normal(ours["provider_summaries"]).items():
            differing += unequal(f"summary of {uuid}", summary, summaries.get(uuid))
    used = {uuid for request in ours["allocation_requests"] for uuid in allocations_of(request)}
    return differing + unequal("unsummarised providers", sorted(used - set(ours["provider_summaries"])), [])


def is_overlooked(query: Query, request: Any, summaries: Any) -> bool:
    """A candidate that the reference loses: see docs/decisions/0003-reference-differences.md.

    A plain group that sharing providers satisfy alone is the same for every tree that they share with;
    the reference keeps it for one of these trees and forgets the others before it merges the groups.
    """
    if not query.plain_classes or not query.granular:
        return False
    shared: set[str] = set()
    for uuid, amounts in allocations_of(request).items():
        if SHARING in summaries[uuid]["traits"]:
            shared |= set(amounts)
    return query.plain_classes <= shared


def allocations_of(request: Any) -> dict[str, dict[str, int]]:
    allocations = request["allocations"]
    if isinstance(allocations, dict):
        return {uuid: allocation["resources"] for uuid, allocation in allocations.items()}
    return {one["resource_provider"]["uuid"]: one["resources"] for one in allocations}


def candidate_keys(body: Any) -> list[str]:
    return [json.dumps(normal(request), sort_keys=True) for request in body["allocation_requests"]]


def normal(value: Any) -> Any:
    """Lists in this API are sets, but for none that we know of."""
    if isinstance(value, dict):
        return {key: normal(item) for key, item in value.items()}
    if isinstance(value, list):
        return sorted((normal(item) for item in value), key=lambda item: json.dumps(item, sort_keys=True))
    return value


def unequal(what: str, ours: Any, theirs: Any) -> list[str]:
    return [] if ours == theirs else [f"{what}:\n      ours:      {ours!r}\n      reference: {theirs!r}"]


def _without_words(error: dict[str, Any]) -> dict[str, Any]:
    """The official client shows the last line of a detail: how many there are is no matter of words."""
    lines = error["detail"].count("\n") + 1
    kept = {key: value for key, value in error.items() if key not in ("detail", "request_id")}
    return {**kept, "lines of detail": lines}


def _media_type(value: str | None) -> str | None:
    """Parameters such as the charset are the web framework's business."""
    return value.split(";")[0].strip() if value else value
