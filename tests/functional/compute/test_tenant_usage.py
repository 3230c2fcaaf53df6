"""What projects used: from the times of their servers, to the second, deleted ones included."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
import sqlalchemy as sa

from moorage.core.clock import utcnow
from tests.functional.compute.rows import add_server
from tests.support.compute import Cloud, User

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)
DAY = "start=2026-03-01T12:00:00&end=2026-03-02T12:00:00"


def ran(cloud: Cloud, project: str, name: str, since: float, until: float | None = None, **more: Any) -> str:
    """A server that was launched `since` hours after noon, and deleted `until` hours after it."""
    end = None if until is None else NOON + timedelta(hours=until)
    times = {"launched_at": NOON + timedelta(hours=since), "terminated_at": end, "deleted_at": end}
    state = "active" if end is None else "deleted"
    return add_server(cloud, name, "h", "n", project_id=project, **{**times, "vm_state": state, **more})


def usage(user: User, project: str, query: str = DAY) -> Any:
    answer = user.get(f"/os-simple-tenant-usage/{project}?{query}")
    assert answer.status == 200, answer.text
    return answer.json["tenant_usage"]


def test_only_the_time_within_the_period_counts(cloud: Cloud, admin: User) -> None:
    began_before = ran(cloud, "within", "a", -5, 2)
    ended_after = ran(cloud, "within", "b", 23, 30)
    ran(cloud, "within", "too early", -5, -1)
    ran(cloud, "within", "too late", 25)
    ran(cloud, "within", "never launched", 1, launched_at=None)
    found = usage(admin, "within")
    hours = {one["instance_id"]: one["hours"] for one in found["server_usages"]}
    assert hours == {began_before: 2.0, ended_after: 1.0}
    assert found["total_hours"] == 3.0
    assert found["total_vcpus_usage"] == 6.0
    assert found["total_memory_mb_usage"] == 3 * 512.0
    assert found["total_local_gb_usage"] == 3 * 15.0
    assert (found["start"], found["stop"]) == ("2026-03-01T12:00:00.000000", "2026-03-02T12:00:00.000000")
    assert found["tenant_id"] == "within"


def test_a_server_is_shown_with_what_it_had(cloud: Cloud, admin: User) -> None:
    uuid = ran(cloud, "shown", "gone", 1, 3.5)
    (one,) = usage(admin, "shown")["server_usages"]
    assert one == {
        "instance_id": uuid,
        "name": "gone",
        "tenant_id": "shown",
        "flavor": "f",
        "vcpus": 2,
        "memory_mb": 512,
        "local_gb": 15,
        "hours": 2.5,
        "started_at": "2026-03-01T13:00:00.000000",
        "ended_at": "2026-03-01T15:30:00.000000",
        "state": "terminated",
        "uptime": 9000,
    }


def test_a_server_that_runs_is_counted_until_now(cloud: Cloud, admin: User) -> None:
    now = utcnow()
    ran(cloud, "running", "r", 0, launched_at=now - timedelta(hours=2))
    start, end = now - timedelta(days=1), now + timedelta(days=1)
    found = usage(admin, "running", f"start={start:%Y-%m-%dT%H:%M:%S}&end={end:%Y-%m-%dT%H:%M:%S}")
    assert found["total_hours"] == pytest.approx(2, abs=0.02)
    (one,) = found["server_usages"]
    assert (one["state"], one["ended_at"]) == ("active", None)
    assert one["uptime"] == pytest.approx(7200, abs=60)
    assert found["stop"] < f"{end:%Y-%m-%dT%H:%M:%S}"


def test_all_projects_with_their_servers_only_where_asked(cloud: Cloud, admin: User) -> None:
    ran(cloud, "all-1", "x", 0, 1)
    ran(cloud, "all-2", "y", 0, 2)
    plain = admin.get(f"/os-simple-tenant-usage?{DAY}").json["tenant_usages"]
    hours = {one["tenant_id"]: one["total_hours"] for one in plain}
    assert (hours["all-1"], hours["all-2"]) == (1.0, 2.0)
    assert not any("server_usages" in one for one in plain)
    detailed = admin.get(f"/os-simple-tenant-usage?{DAY}&detailed=1").json["tenant_usages"]
    names = {one["tenant_id"]: [server["name"] for server in one["server_usages"]] for one in detailed}
    assert (names["all-1"], names["all-2"]) == (["x"], ["y"])


def test_pages_since_2_40(cloud: Cloud, admin: User) -> None:
    expected = sorted(ran(cloud, "paged", f"p{n}", 0, 1) for n in range(5))
    path: str | None = f"/os-simple-tenant-usage/paged?{DAY}&limit=2"
    found: list[str] = []
    sums = []
    while path is not None:
        body = admin.at("2.40").get(path).json
        if body["tenant_usage"]:
            found += [one["instance_id"] for one in body["tenant_usage"]["server_usages"]]
            sums.append(body["tenant_usage"]["total_hours"])
        (link,) = body.get("tenant_usage_links") or [None]
        path = None if link is None else link["href"].partition("/v2.1")[2]
    assert found == expected
    assert sums == [2.0, 2.0, 1.0]
    everything = admin.at("2.40").get(f"/os-simple-tenant-usage?{DAY}&detailed=1&limit=1").json
    assert len(everything["tenant_usages"]) == 1
    assert everything["tenant_usages_links"][0]["rel"] == "next"
    assert admin.get(f"/os-simple-tenant-usage/paged?{DAY}&limit=0").json == {"tenant_usage": {}}
    assert admin.get(f"/os-simple-tenant-usage/paged?{DAY}&limit=none").status == 400


def test_before_2_40_the_sums_are_about_all_servers(cloud: Cloud, admin: User) -> None:
    old = admin.at("2.39")
    most = cloud.service.settings.max_limit
    rows = most + 3
    first = ran(cloud, "many", "m", 0, 1)
    with cloud.database.write() as connection:
        table = sa.Table("servers", sa.MetaData(), autoload_with=connection)
        names = [column.name for column in table.c if column.name not in ("id", "uuid")]
        pattern = (
            connection.execute(sa.select(*(table.c[name] for name in names)).where(table.c.uuid == first))
            .one()
            ._mapping
        )
        copies = [{**pattern, "uuid": f"{n:08d}-0000-4000-8000-000000000000"} for n in range(rows - 1)]
        connection.execute(sa.insert(table), copies)
    found = usage(old, "many")
    assert found["total_hours"] == float(rows)
    assert len(found["server_usages"]) == most
    assert "tenant_usage_links" not in old.get(f"/os-simple-tenant-usage/many?{DAY}&limit=1").json


def test_a_marker_is_a_server_of_the_project(cloud: Cloud, admin: User) -> None:
    ran(cloud, "marked", "m", 0, 1)
    foreign = ran(cloud, "marked-other", "n", 0, 1)
    answer = admin.get(f"/os-simple-tenant-usage/marked?{DAY}&marker={foreign}")
    assert answer.fault == ("badRequest", f"marker [{foreign}] not found")
    assert admin.get(f"/os-simple-tenant-usage?{DAY}&marker={foreign}").status == 200
    assert admin.get(f"/os-simple-tenant-usage?{DAY}&marker=nowhere").status == 400


@pytest.mark.parametrize(
    ("query", "status"),
    [
        ("", 200),
        ("start=&end=", 200),
        ("start=2026-03-01T12:00:00", 200),
        ("start=2026-03-01T12:00:00.5", 200),
        ("start=2026-03-01%2012:00:00.5", 200),
        ("start=2026-03-01T12:00:00&start=yesterday", 200),
        ("start=yesterday&start=2026-03-01T12:00:00", 400),
        ("start=2026-03-01T12:00:00Z", 400),
        ("start=2026-03-01", 400),
        ("end=2026-03-01T12:00:00", 400),
        ("start=2026-03-02T12:00:00&end=2026-03-01T12:00:00", 400),
        ("start=2026-03-02T12:00:00&end=2026-03-02T12:00:00", 400),
    ],
)
def test_periods(cloud: Cloud, admin: User, query: str, status: int) -> None:
    assert admin.get(f"/os-simple-tenant-usage?{query}").status == status
    assert admin.get(f"/os-simple-tenant-usage/periods?{query}").status == status


def test_a_period_in_the_future_has_no_hours(cloud: Cloud, admin: User) -> None:
    ran(cloud, "future", "f", 0)
    found = usage(admin, "future", "start=2999-01-01T00:00:00&end=2999-02-01T00:00:00")
    assert found["total_hours"] == 0


def test_unknown_parameters_are_refused_since_2_75(cloud: Cloud, admin: User) -> None:
    for path in ("/os-simple-tenant-usage", "/os-simple-tenant-usage/p"):
        assert admin.at("2.74").get(f"{path}?colour=red").status == 200
        assert admin.at("2.75").get(f"{path}?colour=red").status == 400
    assert admin.at("2.75").get("/os-simple-tenant-usage/p?detailed=1").status == 400


def test_who_may_see_whose(cloud: Cloud, admin: User) -> None:
    reader = cloud.reader()
    assert reader.get("/os-simple-tenant-usage").status == 403
    assert reader.get(f"/os-simple-tenant-usage/wonderland?{DAY}").status == 200
    assert reader.get(f"/os-simple-tenant-usage/another?{DAY}").status == 403
    assert usage(admin, "nobody") == {}


def test_nobody_is_a_project_without_a_name(admin: User) -> None:
    assert admin.get("/os-simple-tenant-usage/").status == 404
