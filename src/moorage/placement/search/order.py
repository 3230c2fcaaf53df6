"""Which anchors come first."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from moorage.placement.fleet.slotset import Slots
from moorage.placement.fleet.view import View
from moorage.placement.search.result import SearchOptions, TreeOrder

Scores = npt.NDArray[np.float64]


def in_order(
    view: View, anchors: Slots, amounts: Mapping[int, int], options: SearchOptions, expected: int
) -> Iterator[int]:
    """The anchors, best first; only as many as are expected to be needed are sorted at first."""
    if options.order is TreeOrder.RANDOM:
        yield from np.random.default_rng(options.seed).permutation(anchors).tolist()
        return
    scores = utilisation(view, amounts)[anchors]
    if options.order is TreeOrder.PACK:
        scores = -scores
    if expected >= len(anchors):
        yield from anchors[np.argsort(scores, kind="stable")].tolist()
        return
    first = _lowest(scores, expected)
    yield from anchors[first].tolist()
    rest = np.ones(len(anchors), np.bool_)
    rest[first] = False
    others = np.flatnonzero(rest)
    yield from anchors[others[np.argsort(scores[others], kind="stable")]].tolist()


def utilisation(view: View, amounts: Mapping[int, int]) -> Scores:
    """By root: how full its tree would be with these amounts in it, in the class it has least of.

    A class that the tree has none of (it comes from a sharing provider) does not count.
    """
    fullest = np.zeros(view.size, np.float64)
    for class_id, amount in amounts.items():
        rows = view.rows(class_id)
        if view.flat:
            share = _share(rows.used + amount, rows.capacity)
            np.maximum(fullest, rows.by_position(share, view.size), out=fullest)
        else:
            tree = view.root[rows.where]
            capacity = np.bincount(tree, rows.capacity, view.size)
            used = np.bincount(tree, rows.used, view.size)
            np.maximum(fullest, _share(used + amount, capacity), out=fullest)
    return fullest


def _share(used: npt.NDArray[Any], capacity: npt.NDArray[Any]) -> Scores:
    share: Scores = np.divide(used, capacity, out=np.zeros(len(used)), where=capacity > 0)
    return share


def _lowest(scores: Scores, count: int) -> Slots:
    """The indices of the `count` lowest scores in order; ties go to the lower index, as in a full sort."""
    bound = scores.min()
    equals = np.flatnonzero(scores == bound)[:count]
    if len(equals) == count:  # so it is with many empty nodes of one kind
        return equals
    bound = np.partition(scores, count - 1)[count - 1]
    below = np.flatnonzero(scores < bound)
    level = np.flatnonzero(scores == bound)[: count - len(below)]
    chosen = np.sort(np.concatenate([below, level]))
    return chosen[np.argsort(scores[chosen], kind="stable")]
