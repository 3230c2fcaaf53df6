"""A sample in the words of another cloud: the same operation, of a server, hosts and ports that are there."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

_HOST = re.compile(r"(fake|host)-\d+")
_UUID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_ADDRESS = re.compile(r"\d+\.\d+\.\d+\.\d+|[0-9a-f]{2}(:[0-9a-f]{2}){5}")
_NAMED = re.compile("|".join(kind.pattern for kind in (_HOST, _UUID, _ADDRESS)))
_COUNTS = ("migration_id", "decided_at", "tasks")
"""Numbers that a cloud gives out, and a server's attempts: what the agents have seen of it must fit."""


def transcribe(sample: dict[str, Any], there: dict[str, Any], nodes: Mapping[str, str]) -> dict[str, Any]:
    """`there` is what an operation remembers that came to the same step; `nodes` are all, by host."""
    names = dict(_pairs(sample, there))
    hosts = {node: host for host, node in nodes.items()}
    names |= {host: hosts[names[node]] for host, node in nodes.items() if node in names}
    free = [host for host in sorted(nodes) if host not in names.values()]
    for host in sorted(_named(sample, _HOST) - names.keys()):
        names[host] = free.pop(0)
    names |= {nodes[host]: nodes[named] for host, named in names.items() if host in nodes}
    missing = _named(sample, _UUID) - names.keys()
    assert not missing, f"{missing} are nowhere in {there}"
    written = _renamed(sample, names)
    return {**written, **_counts(written, there)}


def _pairs(sample: Any, there: Any) -> Iterator[tuple[str, str]]:
    """What is at the same place in both."""
    if isinstance(sample, dict) and isinstance(there, dict):
        for key in sample.keys() & there.keys():
            yield from _pairs(sample[key], there[key])
        if len(sample) == len(there) == 1:
            yield from _pairs(next(iter(sample)), next(iter(there)))
    elif isinstance(sample, list) and isinstance(there, list):
        for one, other in zip(sample, there, strict=False):
            yield from _pairs(one, other)
    elif isinstance(sample, str) and isinstance(there, str) and _NAMED.fullmatch(sample):
        yield sample, there


def _named(value: Any, kind: re.Pattern[str]) -> set[str]:
    if isinstance(value, dict):
        return {name for pair in value.items() for part in pair for name in _named(part, kind)}
    if isinstance(value, list):
        return {name for part in value for name in _named(part, kind)}
    return {value} if isinstance(value, str) and kind.fullmatch(value) else set()


def _renamed(value: Any, names: Mapping[str, str]) -> Any:
    if isinstance(value, dict):
        return {names.get(key, key): _renamed(part, names) for key, part in value.items()}
    if isinstance(value, list):
        return [_renamed(part, names) for part in value]
    return names.get(value, value) if isinstance(value, str) else value


def _counts(sample: dict[str, Any], there: dict[str, Any]) -> dict[str, Any]:
    """Of those fields that the sample has."""
    found = {}
    for key in sample.keys() & there.keys():
        if key in _COUNTS:
            found[key] = there[key]
        elif key == "move":
            found[key] = {**sample[key], **_counts(sample[key], there[key])}
    return found
