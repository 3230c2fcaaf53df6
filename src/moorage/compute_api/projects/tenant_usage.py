"""`/os-simple-tenant-usage`: what the servers of projects had in a period, deleted ones included."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Any

from moorage.compute.servers import usage_reports
from moorage.compute.servers.usage_reports import Period, ProjectUsage, ServerUsage
from moorage.compute_api import links
from moorage.compute_api.microversions import Microversion
from moorage.compute_api.service import ComputeService
from moorage.compute_api.times import plain
from moorage.core.clock import utcnow
from moorage.http.call import Call, Query
from moorage.http.errors import HttpError
from moorage.http.reply import Reply

Json = dict[str, Any]

_PATH = "os-simple-tenant-usage"
_SPELLINGS = ("%Y-%m-%dT%H:%M:%S", "%Y-%m-%dT%H:%M:%S.%f", "%Y-%m-%d %H:%M:%S.%f")


def project(call: Call) -> dict[str, str | None]:
    return {"project_id": call.params["project_id"]}


def index(service: ComputeService, call: Call) -> Reply:
    """List what all projects used in a period."""
    query = call.checked_query()
    detailed = _first(query, "detailed") == "1"
    report = _Report(call, _period(query), detailed=detailed)
    further = report.read(service, None, _PATH)
    body: Json = {"tenant_usages": [report.shown(one) for one in report.projects.values()]}
    if further:
        body["tenant_usages_links"] = further
    return Reply(body=body)


def show(service: ComputeService, call: Call) -> Reply:
    """Show what one project used in a period."""
    project_id = call.params["project_id"]
    report = _Report(call, _period(call.checked_query()), detailed=True)
    further = report.read(service, project_id, f"{_PATH}/{project_id}")
    used = report.projects.get(project_id)
    body: Json = {"tenant_usage": {} if used is None else report.shown(used)}
    if further:
        body["tenant_usage_links"] = further
    return Reply(body=body)


class _Report:
    """What one request is answered with: sums by project, and where asked for the servers behind them."""

    def __init__(self, call: Call, period: Period, *, detailed: bool) -> None:
        self.projects: dict[str, ProjectUsage] = {}
        self._call = call
        self._period = period
        self._detailed = detailed
        self._now = utcnow()

    def read(self, service: ComputeService, project_id: str | None, path: str) -> links.Links:
        """From 2.40 on a page of servers, and the way to the next; before that the sums are about all.

        The servers themselves are no more than a page even then, so that an answer stays of a size.
        """
        most = service.settings.max_limit
        with service.database.snapshot() as connection:
            if self._call.version < Microversion.PAGES_OF_USAGES:
                self._add(usage_reports.every(connection, self._period, project_id), most)
                return []
            asked = links.page(self._call, most)
            limit = most if asked.limit is None else asked.limit
            found = usage_reports.page(connection, self._period, project_id, limit, asked.marker)
        self._add(found, most)
        return links.next_page(self._call, path, [server.uuid for server in found], limit)

    def _add(self, found: Iterable[ServerUsage], most: int) -> None:
        for number, server in enumerate(found):
            used = self.projects.get(server.project_id)
            if used is None:
                used = self.projects[server.project_id] = ProjectUsage(server.project_id)
            used.add(server, server.hours(self._period))
            if self._detailed and number < most:
                used.servers.append(server)

    def shown(self, used: ProjectUsage) -> Json:
        body: Json = {
            "tenant_id": used.project_id,
            "total_hours": used.hours,
            "total_vcpus_usage": used.vcpu_hours,
            "total_memory_mb_usage": used.memory_mb_hours,
            "total_local_gb_usage": used.disk_gb_hours,
            "start": plain(self._period.start),
            "stop": plain(self._period.stop),
        }
        if self._detailed:
            body["server_usages"] = [self._server(server) for server in used.servers]
        return body

    def _server(self, server: ServerUsage) -> Json:
        return {
            "instance_id": server.uuid,
            "name": server.name,
            "tenant_id": server.project_id,
            "flavor": server.flavor_name,
            "vcpus": server.vcpus,
            "memory_mb": server.memory_mb,
            "local_gb": server.disk_gb,
            "hours": server.hours(self._period),
            "started_at": plain(server.launched_at),
            "ended_at": plain(server.terminated_at),
            "state": server.vm_state if server.terminated_at is None else "terminated",
            "uptime": server.seconds_up(self._now),
        }


def _period(query: Query) -> Period:
    """No later than now: what is yet to come is not reported. Who names no period gets an empty one."""
    now = utcnow()
    start, stop = _moment(_first(query, "start")) or now, _moment(_first(query, "end")) or now
    if stop < start or (stop == start and start is not now):
        raise HttpError(400, "Invalid start time. The start time cannot occur after the end time.")
    return Period(start, min(stop, now))


def _first(query: Query, name: str) -> str | None:
    """Of a repeated parameter this API, unlike others, takes the first; an empty one is none."""
    return next((value for value in query.all(name) if value), None)


def _moment(text: str | None) -> datetime | None:
    if text is None:
        return None
    for spelling in _SPELLINGS:
        try:
            return datetime.strptime(text, spelling).replace(tzinfo=UTC)
        except ValueError:
            continue
    raise HttpError(400, "Invalid datetime string: Datetime is in invalid format")
