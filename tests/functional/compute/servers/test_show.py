"""GET, PUT and DELETE of one server, and what each version and each caller sees of it."""

from __future__ import annotations

from typing import Any

import pytest
import sqlalchemy as sa

from moorage.compute.servers.fault import fault
from moorage.db.tables import compute as tables
from tests.functional.compute.servers.conftest import ABSENT, IMAGE, Cloud

PLAIN = {
    *("id", "name", "status", "tenant_id", "user_id", "metadata", "hostId", "image", "flavor", "created"),
    *("updated", "addresses", "accessIPv4", "accessIPv6", "links", "OS-DCF:diskConfig", "progress"),
    *("OS-EXT-AZ:availability_zone", "config_drive", "key_name", "OS-SRV-USG:launched_at"),
    *("OS-SRV-USG:terminated_at", "security_groups", "OS-EXT-STS:task_state", "OS-EXT-STS:vm_state"),
    *("OS-EXT-STS:power_state", "os-extended-volumes:volumes_attached"),
}
ADMIN_2_1 = {f"OS-EXT-SRV-ATTR:{name}" for name in ("host", "instance_name", "hypervisor_hostname")}
ADMIN_2_3 = {
    f"OS-EXT-SRV-ATTR:{name}"
    for name in (
        *("hostname", "kernel_id", "launch_index", "ramdisk_id", "reservation_id"),
        *("root_device_name", "user_data"),
    )
}
STEPS: list[tuple[str, set[str]]] = [
    ("2.9", {"locked"}),
    ("2.19", {"description"}),
    ("2.26", {"tags"}),
    ("2.63", {"trusted_image_certificates"}),
    ("2.71", {"server_groups"}),
    ("2.73", {"locked_reason"}),
    ("2.90", {"OS-EXT-SRV-ATTR:hostname"}),
    ("2.96", {"pinned_availability_zone"}),
    ("2.100", {"scheduler_hints"}),
]


def running(cloud: Cloud, **wishes: Any) -> str:
    uuid = cloud.alice.booted(**wishes)
    address = {
        "addr": "10.0.0.5",
        "version": 4,
        "OS-EXT-IPS:type": "fixed",
        "OS-EXT-IPS-MAC:mac_addr": "fa:16:3e:00:00:01",
    }
    cloud.run(uuid, addresses={"pool": [address]}, progress=100)
    return uuid


def test_each_version_shows_its_fields(cloud: Cloud) -> None:
    uuid = running(cloud)
    for minor in range(1, 105):
        known = PLAIN.union(*(names for since, names in STEPS if minor >= int(since[2:])))
        shown = cloud.alice.get(f"/servers/{uuid}", f"2.{minor}")["server"]
        assert set(shown) == known, f"2.{minor}"
        [listed] = cloud.alice.get("/servers/detail", f"2.{minor}")["servers"]
        assert set(listed) == known - {"server_groups"}, f"2.{minor}"


def test_administrators_see_the_host(cloud: Cloud) -> None:
    uuid = running(cloud)
    seen = {}
    for version in ("2.1", "2.3", "2.16"):
        seen[version] = cloud.admin.get(f"/servers/{uuid}", version)["server"]
    assert set(seen["2.1"]) == PLAIN | ADMIN_2_1
    assert set(seen["2.3"]) == PLAIN | ADMIN_2_1 | ADMIN_2_3
    assert set(seen["2.16"]) == PLAIN | ADMIN_2_1 | ADMIN_2_3 | {"locked", "host_status"}
    assert seen["2.16"]["host_status"] == "UP"
    assert seen["2.1"]["OS-EXT-SRV-ATTR:host"] == "host1"
    assert seen["2.1"]["OS-EXT-SRV-ATTR:hypervisor_hostname"] == "host1-node"
    assert seen["2.1"]["OS-EXT-SRV-ATTR:instance_name"].startswith("instance-0000")


def test_the_host_has_a_status(cloud: Cloud) -> None:
    uuid, table = running(cloud), tables.services
    waiting = cloud.alice.booted()

    def status(server: str) -> str:
        [found] = [
            one for one in cloud.admin.get("/servers/detail?all_tenants=1")["servers"] if one["id"] == server
        ]
        assert cloud.admin.get(f"/servers/{server}")["server"]["host_status"] == found["host_status"]
        return str(found["host_status"])

    assert (status(uuid), status(waiting)) == ("UP", "")
    cloud.write(sa.update(table).values(disabled=True))
    assert status(uuid) == "MAINTENANCE"
    cloud.write(sa.update(table).values(seen_at=None))
    assert status(uuid) == "UNKNOWN"
    cloud.write(sa.update(table).values(forced_down=True))
    assert status(uuid) == "DOWN"


