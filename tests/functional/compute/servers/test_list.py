"""GET /servers and /servers/detail: filters, order and pages."""

from __future__ import annotations

from datetime import timedelta
from urllib.parse import urlsplit

import pytest
import sqlalchemy as sa

from moorage.core.clock import utcnow
from moorage.db.tables import compute as tables
from tests.functional.compute.servers.conftest import ABSENT, PICKY_IMAGE, Cloud, User


def names(user: User, query: str = "", version: str = "2.96", path: str = "/servers") -> list[str]:
    return [server["name"] for server in user.get(f"{path}?{query}", version)["servers"]]


def chosen(user: User, query: str = "", version: str = "2.96") -> list[str]:
    return sorted(names(user, query, version))


@pytest.fixture
def fleet(cloud: Cloud) -> Cloud:
    """In project red an `active` server, a `web` one on host2 that is stopped and locked, and one in `build`;
    a deleted one; and one of another project."""
    active = cloud.alice.booted(name="active", tags=["a", "b"])
    addresses = {"pool": [{"addr": "10.0.0.5", "version": 4}, {"addr": "fd00::5", "version": 6}]}
    cloud.run(active, addresses=addresses, availability_zone="nova")
    web = cloud.alice.booted(name="web.1", flavorRef="big", tags=["b"], description="shop", config_drive=True)
    cloud.run(web, "host2", vm_state="stopped", power_state=4, locked_by="owner", availability_zone="west")
    cloud.alice.booted(name="build", imageRef="aaaaaaaa-0000-4000-8000-000000000001")
    gone = cloud.alice.booted(name="gone")
    cloud.end(gone)
    cloud.run(cloud.bob.booted(name="other"))
    return cloud


def test_everybody_sees_the_own_project_newest_first(fleet: Cloud) -> None:
    assert names(fleet.alice) == ["build", "web.1", "active"]
    assert names(fleet.rita, path="/servers/detail") == ["build", "web.1", "active"]
    assert names(fleet.bob) == ["other"]
    assert names(fleet.admin) == []
    assert names(fleet.admin, "all_tenants=1") == ["other", "build", "web.1", "active"]
    assert "get_all_tenants" in fleet.alice.refused(403, "GET", "/servers?all_tenants=1")
    assert names(fleet.alice, "all_tenants=0") == ["build", "web.1", "active"]
    assert "Unrecognized value" in fleet.alice.refused(400, "GET", "/servers?all_tenants=maybe")


@pytest.mark.parametrize(
    ("query", "found"),
    [
        ("name=web", ["web.1"]),
        ("name=^(build|active)$", ["active", "build"]),
        ("name=web%5C.1", ["web.1"]),
        ("status=ACTIVE", ["active"]),
        ("status=shutoff", ["web.1"]),
        ("status=ACTIVE&status=BUILD", ["active", "build"]),
        ("status=PAUSED", []),
        ("flavor=big", ["web.1"]),
        ("flavor=nope", []),
        (f"image={PICKY_IMAGE}", []),
        ("ip=10.0", ["active"]),
        ("ip=^10.0.0.6$", []),
        ("ip6=fd00", ["active"]),
        ("ip6=10.0", []),
        ("tags=a,b", ["active"]),
        ("tags=b", ["active", "web.1"]),
        ("tags-any=a,x", ["active"]),
        ("not-tags=a,b", ["build", "web.1"]),
        ("not-tags-any=a,b", ["build"]),
        ("locked=true", ["web.1"]),
        ("locked=0", ["active", "build"]),
        ("availability_zone=west", ["web.1"]),
        ("config_drive=true", ["web.1"]),
        ("vm_state=active", ["active"]),
        ("task_state=scheduling", ["build"]),
        ("power_state=4", ["web.1"]),
        ("user_id=alice", ["active", "build", "web.1"]),
        ("user_id=carol", []),
        ("hostname=web-1", ["web.1"]),
        ("created_at=^20", ["active", "build", "web.1"]),
    ],
)
def test_filters(fleet: Cloud, query: str, found: list[str]) -> None:
    assert chosen(fleet.alice, query) == found


@pytest.mark.parametrize("query", ["host=host2", "node=host2", "display_description=shop", f"uuid={ABSENT}"])
def test_filters_that_tell_about_the_cloud_are_for_administrators(fleet: Cloud, query: str) -> None:
    assert len(chosen(fleet.alice, query)) == 3
    assert len(chosen(fleet.admin, f"all_tenants=1&{query}")) == (0 if "uuid" in query else 1)


