"""Whether both sides have the same, and what differs.

Of each record only two numbers are kept, so that a million of them fit into memory; those that differ are
read once more to say how.
"""

from __future__ import annotations

import hashlib
from array import array
from collections.abc import Iterator
from typing import Any

import msgspec
import numpy as np
import numpy.typing as npt

from moorage.placement.store.names import is_custom
from moorage.placement.takeover.our_checks import rounded
from moorage.placement.takeover.records import Contents, WholeConsumer, WholeProvider
from moorage.takeover.progress import Progress, unseen

NAMED = 20
"""So many differing records of a kind are told in full."""

Content = dict[str, Any]


class FieldDifference(msgspec.Struct, frozen=True):
    what: str
    """As `provider 4c1d…`."""
    field: str | None
    """None if one side does not have it at all."""
    reference: Any
    ours: Any

    def line(self) -> str:
        if self.field is None:
            return f"{self.what}: only {'in the reference' if self.ours is None else 'here'}"
        return f"{self.what}: {self.field} is {self.reference!r} in the reference, {self.ours!r} here"


class Comparison(msgspec.Struct):
    """Standard names are not compared by themselves: which there are is a matter of either side's release."""

    compared: dict[str, int] = {}
    """How many records of the reference were looked at."""
    differing: dict[str, int] = {}
    """How many records differ, or are on one side only."""
    differences: list[FieldDifference] = []

    @property
    def is_equal(self) -> bool:
        return not any(self.differing.values())


def compare(
    reference: Contents, ours: Contents, *, progress: Progress = unseen, by_mariadb: bool = False
) -> Comparison:
    """`by_mariadb` says that the reference's ratios may have been rounded by a MariaDB."""
    found = Comparison()
    _compare_names(found, reference, ours)
    counts = reference.counts()
    for kind, total in (("providers", counts.providers), ("consumers", counts.consumers)):
        theirs = _Fingerprints(_records(reference, kind, by_mariadb, progress, total))
        mine = _Fingerprints(_records(ours, kind, by_mariadb, unseen, total))
        keys = theirs.differing(mine)
        found.compared[kind] = len(theirs)
        found.differing[kind] = len(keys)
        if len(keys):
            chosen = frozenset(keys[:NAMED].tolist())
            left, right = (_picked(side, kind, by_mariadb, chosen) for side in (reference, ours))
            for key in left.keys() | right.keys():
                found.differences += _differences(left.get(key), right.get(key))
    return found


def _compare_names(found: Comparison, reference: Contents, ours: Contents) -> None:
    theirs, mine = reference.names(), ours.names()
    for kind, one, left, right in (
        ("resource classes", "resource class", theirs.classes, mine.classes),
        ("traits", "trait", theirs.traits, mine.traits),
    ):
        custom = [{name for name in side if is_custom(name)} for side in (left, right)]
        found.compared[kind] = len(custom[0])
        found.differing[kind] = len(custom[0] ^ custom[1])
        for name in sorted(custom[0] ^ custom[1])[:NAMED]:
            there, here = (name if name in side else None for side in custom)
            found.differences.append(FieldDifference(f"{one} {name}", None, there, here))


def _records(
    side: Contents, kind: str, by_mariadb: bool, progress: Progress, total: int
) -> Iterator[Content]:
    done = 0
    if kind == "providers":
        for some in side.providers():
            done += len(some)
            progress("providers compared", done, total)
            yield from (_provider(one, by_mariadb) for one in some)
    else:
        for others in side.consumers():
            done += len(others)
            progress("consumers compared", done, total)
            yield from map(_consumer, others)


def _provider(one: WholeProvider, by_mariadb: bool) -> Content:
    inventories = {}
    for name, *values, ratio, _ in one.inventories:
        inventories[name] = [*values, rounded(ratio) if by_mariadb else float(ratio)]
    return {
        "what": f"provider {one.uuid}",
        "name": one.name,
        "generation": one.generation,
        "parent": one.parent,
        "root": one.root,
        "inventories": inventories,
        "traits": one.traits,
        "aggregates": one.aggregates,
    }


def _consumer(one: WholeConsumer) -> Content:
    held = {f"{place.provider} {place.resource_class}": place.used for place in one.allocations}
    return {
        "what": f"consumer {one.uuid}",
        "project": one.project_id,
        "user": one.user_id,
        "generation": one.generation,
        "type": one.type,
        "allocations": held,
    }


def _hash(encoded: bytes) -> int:
    return int.from_bytes(hashlib.blake2b(encoded, digest_size=8).digest())


class _Fingerprints:
    """A number for the name of each record, and one for all that it says."""

    def __init__(self, records: Iterator[Content]) -> None:
        keys, values = array("Q"), array("Q")
        for record in records:
            keys.append(_hash(record["what"].encode()))
            values.append(_hash(msgspec.json.encode(record)))
        order = np.argsort(np.frombuffer(keys, dtype=np.uint64), kind="stable") if keys else np.array([], int)
        self.keys: npt.NDArray[np.uint64] = np.frombuffer(keys, dtype=np.uint64)[order]
        self.values: npt.NDArray[np.uint64] = np.frombuffer(values, dtype=np.uint64)[order]

    def __len__(self) -> int:
        return len(self.keys)

    def differing(self, other: _Fingerprints) -> npt.NDArray[np.uint64]:
        """The names of records that only one has, or that say something else."""
        _, here, there = np.intersect1d(self.keys, other.keys, assume_unique=True, return_indices=True)
        changed = self.keys[here][self.values[here] != other.values[there]]
        lone = np.setxor1d(self.keys, other.keys, assume_unique=True)
        return np.concatenate([changed, lone])


def _picked(side: Contents, kind: str, by_mariadb: bool, chosen: frozenset[int]) -> dict[str, Content]:
    return {
        record["what"]: record
        for record in _records(side, kind, by_mariadb, unseen, 0)
        if _hash(record["what"].encode()) in chosen
    }


def _differences(left: Content | None, right: Content | None) -> Iterator[FieldDifference]:
    if left is None or right is None:
        what = (left or right or {})["what"]
        yield FieldDifference(what, None, left and what, right and what)
        return
    for field, theirs in left.items():
        if theirs != right[field]:
            yield FieldDifference(left["what"], field, theirs, right[field])
