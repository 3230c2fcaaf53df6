"""`/moorage/v1/providers`: our extension that takes the state of thousands of providers in one request."""

from __future__ import annotations

import msgspec

from moorage.http.call import Call
from moorage.http.errors import HttpError
from moorage.http.reply import Reply
from moorage.placement import report
from moorage.placement.api.refusals import refusing
from moorage.placement.errors import ConflictError, NotFoundError, ParentRefused
from moorage.placement.report import Report, ReportRefused
from moorage.placement.service import PlacementService
from moorage.placement.store import reports
from moorage.placement.store.reports import ReportOutcome

_DECODER = msgspec.json.Decoder(Report)


def put(service: PlacementService, call: Call) -> Reply:
    """Make many resource providers what they are reported to be, all of them or none."""
    try:
        given = _DECODER.decode(call.body())
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise HttpError(400, f"Malformed report: {error}") from error
    with refusing(
        {
            ReportRefused: (400, "{error}"),
            ParentRefused: (400, "{error}"),
            NotFoundError: (400, "{error}"),
            ConflictError: (409, "{error}"),
        }
    ):
        report.check(given)
        with service.picture() as (fleet, _), service.database.read() as connection:
            changed = report.seems_changed(connection, fleet, given.providers)
        outcome = (
            service.database.transact(lambda connection: reports.write(connection, changed))
            if changed
            else ReportOutcome()
        )
    outcome.unchanged += len(given.providers) - len(changed)
    return Reply(body=outcome)
