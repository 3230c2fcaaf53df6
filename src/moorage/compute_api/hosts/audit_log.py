"""`/os-instance_usage_audit_log`: which hosts have reported the usage of their servers at the end of a month.

None does: a report of what ran is to be had at any time, without anybody's notifications
(`/os-simple-tenant-usage`). So a month is answered as in a cloud that has not turned such reports on.
"""

from __future__ import annotations

from datetime import datetime
from typing import Any

from moorage.compute.hosts import services
from moorage.compute_api.service import ComputeService
from moorage.core.clock import utcnow
from moorage.http.call import Call
from moorage.http.errors import HttpError
from moorage.http.reply import Reply

Json = dict[str, Any]


def index(service: ComputeService, _call: Call) -> Reply:
    """Show which hosts have reported the usage of the last month."""
    return Reply(body={"instance_usage_audit_logs": _log(service, utcnow().replace(tzinfo=None))})


def show(service: ComputeService, call: Call) -> Reply:
    """Show which hosts have reported the usage of the last month before a moment."""
    text = call.params["before"]
    try:
        before = datetime.strptime(text, "%Y-%m-%d %H:%M:%S.%f" if "." in text else "%Y-%m-%d %H:%M:%S")
        log = _log(service, before)
    except (ValueError, OverflowError) as error:
        raise HttpError(400, f"Invalid timestamp for date {text}") from error
    return Reply(body={"instance_usage_audit_log": log})


def last_month(before: datetime) -> tuple[datetime, datetime]:
    """The first moments of the last month that ended before `before`, and of the one after it."""
    end = before.replace(day=1, hour=0, minute=0, second=0, microsecond=0)
    if end >= before:
        end = _month_earlier(end)
    return _month_earlier(end), end


def _month_earlier(first: datetime) -> datetime:
    if first.month == 1:
        return first.replace(year=first.year - 1, month=12)
    return first.replace(month=first.month - 1)


def _log(service: ComputeService, before: datetime) -> Json:
    begin, end = last_month(before)
    with service.database.read() as connection:
        hosts = sorted({one.host for one in services.listed(connection, binary=services.AGENT)})
    done = f"0 of {len(hosts)}" if hosts else "ALL"
    return {
        "period_beginning": str(begin),
        "period_ending": str(end),
        "num_hosts": len(hosts),
        "num_hosts_done": 0,
        "num_hosts_running": 0,
        "num_hosts_not_run": len(hosts),
        "hosts_not_run": hosts,
        "total_instances": 0,
        "total_errors": 0,
        "overall_status": f"{done} hosts done. 0 errors.",
        "log": {},
    }
