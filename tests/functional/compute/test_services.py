"""Services and availability zones."""

from __future__ import annotations

from typing import Any

import pytest
import sqlalchemy as sa

from moorage.compute.servers import servers
from moorage.core import uuids
from moorage.db.tables.placement import providers
from moorage.placement.client.contract import ReportedProvider
from tests.functional.compute.rows import add_node, add_server, add_service
from tests.support.compute import Cloud, User, cloud_on


def one(admin: User, host: str) -> dict[str, Any]:
    (found,) = admin.get(f"/os-services?host={host}").json["services"]
    return dict(found)


def test_list_by_microversion(cloud: Cloud, admin: User) -> None:
    uuid = add_service(cloud, "plain")
    at_1, at_11, at_53 = (one(admin.at(version), "plain") for version in ("2.1", "2.11", "2.53"))
    assert isinstance(at_1.pop("id"), int)
    updated_at = at_1.pop("updated_at")
    assert "T" in updated_at
    assert "+" not in updated_at
    assert at_1 == {
        "binary": "nova-compute",
        "host": "plain",
        "zone": "nova",
        "status": "enabled",
        "state": "up",
        "disabled_reason": None,
    }
    assert at_11["forced_down"] is False
    assert at_53["id"] == uuid


def test_filters(cloud: Cloud, admin: User) -> None:
    add_service(cloud, "filtered")
    add_service(cloud, "filtered", "nova-conductor")
    found = admin.get("/os-services?host=filtered&binary=nova-conductor").json["services"]
    assert [(service["binary"], service["zone"]) for service in found] == [("nova-conductor", "internal")]
    assert admin.get("/os-services?host=no-such").json == {"services": []}
    assert admin.at("2.74").get("/os-services?colour=red").status == 200
    assert admin.at("2.75").get("/os-services?colour=red").status == 400


def test_state_follows_the_last_sign_of_life(cloud: Cloud, admin: User) -> None:
    add_service(cloud, "fresh", age=50)
    add_service(cloud, "stale", age=70)
    assert (one(admin, "fresh")["state"], one(admin, "stale")["state"]) == ("up", "down")


def test_actions_before_2_53(cloud: Cloud, admin: User) -> None:
    add_service(cloud, "acting")
    old = admin.at("2.11")
    who = {"host": "acting", "binary": "nova-compute"}
    assert old.put("/os-services/disable", who).json == {"service": {**who, "status": "disabled"}}
    assert one(admin, "acting")["status"] == "disabled"
    reasoned = old.put("/os-services/disable-log-reason", {**who, "disabled_reason": "fire"})
    assert reasoned.json["service"]["disabled_reason"] == "fire"
    assert one(admin, "acting")["disabled_reason"] == "fire"
    assert old.put("/os-services/enable", who).json["service"]["status"] == "enabled"
    assert one(admin, "acting")["disabled_reason"] is None
    forced = old.put("/os-services/force-down", {**who, "forced_down": "true"})
    assert forced.json == {"service": {**who, "forced_down": True}}
    assert one(admin, "acting")["state"] == "down"


@pytest.mark.parametrize(
    ("version", "action", "more", "status"),
    [
        ("2.1", "disable-log-reason", {}, 400),
        ("2.1", "paint", {}, 404),
        ("2.1", "force-down", {}, 404),
        ("2.10", "force-down", {"forced_down": True}, 400),
        ("2.11", "force-down", {}, 400),
        ("2.1", "disable", {"host": "no-such"}, 404),
        ("2.1", "disable", {"binary": "nova-conductor"}, 400),
        ("2.1", "disable", {"host": "no-such", "binary": "nova-conductor"}, 400),
        ("2.1", "disable", {"host": "bad host!"}, 400),
        ("2.1", "disable-log-reason", {"disabled_reason": ""}, 400),
    ],
)
def test_bad_actions(
    cloud: Cloud, admin: User, version: str, action: str, more: dict[str, Any], status: int
) -> None:
    if not admin.get("/os-services?host=steady").json["services"]:
        add_service(cloud, "steady")
        add_service(cloud, "steady", "nova-conductor")
    before = admin.get("/os-services?host=steady").json
    body = {"host": "steady", "binary": "nova-compute", **more}
    assert admin.at(version).put(f"/os-services/{action}", body).status == status
    assert admin.get("/os-services?host=steady").json == before