def test_values(cloud: Cloud) -> None:
    uuid = running(cloud, metadata={"a": "b"})
    shown = cloud.alice.get(f"/servers/{uuid}", "2.46")["server"]
    assert (shown["status"], shown["progress"], shown["OS-EXT-STS:power_state"]) == ("ACTIVE", 100, 1)
    assert (shown["tenant_id"], shown["user_id"], shown["metadata"]) == ("red", "alice", {"a": "b"})
    assert shown["flavor"]["id"] == "small"
    assert shown["flavor"]["links"][0]["rel"] == "bookmark"
    assert shown["image"]["id"] == IMAGE
    assert shown["addresses"]["pool"][0]["OS-EXT-IPS-MAC:mac_addr"] == "fa:16:3e:00:00:01"
    assert len(shown["hostId"]) == 56
    assert shown["created"].endswith("Z")
    embedded = cloud.alice.get(f"/servers/{uuid}", "2.47")["server"]["flavor"]
    assert embedded == {
        "vcpus": 1,
        "ram": 512,
        "disk": 5,
        "ephemeral": 0,
        "swap": 0,
        "original_name": "m1.small",
        "extra_specs": {"hw:cpu_policy": "shared"},
    }


def test_a_building_server_shows_no_address_and_a_failed_one_why(cloud: Cloud) -> None:
    uuid = cloud.alice.booted()
    cloud.run(uuid, vm_state="building", addresses={"pool": [{"addr": "10.0.0.5", "version": 4}]})
    assert cloud.alice.get(f"/servers/{uuid}")["server"]["addresses"] == {}
    broken = {**fault("No host has 8 CPUs left."), "details": "inner workings"}
    cloud.run(uuid, vm_state="error", fault=broken)
    shown = cloud.alice.get(f"/servers/{uuid}")["server"]
    assert shown["status"] == "ERROR"
    assert set(shown["fault"]) == {"code", "created", "message"}
    assert shown["fault"]["message"] == "No host has 8 CPUs left."
    assert cloud.admin.get(f"/servers/{uuid}")["server"]["fault"]["details"] == "inner workings"


def test_other_projects_servers_do_not_exist(cloud: Cloud) -> None:
    uuid = running(cloud)
    expected = f"Instance {uuid} could not be found."
    assert cloud.bob.refused(404, "GET", f"/servers/{uuid}") == expected
    assert cloud.bob.refused(404, "PUT", f"/servers/{uuid}", {"server": {"name": "x"}}) == expected
    assert cloud.bob.refused(404, "DELETE", f"/servers/{uuid}") == expected
    assert cloud.bob.refused(404, "POST", f"/servers/{uuid}/action", {"os-stop": None}) == expected
    assert cloud.bob.refused(404, "GET", f"/servers/{uuid}/metadata") == expected
    assert cloud.bob.refused(404, "GET", f"/servers/{uuid}/tags") == expected
    assert cloud.bob.refused(404, "GET", f"/servers/{uuid}/os-instance-actions") == expected
    assert cloud.bob.refused(404, "GET", f"/servers/{uuid}/ips") == expected
    assert "could not be found" in cloud.alice.refused(404, "GET", f"/servers/{ABSENT}")
    assert "could not be found" in cloud.alice.refused(404, "GET", "/servers/nonsense")
    assert cloud.rita.get(f"/servers/{uuid}")["server"]["id"] == uuid


def test_update(cloud: Cloud) -> None:
    uuid = running(cloud)

    def put(version: str, **server: Any) -> Any:
        answer = cloud.alice.call("PUT", f"/servers/{uuid}", {"server": server}, version=version)
        assert answer.status_code == 200, answer.text
        return answer.json["server"]

    shown = put("2.1", name="renamed", accessIPv4="192.0.2.1", accessIPv6="2001:db8::1")
    assert (shown["name"], shown["accessIPv4"], shown["accessIPv6"]) == (
        "renamed",
        "192.0.2.1",
        "2001:db8::1",
    )
    assert set(shown["addresses"]["pool"][0]) == {"addr", "version"}
    assert "OS-EXT-STS:vm_state" not in shown
    assert put("2.19", description="d")["description"] == "d"
    assert put("2.75", description=None)["description"] is None
    everything = put("2.90", hostname="web")
    assert everything == cloud.alice.get(f"/servers/{uuid}", "2.90")["server"]
    assert everything["OS-EXT-SRV-ATTR:hostname"] == "web"
    assert cloud.server(uuid).name == "renamed"


