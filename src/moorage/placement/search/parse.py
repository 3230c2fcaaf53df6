"""Query strings into requests, at the microversion that they were written for."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

from oslo_utils.uuidutils import is_uuid_like

from moorage.placement.microversions import Microversion
from moorage.placement.search.providers import ProviderFilters
from moorage.placement.search.request import GroupPolicy, RequestGroup, SearchRequest

Version = tuple[int, int]
Pairs = Sequence[tuple[str, str]]

_KEY = re.compile(r"^(resources|required|member_of|in_tree)([1-9][0-9]*)?$")
_KEY_1_33 = re.compile(r"^(resources|required|member_of|in_tree)([a-zA-Z0-9_-]{1,64})?$")
_MAX_AMOUNT = 2**63 - 1
_NUMBER = re.compile(r"^[1-9][0-9]{0,17}$")
_MOST_GROUPS = 256
"""Of one request: what a server could sensibly need, and few enough that a search for them has an end."""

UNDEFINED = "placement.undefined_code"
BAD_VALUE = "placement.query.bad_value"
MISSING_VALUE = "placement.query.missing_value"
DUPLICATE_KEY = "placement.query.duplicate_key"


class QueryError(ValueError):
    """A query string that makes no sense; `code` tells programs which way."""

    def __init__(self, detail: str, code: str = UNDEFINED) -> None:
        super().__init__(detail)
        self.code = code


def candidates_request(pairs: Pairs, version: Version) -> SearchRequest:
    """The request of `GET /allocation_candidates`; its parameters' names have passed the schema."""
    limit = _limit(_values(pairs, "limit"))
    policy = _group_policy(_values(pairs, "group_policy"))
    root_required, root_forbidden = _root_traits(_values(pairs, "root_required"))
    same_subtrees = _same_subtrees(_values(pairs, "same_subtree"))
    groups = _groups(pairs, version)
    if version >= Microversion.SAME_SUBTREE:
        _check_resourceless(groups, same_subtrees)
    else:
        _check_orphans(groups)
    if version >= Microversion.FORBIDDEN_TRAITS:
        _check_conflicts(groups)
    if policy is None and sum(group.granular for group in groups.values()) > 1:
        raise QueryError(
            'The "group_policy" parameter is required when specifying more than one "resources{N}" parameter.'
        )
    return SearchRequest(
        groups=tuple(groups.values()),
        limit=limit,
        group_policy=policy,
        root_required=root_required,
        root_forbidden=root_forbidden,
        same_subtrees=same_subtrees,
        nested=version >= Microversion.CANDIDATES_FROM_TREES,
    )


def provider_filters(pairs: Pairs, version: Version) -> ProviderFilters:
    last = dict(pairs)
    group = RequestGroup()
    if "member_of" in last:
        required, forbidden_aggregates = _member_of(_values(pairs, "member_of"), "", version)
        group = replace(group, member_of=required, forbidden_aggregates=forbidden_aggregates)
    if "required" in last:
        traits, forbidden = _traits(_values(pairs, "required"), version)
        group = replace(group, required_traits=traits, forbidden_traits=forbidden)
    if "resources" in last:
        group = replace(group, resources=resources(last["resources"]))
    if last.get("in_tree"):
        group = replace(group, in_tree=last["in_tree"])
    return ProviderFilters(group, last.get("name") or None, last.get("uuid") or None)


def resources(value: str) -> dict[str, int]:
    """`VCPU:2,MEMORY_MB:1024` as amounts by class."""
    form = (
        "Badly formed resources parameter. Expected resources query string parameter in form: "
        "?resources=VCPU:2,MEMORY_MB:1024. Got: "
    )
    if not value.strip():
        raise QueryError(f"{form}empty string.")
    amounts = {}
    for part in value.split(","):
        name, colon, text = part.partition(":")
        if not colon or ":" in text:
            raise QueryError(f"{form}{part}.")
        try:
            amount = int(text)
        except ValueError:
            raise QueryError(
                f"Requested resource {name} expected positive integer amount. Got: {text}."
            ) from None
        if amount < 1:
            raise QueryError(f"Requested resource {name} requires amount >= 1. Got: {amount}.")
        amounts[name] = min(amount, _MAX_AMOUNT)
    return amounts


def _limit(values: list[str]) -> int | None:
    """Of several the first counts, but the schema has seen the last one only."""
    if not values:
        return None
    if not _NUMBER.match(values[0]):
        raise QueryError(f"Invalid query string parameters: '{values[0]}' is no limit", BAD_VALUE)
    return int(values[0])


