"""`/moorage/v1/counters`: our extension for audits, which finds counters that are not what they stand for."""

from __future__ import annotations

from typing import Annotated

import msgspec
from msgspec import Meta

from moorage.http.call import Call
from moorage.http.errors import HttpError
from moorage.http.reply import Reply, no_content
from moorage.placement.api.refusals import refusing
from moorage.placement.errors import NotFoundError
from moorage.placement.service import PlacementService
from moorage.placement.store import counters


class _Provider(msgspec.Struct, forbid_unknown_fields=True):
    provider: Annotated[str, Meta(pattern="^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}\\Z")]


def index(service: PlacementService, call: Call) -> Reply:
    """List the counters of resource providers that are not the sum of their allocations."""
    with service.database.read() as connection:
        found = counters.wrong(connection, call.query.get("provider") or None)
    return Reply(body={"miscounts": [one._asdict() for one in found]})


def recount(service: PlacementService, call: Call) -> Reply:
    """Count the allocations of a resource provider again."""
    try:
        asked = msgspec.json.decode(call.body(), type=_Provider)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise HttpError(400, f"Malformed request: {error}") from error
    with refusing({NotFoundError: (404, "{error}")}):
        service.database.transact(lambda connection: counters.recount(connection, asked.provider))
    return no_content()