@pytest.mark.parametrize("version", ["2.1", "2.74", "2.75", "2.104"])
def test_the_disk_config_is_kept_and_may_be_changed(cloud: Cloud, version: str) -> None:
    uuid = running(cloud, metadata={"a": "b"}, **{"OS-DCF:diskConfig": "AUTO"})

    def put(**server: Any) -> Any:
        answer = cloud.alice.call("PUT", f"/servers/{uuid}", {"server": server}, version=version)
        assert answer.status_code == 200, answer.text
        shown = cloud.alice.get(f"/servers/{uuid}", version)["server"]
        assert answer.json["server"]["OS-DCF:diskConfig"] == shown["OS-DCF:diskConfig"]
        return shown

    assert put(name="renamed")["OS-DCF:diskConfig"] == "AUTO"
    before = cloud.server(uuid).request
    assert put(**{"OS-DCF:diskConfig": "MANUAL"})["OS-DCF:diskConfig"] == "MANUAL"
    assert put(name="again")["OS-DCF:diskConfig"] == "MANUAL"
    assert put(name="third", **{"OS-DCF:diskConfig": "AUTO"})["name"] == "third"
    assert cloud.server(uuid).request == before


@pytest.mark.parametrize(
    ("version", "server"),
    [
        ("2.18", {"description": "d"}),
        ("2.104", {"name": "x", "OS-DCF:diskConfig": "auto"}),
        ("2.89", {"hostname": "web"}),
        ("2.90", {"hostname": "web.example.org"}),
        ("2.104", {"name": ""}),
        ("2.104", {"flavorRef": "big"}),
        ("2.104", {"accessIPv4": "fd00::1"}),
    ],
)
def test_bad_updates_change_nothing(cloud: Cloud, version: str, server: dict[str, Any]) -> None:
    uuid = running(cloud)
    before = cloud.server(uuid)
    cloud.alice.refused(400, "PUT", f"/servers/{uuid}", {"server": server}, version)
    assert cloud.server(uuid) == before
    cloud.rita.refused(403, "PUT", f"/servers/{uuid}", {"server": {"name": "x"}})
    assert cloud.server(uuid) == before


def test_what_newer_versions_show(cloud: Cloud) -> None:
    uuid = cloud.alice.booted(hints={"query": "[]", "same_host": [ABSENT]})
    path = f"/servers/{uuid}"
    assert "properties" not in cloud.alice.get(path, "2.97")["server"]["image"]
    assert cloud.alice.get(path, "2.98")["server"]["image"]["properties"] == {"hw_disk_bus": "virtio"}
    hints = {"query": ["[]"], "same_host": [ABSENT]}
    assert cloud.alice.get(path, "2.100")["server"]["scheduler_hints"] == hints
    cloud.alice.refused(404, "GET", f"{path}/shares", version="2.96")
    assert cloud.alice.get(f"{path}/shares", "2.97") == {"shares": []}
    cloud.alice.refused(404, "GET", f"{path}/shares/{ABSENT}")
    cloud.alice.refused(404, "DELETE", f"{path}/shares/{ABSENT}")
    cloud.alice.refused(404, "POST", f"{path}/shares", {"share": {"share_id": ABSENT}})
    cloud.alice.refused(400, "POST", f"{path}/shares", {"share": {}})


