"""POST /servers: what is accepted, what is written, and what is refused without a trace."""

from __future__ import annotations

import base64
from typing import Any

import pytest
import sqlalchemy as sa

from moorage.compute.servers.states import VmState
from moorage.db.tables import compute as tables
from tests.functional.compute.servers.conftest import (
    ABSENT,
    IMAGE,
    NETWORK,
    PICKY_IMAGE,
    QUEUED_IMAGE,
    Cloud,
    sentence,
)


def test_a_boot_is_accepted_written_down_and_handed_to_the_conductor(cloud: Cloud) -> None:
    answer = cloud.alice.boot(metadata={"a": "b"}, description="mine", tags=["t"], hostname="web-1")
    assert answer.status_code == 202
    shown = answer.json["server"]
    assert set(shown) == {"id", "links", "OS-DCF:diskConfig", "security_groups", "adminPass"}
    assert len(shown["adminPass"]) == 12
    assert shown["security_groups"] == [{"name": "default"}]
    assert answer.headers["location"] == shown["links"][0]["href"]
    assert shown["links"][0]["href"].endswith(f"/v2.1/servers/{shown['id']}")
    assert shown["links"][1]["href"].endswith(f"/servers/{shown['id']}")
    assert "v2.1" not in shown["links"][1]["href"]

    server = cloud.server(shown["id"])
    assert (server.project_id, server.user_id) == ("red", "alice")
    assert (server.vm_state, server.task_state, server.status) == (VmState.BUILDING, "scheduling", "BUILD")
    assert server.flavor["id"] == "small"
    assert server.flavor["extra_specs"] == {"hw:cpu_policy": "shared"}
    assert (server.metadata, server.tags, server.hostname) == ({"a": "b"}, ["t"], "web-1")
    assert server.request["networks"] == "auto"
    assert server.request["image"]["properties"] == {"hw_disk_bus": "virtio"}
    assert cloud.operations(server.uuid) == [("build", None)]
    assert cloud.usage("red") == (1, 1, 512)
    assert cloud.woken == [1]
    [action] = cloud.alice.get(f"/servers/{server.uuid}/os-instance-actions")["instanceActions"]
    assert action["action"] == "create"
    assert action["request_id"] == answer.headers["x-openstack-request-id"]


def test_several_servers_have_numbered_names_and_one_reservation(cloud: Cloud) -> None:
    answer = cloud.alice.boot(name="Web_1", min_count=2, max_count="3", return_reservation_id=True)
    assert answer.status_code == 202
    reservation = answer.json["reservation_id"]
    found = cloud.admin.get(f"/servers/detail?all_tenants=1&reservation_id={reservation}")["servers"]
    assert sorted(server["name"] for server in found) == ["Web_1-1", "Web_1-2", "Web_1-3"]
    hostnames = {server["OS-EXT-SRV-ATTR:hostname"] for server in found}
    assert hostnames == {"web-1-1", "web-1-2", "web-1-3"}
    assert sorted(server["OS-EXT-SRV-ATTR:launch_index"] for server in found) == [0, 1, 2]
    assert cloud.usage("red") == (3, 3, 3 * 512)


def test_quotas_hold_and_say_what_is_over(cloud: Cloud) -> None:
    cloud.alice.booted(flavorRef="big", min_count=2)
    refusal = sentence(cloud.alice.boot(flavorRef="big"), 403)
    assert refusal == "Quota exceeded for cores: Requested 8, but already used 16 of 20 cores"
    assert cloud.usage("red") == (2, 16, 2 * 8192)
    assert cloud.count() == 2
    cloud.bob.booted(flavorRef="big")


_SMALL = "VGhpcyBpcyBhIHRlc3Q="


@pytest.mark.parametrize(
    ("files", "status", "refusal"),
    [
        ([{"path": "/etc/motd", "contents": _SMALL}] * 6, 403, "Personality file limit exceeded"),
        ([{"path": "/" * 256, "contents": _SMALL}], 403, "Personality file path exceeds maximum 255"),
        (
            [{"path": "/etc/motd", "contents": "AAAA" * 2561}],
            403,
            "Personality file content exceeds maximum 10240",
        ),
        (
            [{"path": "/etc/motd", "contents": "not base64!"}],
            400,
            "Invalid input for field/attribute contents. Value: not base64!. 'not base64!' is not a 'base64'",
        ),
    ],
)
def test_files_to_inject_are_limited(
    cloud: Cloud, files: list[dict[str, str]], status: int, refusal: str
) -> None:
    assert sentence(cloud.alice.boot("2.56", networks="auto", personality=files), status) == refusal
    assert cloud.count() == 0


