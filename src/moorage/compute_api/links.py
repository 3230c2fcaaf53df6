"""Links: where a thing is, and where its list goes on."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from urllib.parse import quote, urlencode

from moorage.http.call import Call

Links = list[dict[str, str]]

_VERSION = re.compile(r"/v2(\.1)?(?=/|$)")


@dataclass(frozen=True)
class PageRequest:
    limit: int | None
    """None for all of it."""
    marker: str | None


def page(call: Call, most: int) -> PageRequest:
    """The page that a query string, which passed its schema, asks for."""
    limit = call.query.get("limit")
    return PageRequest(most if limit is None else min(int(limit), most), call.query.get("marker"))


def of(call: Call, collection: str, identity: str) -> Links:
    """To a thing at this version of the API, and for a bookmark that outlives the version."""
    path = f"/{collection}/{quote(identity)}"
    prefix = call.request.prefix
    return [
        {"rel": "self", "href": f"{prefix}{path}"},
        {"rel": "bookmark", "href": f"{_VERSION.sub('', prefix, count=1)}{path}"},
    ]


def next_page(call: Call, collection: str, identities: Sequence[str], limit: int | None) -> Links:
    """To what comes after a full page; nothing if the page is not full."""
    if not limit or len(identities) < limit:
        return []
    asked = [(name, value) for name, value in call.query.pairs if name not in ("marker", "limit")]
    if "limit" in call.query:
        asked.append(("limit", str(limit)))
    query = urlencode([*asked, ("marker", identities[-1])])
    return [{"rel": "next", "href": f"{call.request.prefix}/{collection}?{query}"}]