def _group_policy(values: list[str]) -> GroupPolicy | None:
    """Of several the first counts, and the schema has seen the last one only: what is nonsense isolates
    nothing, as in the reference."""
    if not values or not values[0]:
        return None
    return GroupPolicy.ISOLATE if values[0] == GroupPolicy.ISOLATE.value else GroupPolicy.NONE


def _values(pairs: Pairs, name: str) -> list[str]:
    return [value for key, value in pairs if key == name]


def _groups(pairs: Pairs, version: Version) -> dict[str, RequestGroup]:
    """Each parameter is read once, with all its values: a request may have thousands."""
    pattern = _KEY_1_33 if version >= Microversion.NAMED_REQUEST_GROUPS else _KEY
    by_key: dict[str, list[str]] = {}
    for key, value in pairs:
        by_key.setdefault(key, []).append(value)
    groups: dict[str, RequestGroup] = {}
    for key, values in by_key.items():
        match = pattern.match(key)
        if not match:
            continue
        kind, suffix = match[1], match[2] or ""
        group = groups.get(suffix, RequestGroup(suffix))
        if kind == "resources":
            group = replace(group, resources=[resources(value) for value in values][-1])
        elif kind == "required":
            traits, forbidden = _traits(values, version)
            group = replace(group, required_traits=traits, forbidden_traits=forbidden)
        elif kind == "member_of":
            required, forbidden = _member_of(values, suffix, version)
            group = replace(group, member_of=required, forbidden_aggregates=forbidden)
        else:
            group = replace(group, in_tree=[_in_tree(value) for value in values][-1])
        groups[suffix] = group
        if len(groups) > _MOST_GROUPS:
            raise QueryError(f"A request may have {_MOST_GROUPS} request groups.", BAD_VALUE)
    return groups


def _in_tree(value: str) -> str:
    uuid = value.strip()
    if not is_uuid_like(uuid):
        raise QueryError(
            "Invalid query string parameters: Expected 'in_tree' parameter to be a format of uuid. "
            f"Got: {value}"
        )
    return uuid


def _traits(values: list[str], version: Version) -> tuple[tuple[frozenset[str], ...], frozenset[str]]:
    if version < Microversion.ANY_OF_TRAITS:
        values = values[-1:]  # repeating it had no meaning before
    required: list[frozenset[str]] = []
    forbidden: set[str] = set()
    for value in values:
        if value.startswith("in:"):
            required.append(_any_traits(value, version))
        else:
            more, not_these = _plain_traits(value, forbidding=version >= Microversion.FORBIDDEN_TRAITS)
            required += [frozenset({name}) for name in more]
            forbidden |= not_these
    return tuple(dict.fromkeys(required)), frozenset(forbidden)


def _any_traits(value: str, version: Version) -> frozenset[str]:
    complaint = "Invalid query string parameters: "
    if version < Microversion.ANY_OF_TRAITS:
        raise QueryError(
            f"{complaint}The format 'in:HW_CPU_X86_VMX,CUSTOM_MAGIC' only supported since microversion 1.39. "
            f"Got: {value}"
        )
    names = frozenset(name.strip() for name in value[3:].split(","))
    if "" in names:
        raise QueryError(
            f"{complaint}Expected 'required' parameter value of the form: in:HW_CPU_X86_VMX,CUSTOM_MAGIC. "
            f"Got an empty trait in: {value}"
        )
    if any(name.startswith("!") for name in names):
        raise QueryError(
            f"{complaint}The format 'in:HW_CPU_X86_VMX,CUSTOM_MAGIC' does not support forbidden traits. "
            f"Got: {value}"
        )
    return names


def _plain_traits(value: str, *, forbidding: bool) -> tuple[list[str], frozenset[str]]:
    names = [name.strip() for name in value.split(",")]
    forbidden = frozenset(name.lstrip("!") for name in names if name.startswith("!"))
    expected = "Invalid query string parameters: Expected 'required' parameter value of the form: "
    if "" in names or "" in forbidden:
        form = "HW_CPU_X86_VMX,!CUSTOM_MAGIC" if forbidding else "HW_CPU_X86_VMX,CUSTOM_MAGIC"
        raise QueryError(f"{expected}{form}. Got an empty trait in: {value}")
    if forbidden and not forbidding:
        raise QueryError(f"{expected}HW_CPU_X86_VMX,CUSTOM_MAGIC. Got: {value}")
    return [name for name in names if not name.startswith("!")], forbidden