def test_as_many_files_as_may_be_injected_are_taken(cloud: Cloud) -> None:
    files = [{"path": f"/etc/{number}", "contents": "AAAA" * 2560} for number in range(5)]
    assert cloud.alice.boot("2.56", networks="auto", personality=files).status_code == 202


def test_a_range_of_servers_gets_as_many_as_the_quota_lets(cloud: Cloud) -> None:
    cloud.alice.booted(min_count=1, max_count=50)
    assert cloud.usage("red")[0] == 10
    refusal = sentence(cloud.alice.boot(min_count=1, max_count=2), 403)
    assert refusal == "Quota exceeded for instances: Requested 1-2, but already used 10 of 10 instances"


def test_limits_of_a_user_count_that_users_servers(cloud: Cloud) -> None:
    cloud.limit("red", "alice", instances=1)
    cloud.alice.booted()
    assert "but already used 1 of 1 instances" in sentence(cloud.alice.boot(), 403)
    cloud.limit("red", instances=-1)
    assert "but already used 1 of 1 instances" in sentence(cloud.alice.boot(), 403)
    assert cloud.usage("red")[0] == 1


def test_what_a_deleted_server_used_is_given_back_once(cloud: Cloud) -> None:
    uuid = cloud.alice.booted()
    cloud.end(uuid)
    cloud.end(uuid)
    assert cloud.usage("red") == (0, 0, 0)


def test_a_server_joins_its_group_unless_that_is_full(cloud: Cloud) -> None:
    group = "dddddddd-0000-4000-8000-000000000001"
    row = {"uuid": group, "project_id": "red", "user_id": "alice", "name": "g", "policy": "affinity"}
    cloud.write(sa.insert(tables.server_groups).values(**row, rules={}))
    uuid = cloud.alice.booted(hints={"group": group})
    assert cloud.alice.get(f"/servers/{uuid}")["server"]["server_groups"] == [group]
    assert cloud.server(uuid).request["group"] == group
    cloud.limit("red", server_group_members=1)
    refusal = sentence(cloud.alice.boot(hints={"group": group}), 403)
    assert refusal == "Quota exceeded, too many servers in group"
    assert cloud.usage("red")[0] == 1
    assert "could not be found" in sentence(cloud.bob.boot(hints={"group": group}), 400)
    assert cloud.usage("blue")[0] == 0


REFUSED: list[tuple[dict[str, Any], str]] = [
    ({"imageRef": ABSENT}, "Can not find requested image"),
    ({"imageRef": QUEUED_IMAGE}, f"Image {QUEUED_IMAGE} is not active."),
    ({"imageRef": PICKY_IMAGE}, "Flavor's memory is too small for requested image."),
    ({"imageRef": PICKY_IMAGE, "flavorRef": "big"}, "Flavor's disk is smaller than the minimum size"),
    ({"imageRef": ""}, "Invalid imageRef provided."),
    ({"flavorRef": "nope"}, "Flavor nope could not be found."),
    ({"flavorRef": "secret"}, "Flavor secret could not be found."),
    ({"key_name": "nope"}, "Invalid key_name provided."),
    ({"user_data": "not base64!"}, "is not a 'base64'"),
    ({"name": " padded"}, "Invalid input for field/attribute name"),
    ({"name": ""}, "Invalid input for field/attribute name"),
    ({"min_count": 3, "max_count": 2}, "min_count must be <= max_count"),
    ({"min_count": 0}, "Invalid input for field/attribute min_count"),
    ({"availability_zone": "nowhere"}, "The requested availability zone is not available"),
    ({"availability_zone": "a:b:c:d"}, "Unable to parse availability_zone"),
    ({"hostname": "one", "max_count": 2}, "Unable to allocate a single hostname"),
    ({"networks": [{"uuid": "not-one"}]}, "Invalid input for field/attribute"),
    ({"networks": [{"fixed_ip": "10.0.0.1"}]}, "Bad network format: missing 'uuid'"),
    ({"networks": [{"port": IMAGE}, {"port": IMAGE}]}, "was specified twice"),
    ({"networks": [{"port": IMAGE, "fixed_ip": "10.0.0.1"}]}, "the two cannot be specified together"),
    ({"networks": [{"port": IMAGE}], "max_count": 2}, "Unable to launch multiple instances"),
    ({"networks": "some"}, "Invalid input for field/attribute networks"),
    ({"block_device_mapping_v2": [{"source_type": "volume", "uuid": "v1"}]}, "failed to get volume v1"),
    ({"block_device_mapping": [{"volume_id": ABSENT}]}, "failed to get volume"),
    ({"accessIPv4": "1.2.3.400"}, "is not a 'ipv4'"),
    ({"metadata": {"bad/key": "v"}}, "does not match any of the regexes"),
    ({"personality": []}, "Additional properties are not allowed"),
    ({"tags": ["a,b"]}, "Invalid input for field/attribute"),
]