def test_administrators_filter_by_project(fleet: Cloud) -> None:
    assert chosen(fleet.admin, "all_tenants=1&project_id=blue") == ["other"]
    assert chosen(fleet.admin, "all_tenants=1&tenant_id=blue") == ["other"]
    assert chosen(fleet.admin, "project_id=blue") == []
    assert chosen(fleet.alice, "project_id=blue") == ["active", "build", "web.1"]


def test_versions_open_filters(fleet: Cloud) -> None:
    assert len(chosen(fleet.alice, "tags=a", "2.25")) == 3
    assert chosen(fleet.alice, "tags=a", "2.26") == ["active"]
    assert len(chosen(fleet.alice, "locked=true", "2.72")) == 3
    assert len(chosen(fleet.admin, "all_tenants=1&locked=true", "2.72")) == 4
    assert len(chosen(fleet.admin, "all_tenants=1&locked=maybe&changes-before=tuesday", "2.1")) == 4
    assert len(chosen(fleet.alice, "power_state=4", "2.82")) == 3
    assert chosen(fleet.alice, "power_state=4", "2.83") == ["web.1"]
    assert len(chosen(fleet.alice, "ip6=fd00", "2.4")) == 3
    assert len(chosen(fleet.alice, "status=NONSENSE", "2.37")) == 0
    assert (
        fleet.alice.refused(400, "GET", "/servers?status=NONSENSE", version="2.38") == "Invalid status value"
    )
    assert len(chosen(fleet.alice, "nonsense=1", "2.74")) == 3
    assert "'nonsense' was unexpected" in fleet.alice.refused(
        400, "GET", "/servers?nonsense=1", version="2.75"
    )


@pytest.mark.parametrize(
    "query",
    [
        "name=(",
        "name=",
        "flavor=(",
        "tags=",
        "config_drive=",
        "sort_key=uuid&sort_dir=asc&sort_dir=asc",
        "ip=[",
        "limit=-1",
        "limit=x",
        "changes-since=tuesday",
    ],
)
def test_what_can_not_be_read_is_refused(fleet: Cloud, query: str) -> None:
    assert "Invalid input for query parameters" in fleet.alice.refused(400, "GET", f"/servers?{query}")


def test_what_the_api_takes_without_effect(fleet: Cloud) -> None:
    assert len(chosen(fleet.alice, "marker=")) == 3, "the first page"
    assert len(chosen(fleet.admin, "all_tenants=1&description=nonsense")) == 4
    assert chosen(fleet.admin, "all_tenants=1&config_drive=nonsense") == []
    assert chosen(fleet.admin, "all_tenants=1&vm_state=deleted") == []


def test_an_expression_means_the_same_on_both_databases(fleet: Cloud) -> None:
    """PostgreSQL itself knows no groups with names, and takes `\\b` for a backspace."""
    assert names(fleet.alice, "name=(%3FP<n>web)") == ["web.1"]
    assert names(fleet.alice, "name=%5Cbweb%5Cb") == ["web.1"]
    assert fleet.alice.call("GET", "/servers?name=(%3F=web)").status_code == 400


def test_internal_fields_are_no_filters(fleet: Cloud) -> None:
    assert fleet.admin.refused(400, "GET", "/servers?metadata=x") == "Invalid filter field: metadata."
    assert fleet.admin.refused(400, "GET", "/servers?_x=1") == "Invalid filter field: _x."


def test_deleted_servers_are_listed_for_administrators(fleet: Cloud) -> None:
    assert names(fleet.admin, "all_tenants=1&deleted=true") == ["gone"]
    assert names(fleet.admin, "all_tenants=1&status=DELETED") == ["gone"]
    assert "Only administrators" in fleet.alice.refused(403, "GET", "/servers?status=DELETED")
    assert len(names(fleet.alice, "deleted=true")) == 3


def test_changes_show_what_was_deleted_too(fleet: Cloud) -> None:
    since = (utcnow() - timedelta(minutes=5)).strftime("%Y-%m-%dT%H:%M:%SZ")
    later = (utcnow() + timedelta(minutes=5)).strftime("%Y-%m-%dT%H:%M:%SZ")
    everything = ["active", "build", "gone", "web.1"]
    assert chosen(fleet.alice, f"changes-since={since}") == everything
    assert chosen(fleet.alice, f"changes-before={later}") == everything
    assert chosen(fleet.alice, f"changes-since={later}") == []
    assert chosen(fleet.alice, f"changes-before={since}") == []
    backwards = fleet.alice.refused(400, "GET", f"/servers?changes-since={later}&changes-before={since}")
    assert "must be less than or equal to" in backwards


