"""`/moorage/v1/why` and `/capacity`: our extensions that answer with numbers what operators ask.

Both take the query string of `GET /allocation_candidates`, in its newest form whatever the microversion.
"""

from __future__ import annotations

import re

from moorage.http.call import Call
from moorage.http.errors import HttpError
from moorage.http.reply import Reply
from moorage.placement.api import schemas
from moorage.placement.api.queries import parsing
from moorage.placement.api.versions import VERSIONS
from moorage.placement.search import parse
from moorage.placement.search.capacity import how_many_fit
from moorage.placement.search.request import SearchRequest
from moorage.placement.search.why import explain
from moorage.placement.service import PlacementService

_MOST_MISSES = 100
_NUMBER = re.compile("[0-9]{1,3}")


def why(service: PlacementService, call: Call) -> Reply:
    """Tell what each condition of a candidates request excludes, and which trees came nearest."""
    misses = call.query.get("misses") or "5"
    if not _NUMBER.fullmatch(misses) or int(misses) > _MOST_MISSES:
        raise HttpError(400, f"misses must be a number from 0 to {_MOST_MISSES}, got: {misses}")
    with parsing():
        request = _request(call, "misses")
        with service.picture() as (fleet, _):
            return Reply(body=explain(fleet, request, int(misses)))


def capacity(service: PlacementService, call: Call) -> Reply:
    """Tell how many more of a candidates request fit, in all and per aggregate."""
    with parsing():
        request = _request(call, "by_aggregate")
        by_aggregate = (call.query.get("by_aggregate") or "").lower() in ("1", "true", "yes")
        with service.picture() as (fleet, _):
            return Reply(body=how_many_fit(fleet, request, by_aggregate))


def _request(call: Call, own_parameter: str) -> SearchRequest:
    pairs = [(name, value) for name, value in call.query.pairs if name != own_parameter]
    schemas.LIST_CANDIDATES.at(VERSIONS.highest).check_query(dict(pairs))
    return parse.candidates_request(pairs, VERSIONS.highest)