def test_since_2_102_unknown_parameters_are_refused(cloud: Cloud) -> None:
    uuid = running(cloud)
    for path in (f"/servers/{uuid}", "/flavors/small", "/os-availability-zone", f"/servers/{uuid}/ips"):
        cloud.alice.get(f"{path}?colour=red", "2.101")
        assert "colour" in cloud.alice.refused(400, "GET", f"{path}?colour=red", version="2.102")
    flavors = cloud.alice.get("/flavors?name=^m1.*g$", "2.102")["flavors"]
    assert [one["name"] for one in flavors] == ["m1.big"]
    cloud.alice.refused(400, "GET", "/flavors?name=^m1", version="2.101")
    cloud.alice.refused(400, "GET", "/flavors?name=(", version="2.102")
    cloud.alice.refused(400, "GET", "/flavors?sort_key=rxtx_factor", version="2.102")
    shown = cloud.alice.get("/flavors/small", "2.102")["flavor"]
    assert not {"rxtx_factor", "OS-FLV-DISABLED:disabled"} & set(shown)
    assert {"rxtx_factor", "OS-FLV-DISABLED:disabled"} < set(
        cloud.alice.get("/flavors/small", "2.101")["flavor"]
    )


def test_since_2_104_a_server_is_freed_of_its_zone_and_pinned_again(cloud: Cloud) -> None:
    uuid = running(cloud)
    cloud.run(uuid, availability_zone="nova", requested_zone="nova")

    def pin(zone: str | None, status: int = 200, version: str = "2.104") -> Any:
        body = {"server": {"pinned_availability_zone": zone}}
        answer = cloud.alice.call("PUT", f"/servers/{uuid}", body, version=version)
        assert answer.status_code == status, answer.text
        return answer.json

    pin("nova", 400, "2.103")
    assert "Unpin first" in pin("west", 409)["conflictingRequest"]["message"]
    for zone in ("nova", None, None):
        assert pin(zone)["server"]["pinned_availability_zone"] == zone
    assert "current availability zone 'nova'" in pin("west", 409)["conflictingRequest"]["message"]
    assert pin("nova")["server"]["pinned_availability_zone"] == "nova"


def test_delete_ends_what_is_going_on_and_is_said_once(cloud: Cloud) -> None:
    uuid = cloud.alice.booted()
    assert cloud.alice.call("DELETE", f"/servers/{uuid}").status_code == 204
    assert cloud.server(uuid).task_state == "deleting"
    assert cloud.operations(uuid) == [("build", "cancelled"), ("delete", None)]
    assert len(cloud.woken) == 2
    cloud.rita.refused(403, "DELETE", f"/servers/{uuid}")
    assert cloud.alice.call("DELETE", f"/servers/{uuid}").status_code == 204
    assert cloud.operations(uuid) == [("build", "cancelled"), ("delete", None)]
    cloud.end(uuid)
    cloud.alice.refused(404, "GET", f"/servers/{uuid}")
    cloud.alice.refused(404, "DELETE", f"/servers/{uuid}")
    cloud.rita.refused(404, "DELETE", f"/servers/{uuid}")


def test_addresses_and_diagnostics(cloud: Cloud) -> None:
    uuid = running(cloud)
    plain = [{"addr": "10.0.0.5", "version": 4}]
    assert cloud.alice.get(f"/servers/{uuid}/ips") == {"addresses": {"pool": plain}}
    assert cloud.alice.get(f"/servers/{uuid}/ips/pool") == {"pool": plain}
    assert "not a member" in cloud.alice.refused(404, "GET", f"/servers/{uuid}/ips/nope")
    cloud.alice.refused(403, "GET", f"/servers/{uuid}/diagnostics")
    refusal = cloud.admin.refused(501, "GET", f"/servers/{uuid}/diagnostics")
    assert refusal == "The requested functionality is not supported."
    assert cloud.alice.get(f"/servers/{uuid}/os-volume_attachments") == {"volumeAttachments": []}
    console = {"remote_console": {"protocol": "vnc", "type": "novnc"}}
    cloud.alice.refused(501, "POST", f"/servers/{uuid}/remote-consoles", console)
    cloud.alice.refused(404, "POST", f"/servers/{uuid}/remote-consoles", console, version="2.5")


def test_an_administrator_is_told_why_a_server_is_where_it_is(cloud: Cloud) -> None:
    uuid = running(cloud)
    row = {"server_id": cloud.server(uuid).id, "attempt": 1, "trace": {"chosen": "host1"}}
    cloud.write(sa.insert(tables.traces).values(row))
    told = cloud.admin.get(f"/servers/{uuid}/moorage-trace")
    assert told["server_id"] == uuid
    assert [decision["trace"] for decision in told["traces"]] == [{"chosen": "host1"}]
    cloud.alice.refused(403, "GET", f"/servers/{uuid}/moorage-trace")
