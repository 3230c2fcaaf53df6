"""Telling a trace: one sentence for the user of a server, and the whole story for its operator."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby

import os_traits

from moorage.scheduler import own_aggregate
from moorage.scheduler.filters.contract import ReasonKind
from moorage.scheduler.narrowing import NarrowedBy, Narrowing
from moorage.scheduler.trace import Attempt, Emptiness, Exclusion, NearMiss, Place, Ranked, Trace

NO_VALID_HOST = "No valid host was found"
_SHOWN = 5
"""So many hosts of the ranking are shown."""

_REASONS = {kind.value: kind for kind in ReasonKind}
_SINGULAR = {
    "are": "is",
    "were": "was",
    "have": "has",
    "belong": "belongs",
    "don't": "doesn't",
    "take": "takes",
}

_CONDITIONS = {
    "inventory": "don't have {name}",
    "room": "don't have {amount} {name} free",
    "min_unit": "don't give as little as {amount} {name}",
    "max_unit": "don't give as much as {amount} {name} to one server",
    "step_size": "don't give {name} in steps that make {amount}",
    "required_traits": "don't have what is required ({subject})",
    "forbidden_traits": "have what is forbidden ({subject})",
    "root_required": "don't have what is required ({subject})",
    "root_forbidden": "are disabled or have what is forbidden ({subject})",
    "member_of": "are in none of the aggregates that it may go to",
    "forbidden_aggregates": "are in an aggregate that it may not go to",
    "in_tree": "are not the host that it has to go to",
    "group_policy": "have too few devices to give each group its own",
    "same_subtree": "don't have what it needs close enough together",
    "together": "don't have all that it needs together",
}


def sentence(trace: Trace) -> str:
    """What a user is told of a server that got no host. Names no hosts: these are the operator's business."""
    if trace.problem:
        return f"{NO_VALID_HOST}: {trace.problem}"
    if trace.attempts:
        return _after_attempts(trace)
    if trace.nodes:
        return f"{NO_VALID_HOST}: of {_hosts(trace.nodes)} with enough room, {_all_reasons(trace.excluded)}."
    if trace.why is None:
        return f"{NO_VALID_HOST}: none has all that the server asks for."
    if not trace.why.trees:
        return f"{NO_VALID_HOST}: there are no hosts."
    of_host = any(own_aggregate.is_asked_for(value) for _, value in trace.query)
    certain = not trace.why.kind if of_host else any(name.startswith("in_tree") for name, _ in trace.query)
    if trace.why.nearest and certain:
        failures = "; ".join(trace.why.nearest[0].failures)
        return f"{NO_VALID_HOST}: the host that it has to go to does not fit ({failures})."
    if of_host and trace.why.allowed is not None:
        return f"{NO_VALID_HOST}: {_emptiness_of_host(trace.why, trace.why.allowed)}."
    return f"{NO_VALID_HOST}: {_emptiness(trace.why, trace.narrowings)}."


def _after_attempts(trace: Trace) -> str:
    count = len({attempt.place.node_uuid for attempt in trace.attempts})
    tried = "1 host was" if count == 1 else f"{count} hosts were"
    failed = [attempt.detail for attempt in trace.attempts if attempt.outcome == "failed"]
    if not failed:
        return f"{NO_VALID_HOST}: {tried} tried, but other servers took the room first."
    return f"{NO_VALID_HOST}: {tried} tried, without success{f' ({failed[-1]})' if failed[-1] else ''}."


def _all_reasons(excluded: list[Exclusion]) -> str:
    counts: dict[str, int] = {}
    for exclusion in excluded:
        for kind, count in exclusion.kinds.items():
            counts[kind] = counts.get(kind, 0) + count
    ordered = sorted(counts.items(), key=_most_first)
    parts = [f"{count} {_agreeing(count, _REASONS[kind].of_several)}" for kind, count in ordered]
    return _listed(parts)


def _most_first(entry: tuple[str, int]) -> tuple[int, str]:
    return -entry[1], entry[0]


def _emptiness(why: Emptiness, narrowings: Sequence[Narrowing]) -> str:
    if not why.kind:
        return "none has all that the server asks for"
    words = _agreeing(why.excluded, _on_whose_behalf(why, narrowings) or condition(why.kind, why.subject))
    count = why.trees if why.allowed is None else why.allowed
    where = "" if why.allowed is None else f" {_where(narrowings)}"
    excluded = f"{why.excluded} of {_hosts(count)}{where} {words}"
    return excluded if why.excluded == count else f"{excluded}, and the others lack something else"


def _emptiness_of_host(why: Emptiness, nodes: int) -> str:
    words = _agreeing(why.excluded, condition(why.kind, why.subject))
    return f"of {_many(nodes, 'node')} of the host that it has to go to, {why.excluded} {words}"