def test_update_by_uuid_from_2_53_on(cloud: Cloud, admin: User) -> None:
    uuid = add_service(cloud, "modern")
    path = f"/os-services/{uuid}"
    disabled = admin.put(path, {"status": "disabled", "disabled_reason": "rain"}).json["service"]
    assert (disabled["status"], disabled["disabled_reason"], disabled["id"]) == ("disabled", "rain", uuid)
    assert admin.put(path, {"forced_down": True}).json["service"]["state"] == "down"
    assert admin.put(path, {"status": "enabled", "forced_down": False}).json["service"] == {
        **disabled,
        "status": "enabled",
        "disabled_reason": None,
        "state": "up",
    }
    assert admin.put(path, {}).fault[0] == "badRequest"
    assert admin.put(path, {"disabled_reason": "x"}).status == 400
    assert admin.put(path, {"status": "enabled", "disabled_reason": "x"}).status == 400
    assert admin.put(path, {"host": "modern", "binary": "nova-compute"}).status == 400
    assert admin.put("/os-services/disable", {"status": "disabled"}).fault[1] == "Invalid uuid disable"
    assert admin.put(f"/os-services/{uuids.generate()}", {"status": "disabled"}).status == 404
    conductor = add_service(cloud, "modern", "nova-conductor")
    assert admin.put(f"/os-services/{conductor}", {"status": "disabled"}).status == 400


def test_delete_takes_nodes_and_providers_along(cloud: Cloud, admin: User) -> None:
    uuid = add_service(cloud, "leaving")
    node = add_node(cloud, "leaving", "leaving-node")
    cloud.service.placement.report([ReportedProvider(node, "leaving-node")])
    server = add_server(cloud, "busy", "leaving", node)
    assert admin.delete(f"/os-services/{uuid}").fault[0] == "conflictingRequest"
    assert server in str(admin.get(f"/os-hypervisors/{node}?with_servers=true").json)
    _delete_server(cloud, server)
    assert admin.delete(f"/os-services/{uuid}").status == 204
    assert admin.delete(f"/os-services/{uuid}").status == 404
    assert admin.get(f"/os-hypervisors/{node}").status == 404
    with cloud.database.read() as connection:
        assert connection.execute(sa.select(providers).where(providers.c.uuid == node)).first() is None


def test_delete_by_number_before_2_53(cloud: Cloud, admin: User) -> None:
    add_service(cloud, "numbered")
    old = admin.at("2.52")
    number = one(old, "numbered")["id"]
    assert old.delete("/os-services/x").status == 400
    assert admin.delete(f"/os-services/{number}").status == 400
    assert old.delete(f"/os-services/{number}").status == 204
    assert old.delete(f"/os-services/{number}").status == 404


def test_only_administrators(cloud: Cloud) -> None:
    member = cloud.member()
    uuid = add_service(cloud, "guarded")
    assert member.get("/os-services").status == 403
    assert member.put(f"/os-services/{uuid}", {"status": "disabled"}).status == 403
    assert member.delete(f"/os-services/{uuid}").status == 403
    assert member.get("/os-availability-zone/detail").status == 403
    assert member.get("/os-availability-zone").status == 200


def group_hosts(admin: User, zone: str, *hosts: str) -> str:
    """Make an aggregate that is a zone; its path."""
    body = {"aggregate": {"name": zone, "availability_zone": zone}}
    path = f"/os-aggregates/{admin.post('/os-aggregates', body).json['aggregate']['id']}"
    for host in hosts:
        assert admin.post(f"{path}/action", {"add_host": {"host": host}}).status == 200
    return path


def test_a_service_is_in_the_zone_of_its_aggregate(database_url: str) -> None:
    with cloud_on(database_url) as cloud:
        uuid = add_service(cloud, "east-1")
        assert one(cloud.admin, "east-1")["zone"] == "nova"
        path = group_hosts(cloud.admin, "east", "east-1")
        assert one(cloud.admin, "east-1")["zone"] == "east"
        changed = cloud.admin.put(f"/os-services/{uuid}", {"status": "disabled"}).json["service"]
        assert changed["zone"] == "east"
        metadata = {"set_metadata": {"metadata": {"availability_zone": "far-east"}}}
        assert cloud.admin.post(f"{path}/action", metadata).status == 200
        assert one(cloud.admin, "east-1")["zone"] == "far-east"
        assert cloud.admin.post(f"{path}/action", {"remove_host": {"host": "east-1"}}).status == 200
        assert one(cloud.admin, "east-1")["zone"] == "nova"


def test_zones(database_url: str) -> None:
    with cloud_on(database_url) as cloud:
        add_service(cloud, "here")
        add_service(cloud, "there", disabled=True)
        group_hosts(cloud.admin, "east", "there")
        add_service(cloud, "control", "nova-conductor", age=100)
        listed = cloud.member().get("/os-availability-zone").json["availabilityZoneInfo"]
        assert listed == [
            {"zoneName": "nova", "zoneState": {"available": True}, "hosts": None},
            {"zoneName": "east", "zoneState": {"available": False}, "hosts": None},
        ]
        detailed = cloud.admin.get("/os-availability-zone/detail").json["availabilityZoneInfo"]
        internal, default, east = detailed
        assert internal["zoneName"] == "internal"
        conductor = internal["hosts"]["control"]["nova-conductor"]
        assert (conductor["available"], conductor["active"]) == (False, True)
        assert default["hosts"]["here"]["nova-compute"]["available"] is True
        assert east["hosts"] is None


def _delete_server(cloud: Cloud, uuid: str) -> None:
    with cloud.database.write() as connection:
        servers.mark_deleted(connection, [servers.find(connection, uuid).id])
