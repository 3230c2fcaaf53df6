"""`/allocation_candidates`: where a request could be satisfied."""

from __future__ import annotations

from moorage.core.clock import utcnow
from moorage.http.call import Call
from moorage.http.reply import Reply
from moorage.placement.api.queries import parsing
from moorage.placement.search import parse
from moorage.placement.search.candidates import find_candidates
from moorage.placement.search.encode import AnswerShape
from moorage.placement.service import PlacementService


def index(service: PlacementService, call: Call) -> Reply:
    """List allocation candidates."""
    call.checked_query()
    with parsing():
        request = parse.candidates_request(call.query.pairs, call.version)
        with service.picture() as (fleet, encoder):
            result = find_candidates(fleet, request, service.settings.search)
            requested = {name for group in request.groups for name in group.resources}
            body = encoder.encode(result, AnswerShape.at(call.version[1]), requested)
    return Reply(body=body, last_modified=utcnow())