def _root_traits(values: list[str]) -> tuple[frozenset[str], frozenset[str]]:
    if not values:
        return frozenset(), frozenset()
    if len(values) > 1:
        raise QueryError("Query parameter 'root_required' may be specified only once.", DUPLICATE_KEY)
    if values[0].startswith("in:"):
        _any_traits(values[0], (0, 0))  # root_required never took this form
    names, forbidden = _plain_traits(values[0], forbidding=True)
    both = forbidden & set(names)
    if both:
        raise QueryError(
            f"Conflicting required and forbidden traits found in root_required: {', '.join(sorted(both))}",
            BAD_VALUE,
        )
    return frozenset(names), forbidden


def _member_of(
    values: list[str], suffix: str, version: Version
) -> tuple[tuple[frozenset[str], ...], frozenset[str]]:
    if version < Microversion.REPEATED_MEMBER_OF and len(values) > 1:
        raise QueryError(f"Multiple member_of{suffix} parameters are not supported")
    required = []
    forbidden: set[str] = set()
    for value in values:
        negative = value.startswith("!")
        uuids = _aggregates(value)
        if not negative:
            required.append(uuids)
        elif version < Microversion.FORBIDDEN_AGGREGATES:
            raise QueryError(
                f"Forbidden member_of{suffix} parameters are not supported in the specified microversion"
            )
        else:
            forbidden |= uuids
    return tuple(dict.fromkeys(required)), frozenset(forbidden)


def _aggregates(value: str) -> frozenset[str]:
    positive = value.removeprefix("!")
    if positive.startswith("in:"):
        uuids = positive[3:].split(",")
    elif "," in value:
        raise QueryError(
            "Multiple values for 'member_of' must be prefixed with the 'in:' or '!in:' keyword using the "
            f"valid microversion. Got: {value}"
        )
    else:
        uuids = [positive]
    for uuid in uuids:
        if not is_uuid_like(uuid):
            raise QueryError(
                "Invalid query string parameters: Expected 'member_of' parameter to contain valid UUID(s). "
                f"Got: {uuid}"
            )
    return frozenset(uuids)


def _same_subtrees(values: list[str]) -> tuple[frozenset[str], ...]:
    sets = tuple(frozenset(suffix.strip() for suffix in value.split(",")) for value in values)
    if any("" in suffixes for suffixes in sets):
        raise QueryError("Empty string (unsuffixed group) can not be specified in `same_subtree` ", BAD_VALUE)
    return sets


def _check_resourceless(groups: dict[str, RequestGroup], same_subtrees: tuple[frozenset[str], ...]) -> None:
    resourceless = [suffix for suffix, group in groups.items() if not group.resources]
    if len(resourceless) == len(groups):
        raise QueryError("There must be at least one resources or resources[$S] parameter.", MISSING_VALUE)
    related = frozenset().union(*same_subtrees)
    bad = [suffix for suffix in resourceless if suffix not in related]
    if bad:
        raise QueryError(
            "Resourceless suffixed group request should be specified in `same_subtree` query param: "
            f"bad group(s) - {bad}.",
            BAD_VALUE,
        )
    unknown = sorted(related - set(groups))
    if unknown:
        raise QueryError(
            f"Real suffixes should be specified in `same_subtree`: {unknown} not found in {list(groups)}.",
            BAD_VALUE,
        )


def _check_orphans(groups: dict[str, RequestGroup]) -> None:
    """Before 1.36 nothing may be asked of a provider that gives no resources."""
    bare = {suffix: group for suffix, group in groups.items() if not group.resources}
    traits = [f"required{suffix}" for suffix, group in bare.items() if group.required_traits]
    if traits:
        raise QueryError(
            "All traits parameters must be associated with resources.  "
            f"Found the following orphaned traits keys: {', '.join(traits)}"
        )
    members = [
        f"member_of{suffix}"
        for suffix, group in bare.items()
        if group.member_of or group.forbidden_aggregates
    ]
    if members:
        raise QueryError(
            "All member_of parameters must be associated with resources. "
            f"Found the following orphaned member_of keys: {', '.join(members)}"
        )
    if bare:
        raise QueryError("All request groups must specify resources.")
    if not groups:
        raise QueryError("At least one request group (`resources` or `resources{$S}`) is required.")


def _check_conflicts(groups: dict[str, RequestGroup]) -> None:
    conflicts = sorted(
        f"required{suffix}: ({', '.join(sorted(names))})"
        for suffix, group in groups.items()
        for names in group.required_traits
        if names <= group.forbidden_traits
    )
    if conflicts:
        raise QueryError(
            "Conflicting required and forbidden traits found in the following traits keys: "
            f"{', '.join(conflicts)}"
        )