@pytest.mark.parametrize(("asked", "words"), REFUSED)
def test_bad_wishes_are_refused_and_leave_nothing(cloud: Cloud, asked: dict[str, Any], words: str) -> None:
    assert words in sentence(cloud.alice.boot(**asked), 400)
    assert cloud.count() == 0
    assert cloud.usage("red") == (0, 0, 0)
    assert cloud.woken == []


def test_only_administrators_choose_hosts(cloud: Cloud) -> None:
    assert "forced_host" in sentence(cloud.alice.boot(availability_zone="nova:host1"), 403)
    assert "requested_destination" in sentence(cloud.alice.boot(host="host1"), 403)
    forced = cloud.server(cloud.admin.booted(availability_zone="nova:host1:host1-node")).request
    assert (forced["host"], forced["node"], forced["forced"]) == ("host1", "host1-node", True)
    asked = cloud.server(cloud.admin.booted(host="host2", hypervisor_hostname="host2-node")).request
    assert (asked["host"], asked["node"], asked["forced"]) == ("host2", "host2-node", False)
    refusal = sentence(cloud.admin.boot(host="host9"), 400)
    assert refusal == "Compute host host9 could not be found."
    others: tuple[dict[str, Any], ...] = (
        {"host": "host1", "hypervisor_hostname": "host2-node"},
        {"availability_zone": "nova:host1:host2-node"},
    )
    for elsewhere in others:
        assert "Compute host host2-node could not be found." in sentence(cloud.admin.boot(**elsewhere), 400)
    both = cloud.admin.boot(host="host1", availability_zone="nova:host1")
    assert "mutually exclusive" in sentence(both, 400)


def test_a_zone_is_pinned_when_it_was_asked_for(cloud: Cloud) -> None:
    pinned, free = cloud.alice.booted(availability_zone="west"), cloud.alice.booted()
    assert cloud.alice.get(f"/servers/{pinned}")["server"]["pinned_availability_zone"] == "west"
    assert cloud.alice.get(f"/servers/{free}")["server"]["pinned_availability_zone"] is None
    cloud.alice.booted(availability_zone="nova")


def test_a_flavor_without_disk_is_for_administrators(cloud: Cloud) -> None:
    refusal = sentence(cloud.alice.boot(flavorRef="diskless"), 403)
    assert refusal == "Only volume-backed servers are allowed for flavors with zero disk."
    cloud.admin.booted(flavorRef="diskless")


def test_readers_and_strangers_boot_nothing(cloud: Cloud) -> None:
    assert "os_compute_api:servers:create" in sentence(cloud.rita.boot(), 403)
    assert cloud.count() == 0


def test_a_key_goes_with_the_server(cloud: Cloud) -> None:
    row = {"user_id": "alice", "name": "k", "type": "ssh", "public_key": "ssh-rsa AAA", "fingerprint": "f"}
    cloud.write(sa.insert(tables.keypairs).values(row))
    server = cloud.server(cloud.alice.booted(key_name="k"))
    assert (server.key_name, server.request["public_key"]) == ("k", "ssh-rsa AAA")
    assert sentence(cloud.bob.boot(key_name="k"), 400) == "Invalid key_name provided."