def _where(narrowings: Sequence[Narrowing]) -> str:
    """Hosts that no prefilter excludes."""
    if len(narrowings) == 1 and narrowings[0].by in (NarrowedBy.ZONE, NarrowedBy.DEFAULT_ZONE):
        return f"in the availability zone '{narrowings[0].subject}'"
    return "that it may go to"


def _on_whose_behalf(why: Emptiness, narrowings: Sequence[Narrowing]) -> str | None:
    """What a condition on aggregates is about, if it comes from one prefilter."""
    if why.kind not in ("member_of", "forbidden_aggregates"):
        return None
    fitting = [one for one in narrowings if one.is_inside() == (why.kind == "member_of")]
    return fitting[0].unmet() if len(fitting) == 1 else None


def condition(kind: str, subject: str) -> str:
    """One condition of Placement's, as something that hosts do or don't have."""
    if (kind, subject) == ("root_forbidden", os_traits.COMPUTE_STATUS_DISABLED):
        return "are disabled"
    name, _, amount = subject.partition(":")
    words = _CONDITIONS.get(kind)
    if words is None:
        return f"don't meet {kind.replace('_', ' ')} {subject}".rstrip()
    return words.format(name=name, amount=amount, subject=subject)


def story(trace: Trace) -> str:
    """The whole decision in the order in which it happened, for an operator."""
    return "\n".join(_lines(trace))


def _lines(trace: Trace) -> Iterator[str]:
    yield f"Server {trace.server_uuid}"
    if trace.problem:
        yield trace.problem
        return
    yield "Asked Placement for:"
    yield from (f"  {name} = {value}" for name, value in trace.query)
    yield from map(str, trace.narrowings)
    yield f"Placement offered {_many(trace.candidates, 'candidate')} on {_many(trace.nodes, 'node')}."
    if trace.why is not None:
        yield from _why_lines(trace.why)
    for exclusion in trace.excluded:
        yield from _exclusion_lines(exclusion)
    if trace.ranking:
        yield f"{_hosts(trace.left).capitalize()} left, best first:"
        yield from (f"  {ranked(number, entry)}" for number, entry in enumerate(trace.ranking[:_SHOWN], 1))
        if trace.left > _SHOWN:
            yield f"  … and {trace.left - _SHOWN} more"
    if trace.chosen is not None:
        yield f"Chosen: {trace.chosen}{_alternates(trace.alternates)}."
    by_place = groupby(trace.attempts, key=lambda attempt: attempt.place)
    for number, (place, steps) in enumerate(by_place, 1):
        yield f"Try {number}, {place}: {', '.join(_step(attempt) for attempt in steps)}"
    if trace.chosen is None:
        yield sentence(trace)


def _why_lines(why: Emptiness) -> Iterator[str]:
    yield f"Of {_many(why.trees, 'tree')} of providers, {why.trees_left} can serve this."
    if why.kind:
        words = _agreeing(why.excluded, condition(why.kind, why.subject))
        yield f"What excludes most: {why.excluded} {words}."
    if why.nearest:
        yield "Nearest misses:"
        yield from (_miss_line(miss) for miss in why.nearest)


def _miss_line(miss: NearMiss) -> str:
    return f"  {miss.name}: {'; '.join(miss.failures)}"


def _exclusion_lines(exclusion: Exclusion) -> Iterator[str]:
    yield f"Filter '{exclusion.filter}' excluded {exclusion.count}:"
    yield from (f"  {example.place}: {example.reason}" for example in exclusion.examples)
    if exclusion.count > len(exclusion.examples):
        yield f"  … and {exclusion.count - len(exclusion.examples)} more"


def ranked(number: int, entry: Ranked) -> str:
    """One host of several, with its weight and what that is made of."""
    given = ", ".join(f"{name} {share:+.3g}" for name, share in entry.shares.items() if share)
    return f"{number}. {entry.place}: {entry.weight:.3f}{f' ({given})' if given else ''}"


def _alternates(alternates: list[Place]) -> str:
    return f", with {_listed([str(place) for place in alternates])} in reserve" if alternates else ""


def _step(attempt: Attempt) -> str:
    detail = f" ({attempt.detail})" if attempt.detail else ""
    return f"{attempt.step} {attempt.outcome}{detail}"


def _agreeing(count: int, words: str) -> str:
    """Words about several hosts, as they are for `count` of them."""
    verb, _, rest = words.partition(" ")
    return f"{_SINGULAR.get(verb, verb)} {rest}" if count == 1 else words


def _hosts(count: int) -> str:
    return _many(count, "host")


def _many(count: int, noun: str) -> str:
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"


def _listed(parts: list[str]) -> str:
    return parts[0] if len(parts) == 1 else f"{', '.join(parts[:-1])} and {parts[-1]}" if parts else ""
