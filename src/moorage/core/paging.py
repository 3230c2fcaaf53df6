"""Lists of other services that come in pages: all of a list, whatever happens to it between two of its pages.

A page begins after a marker, the last entry of the page before. That entry may be gone by then: some services
refuse such a marker, others begin again, and one that is broken begins again for ever. Where the next page is
comes from us: the address that a service offers for it may be one that only a proxy can reach, and Ironic's
forgets the filters.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Generic, NamedTuple, TypeVar

T = TypeVar("T")
_MOST_PAGES = 100_000
_MOST_REPEATED = 3
"""So many pages may have nothing new in a row, beside those of a list that begins again."""


class MarkerGoneError(Exception):
    """The service does not know the entry after which the page was to begin."""


class EndlessListError(Exception):
    """The pages go round in circles, or there are more than anybody can have."""


class Page(NamedTuple, Generic[T]):
    entries: list[T]
    marker: str | None
    """After which the next page begins; None for the last page."""


def pages(read: Callable[[str | None], Page[T]], key: Callable[[T], str]) -> Iterator[list[T]]:
    """The entries that no page before had, a page at a time; some pages have none.

    `read` gets a marker, or None for the first page. An entry that is there all the time, in a list that has
    an order, is not missed: after a marker that is gone we go on from an entry further ahead.
    """
    seen: set[str] = set()
    trail: list[str] = []
    """All entries that lie before the next page; the last ones twice if they were read again."""
    marker: str | None = None
    back, fruitful, repeated = 1, 0, 0
    for _ in range(_MOST_PAGES):
        try:
            page = read(marker)
        except MarkerGoneError:
            if marker is None:
                raise
            del trail[-back:]
            back *= 2
            marker = trail[-1] if trail else None
            continue
        back = 1
        found = {key(entry): entry for entry in page.entries}
        yield [entry for name, entry in found.items() if name not in seen]
        fruitful, repeated = (fruitful, repeated + 1) if found.keys() <= seen else (fruitful + 1, 0)
        if page.marker is None:
            return
        if repeated > fruitful + _MOST_REPEATED:
            raise EndlessListError(f"the same {len(seen)} entries come again and again")
        seen |= found.keys()
        trail += found
        marker = page.marker
    raise EndlessListError(f"there are more than {_MOST_PAGES} pages")