def test_order(fleet: Cloud) -> None:
    assert names(fleet.alice, "sort_key=display_name&sort_dir=asc") == ["active", "build", "web.1"]
    assert names(fleet.alice, "sort_key=display_name") == ["web.1", "build", "active"]
    mixed = "sort_key=key_name&sort_dir=asc&sort_key=display_name&sort_dir=desc"
    assert names(fleet.alice, mixed) == ["web.1", "build", "active"]
    assert "Only administrators can sort" in fleet.alice.refused(403, "GET", "/servers?sort_key=host")
    assert names(fleet.admin, "all_tenants=1&sort_key=host&sort_dir=asc&limit=1") == ["build"]
    assert names(fleet.alice, "sort_key=vcpus", "2.74") == ["build", "web.1", "active"]
    assert "sort_key" in fleet.alice.refused(400, "GET", "/servers?sort_key=vcpus", version="2.75")
    assert "sort_key" in fleet.alice.refused(400, "GET", "/servers?sort_key=nonsense")
    assert "sort direction" in fleet.alice.refused(400, "GET", "/servers?sort_dir=up")


def test_names_are_sorted_alike_on_every_database(cloud: Cloud) -> None:
    """By the numbers of their characters, whatever a PostgreSQL's own idea is; and so are pages."""
    given = ["b-1", "a", "Z", "b2", "1", "b", "10", "A"]
    for name in given:
        cloud.alice.booted(name=name)
    assert names(cloud.alice, "sort_key=display_name&sort_dir=asc") == sorted(given)
    found: list[str] = []
    marker = ""
    while page := cloud.alice.get(f"/servers?sort_key=display_name&sort_dir=desc&limit=3{marker}")["servers"]:
        found += [server["name"] for server in page]
        marker = f"&marker={page[-1]['id']}"
    assert found == sorted(given, reverse=True)


@pytest.mark.parametrize(
    "order",
    [
        "",
        "sort_key=created_at&sort_dir=asc",
        "sort_key=availability_zone&sort_dir=desc",
        "sort_key=availability_zone&sort_dir=asc&sort_key=display_name&sort_dir=desc",
        "sort_key=launched_at&sort_dir=asc",
        "sort_key=config_drive",
    ],
)
def test_pages_add_up_to_the_whole_list(fleet: Cloud, order: str) -> None:
    whole = names(fleet.alice, order)
    paged, path = [], f"/servers/detail?limit=1&{order}"
    while path:
        page = fleet.alice.get(path)
        paged += [server["name"] for server in page["servers"]]
        [link] = page.get("servers_links") or [None]
        parts = urlsplit(link["href"]) if link else None
        path = f"{parts.path.removeprefix('/v2.1')}?{parts.query}" if parts else ""
    assert paged == whole
    assert len(whole) == 3


def test_a_marker_must_exist(fleet: Cloud) -> None:
    refusal = fleet.alice.refused(400, "GET", f"/servers?marker={ABSENT}")
    assert refusal == f"marker [{ABSENT}] not found"
    assert fleet.alice.get("/servers?limit=0") == {"servers": []}


def test_a_page_in_the_usual_order_comes_from_an_index(fleet: Cloud) -> None:
    """So that it costs the same whatever the number of servers."""
    if fleet.database.is_postgresql:
        pytest.skip("a table this small is rightly scanned by PostgreSQL")
    table = tables.servers
    query = (
        sa.select(table.c.uuid)
        .where(table.c.project_id == "red", table.c.deleted_at.is_(None))
        .where(sa.tuple_(table.c.created_at, table.c.id) < sa.tuple_(utcnow(), 5))
        .order_by(table.c.created_at.desc(), table.c.id.desc())
        .limit(10)
    )
    with fleet.database.read() as connection:
        text = str(query.compile(connection.engine, compile_kwargs={"literal_binds": False}))
        plan = connection.exec_driver_sql(f"EXPLAIN QUERY PLAN {text}", ("red", utcnow(), 5, 10, 0)).all()
    assert "USING INDEX ix_servers_project" in str(plan)
    assert "TEMP B-TREE" not in str(plan)


@pytest.mark.parametrize(
    ("query", "found"),
    [
        ("auto_disk_config=true", ["automatic"]),
        ("auto_disk_config=0", ["active", "build", "other", "web.1"]),
        ("auto_disk_config=colour", []),
        ("root_device_name=/dev/sda", []),
        ("root_device_name=vda$", ["active", "automatic", "build", "other", "web.1"]),
        ("kernel_id=abc", []),
        ("ramdisk_id=^$", ["active", "automatic", "build", "other", "web.1"]),
    ],
)
def test_what_is_shown_can_be_listed_by(fleet: Cloud, query: str, found: list[str]) -> None:
    fleet.run(fleet.alice.booted(name="automatic", **{"OS-DCF:diskConfig": "AUTO"}))
    assert chosen(fleet.admin, f"all_tenants=1&{query}") == found
