"""Lists in pages, of services that treat a marker that is gone in one way or another."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from enum import Enum, auto

import pytest
from hypothesis import given
from hypothesis import strategies as st

from moorage.core.paging import EndlessListError, MarkerGoneError, Page, pages


class Gone(Enum):
    """What becomes of a page after a marker that is gone."""

    REFUSED = auto()
    FIRST_PAGE = auto()


class Shelf:
    """A sorted list behind pages, which somebody changes each time before a page is read."""

    def __init__(self, entries: Iterable[str], limit: int, gone: Gone) -> None:
        self.entries = set(entries)
        self.limit = limit
        self.gone = gone
        self.read_count = 0
        self.changes: list[Callable[[set[str]], None]] = []

    def read(self, marker: str | None) -> Page[str]:
        self.read_count += 1
        if self.changes:
            self.changes.pop(0)(self.entries)
        if marker is not None and marker not in self.entries:
            if self.gone is Gone.REFUSED:
                raise MarkerGoneError(marker)
            marker = None
        found = sorted(entry for entry in self.entries if marker is None or entry > marker)[: self.limit]
        return Page(found, found[-1] if len(found) == self.limit else None)


def listed(shelf: Shelf) -> list[str]:
    return [entry for page in pages(shelf.read, str) for entry in page]


NAMES = st.sets(st.text("abcdefgh", min_size=1, max_size=3), max_size=20)


@given(NAMES, st.lists(st.tuples(NAMES, NAMES), max_size=30), st.integers(1, 4), st.sampled_from(Gone))
def test_what_is_there_all_the_time_is_listed_once(
    entries: set[str], changes: list[tuple[set[str], set[str]]], limit: int, gone: Gone
) -> None:
    shelf = Shelf(entries, limit, gone)
    stayed = set(entries)
    for new, deleted in changes:
        stayed -= deleted

        def change(there: set[str], new: set[str] = new, deleted: set[str] = deleted) -> None:
            there |= new
            there -= deleted

        shelf.changes.append(change)
    found = listed(shelf)
    assert len(found) == len(set(found))
    assert stayed <= set(found)


def test_after_a_marker_that_is_gone_only_a_little_is_read_again() -> None:
    names = [f"{number:03}" for number in range(100)]
    shelf = Shelf(names, 2, Gone.REFUSED)
    shelf.changes = [lambda there: None] * 25 + [lambda there: there.discard("049")]
    assert listed(shelf) == names
    assert shelf.read_count == 100 / 2 + 2, "the refusal, and the empty page at the end"


def test_a_service_that_always_begins_again_is_given_up() -> None:
    asked: list[str | None] = []

    def read(marker: str | None) -> Page[str]:
        asked.append(marker)
        return Page(["a", "b"], "b")

    with pytest.raises(EndlessListError, match="the same 2 entries"):
        list(pages(read, str))
    assert len(asked) < 10


def test_a_service_that_knows_no_marker_is_given_up() -> None:
    asked: list[str | None] = []

    def read(marker: str | None) -> Page[str]:
        asked.append(marker)
        if marker is not None:
            raise MarkerGoneError(marker)
        return Page(["a", "b"], "b")

    with pytest.raises(EndlessListError):
        list(pages(read, str))
    assert len(asked) < 30
