"""`/moorage/v1/providers`: our extension that takes the state of thousands of providers in one request."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
from sqlalchemy.engine import Connection

from moorage.http.call import Call
from moorage.http.errors import HttpError
from moorage.http.reply import Reply
from moorage.placement import report
from moorage.placement.api.refusals import refusing
from moorage.placement.api.writers import writable_trees
from moorage.placement.errors import ConflictError, NotFoundError, ParentRefused
from moorage.placement.report import ProviderReport, Report, ReportRefused
from moorage.placement.service import PlacementService
from moorage.placement.store import reports
from moorage.placement.store.reports import ReportOutcome
from moorage.placement.store.writable_trees import ANY_TREE, WritableTrees

_DECODER = msgspec.json.Decoder(Report)


def put(service: PlacementService, call: Call) -> Reply:
    """Make many resource providers what they are reported to be, all of them or none."""
    try:
        given = _DECODER.decode(call.body())
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise HttpError(400, f"Malformed report: {error}") from error
    trees = writable_trees(service, call)
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
        outcome = _written(service, given.providers, changed, trees)
    outcome.unchanged += len(given.providers) - len(changed)
    return Reply(body=outcome)


def _written(
    service: PlacementService,
    given: Sequence[ProviderReport],
    changed: Sequence[ProviderReport],
    trees: WritableTrees,
) -> ReportOutcome:
    """Also of what is as it was an agent says that it is its own."""
    if not changed and trees is ANY_TREE:
        return ReportOutcome()

    def write(connection: Connection) -> ReportOutcome:
        outcome = reports.write(connection, changed, trees) if changed else ReportOutcome()
        trees.admit_providers(connection, [report.uuid for report in given])
        return outcome

    return service.database.transact(write)