@pytest.mark.parametrize(
    ("version", "asked", "status"),
    [
        ("2.1", {}, 202),
        ("2.18", {"description": "d"}, 400),
        ("2.19", {"description": "d"}, 202),
        ("2.31", {"networks": [{"uuid": NETWORK, "tag": "t"}]}, 400),
        ("2.32", {"networks": [{"uuid": NETWORK, "tag": "t"}]}, 202),
        ("2.36", {"networks": "auto"}, 400),
        ("2.36", {}, 202),
        ("2.37", {"networks": "none"}, 202),
        ("2.37", {}, 400),
        ("2.37", {"networks": [{"uuid": NETWORK, "tag": "t"}]}, 400),
        ("2.42", {"networks": [{"uuid": NETWORK, "tag": "t"}]}, 202),
        ("2.51", {"networks": "auto", "tags": ["t"]}, 400),
        ("2.52", {"networks": "auto", "tags": ["t"]}, 202),
        ("2.56", {"networks": "auto", "personality": []}, 202),
        ("2.57", {"networks": "auto", "personality": []}, 400),
        ("2.62", {"networks": "auto", "trusted_image_certificates": ["c"]}, 400),
        ("2.63", {"networks": "auto", "trusted_image_certificates": ["c"]}, 202),
        ("2.73", {"networks": "auto", "host": "host1"}, 400),
        ("2.74", {"networks": "auto", "host": "host1"}, 202),
        ("2.89", {"networks": "auto", "hostname": "web"}, 400),
        ("2.90", {"networks": "auto", "hostname": "web"}, 202),
        ("2.90", {"networks": "auto", "hostname": "web.example.org"}, 400),
        ("2.94", {"networks": "auto", "hostname": "web.example.org"}, 202),
    ],
)
def test_each_version_takes_what_it_knows(
    cloud: Cloud, version: str, asked: dict[str, Any], status: int
) -> None:
    answer = cloud.admin.boot(version, **asked)
    assert answer.status_code == status, answer.text


def test_before_descriptions_the_name_stood_for_one(cloud: Cloud) -> None:
    answer = cloud.alice.boot("2.1", name="web")
    assert cloud.server(answer.json["server"]["id"]).description == "web"
    assert cloud.server(cloud.alice.booted()).description is None


def test_user_data_and_password_are_taken_as_given(cloud: Cloud) -> None:
    text = base64.b64encode(b"#cloud-config").decode()
    answer = cloud.alice.boot(user_data=text, adminPass="hunter2", config_drive="True")
    assert answer.json["server"]["adminPass"] == "hunter2"
    server = cloud.server(answer.json["server"]["id"])
    assert (server.user_data, server.config_drive) == (text, True)
    shown = cloud.admin.get(f"/servers/{server.uuid}")["server"]
    assert (shown["config_drive"], shown["OS-EXT-SRV-ATTR:user_data"]) == ("True", text)


def test_how_the_disk_is_partitioned_is_remembered(cloud: Cloud) -> None:
    partitioned: dict[str, Any] = {"OS-DCF:diskConfig": "AUTO"}
    answer = cloud.alice.boot(**partitioned)
    assert answer.json["server"]["OS-DCF:diskConfig"] == "AUTO"
    uuid = answer.json["server"]["id"]
    assert cloud.alice.get(f"/servers/{uuid}")["server"]["OS-DCF:diskConfig"] == "AUTO"
    other = cloud.alice.booted()
    assert cloud.alice.get(f"/servers/{other}")["server"]["OS-DCF:diskConfig"] == "MANUAL"


def test_a_zone_may_be_asked_for_while_an_enabled_host_is_in_it(cloud: Cloud) -> None:
    gone = "The requested availability zone is not available"
    services = tables.services
    cloud.alice.booted(availability_zone="west")
    cloud.write(sa.update(services).where(services.c.host == "host2").values(disabled=True))
    assert sentence(cloud.alice.boot(availability_zone="west"), 400) == gone
    cloud.write(sa.update(services).where(services.c.host == "host1").values(disabled=True))
    assert sentence(cloud.alice.boot(availability_zone="nova"), 400) == gone


def test_files_to_inject_are_few_small_and_encoded(cloud: Cloud) -> None:
    """Up to 2.56; later there is user data."""
    cloud.limit("red", injected_files=2, injected_file_path_length=9, injected_file_content_bytes=8)
    file = {"path": "/etc/motd", "contents": "SGVsbG8="}

    def boot(*files: dict[str, str]) -> Any:
        return cloud.alice.boot("2.56", personality=list(files), networks="none")

    assert boot(file, file).status_code == 202
    assert sentence(boot(file, file, file), 403) == "Personality file limit exceeded"
    large = {**file, "contents": "SGVsbG8gISE="}
    assert sentence(boot(large), 403) == "Personality file content exceeds maximum 8"
    both = {**large, "path": "/etc/motd2"}
    assert sentence(boot(both), 403) == "Personality file path exceeds maximum 9"
    assert sentence(boot({**file, "contents": "%"}), 400).endswith("'%' is not a 'base64'")
    assert cloud.count() == 1
