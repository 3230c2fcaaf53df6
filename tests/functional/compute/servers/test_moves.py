"""The requests that move servers: who may ask, what is written, and how migrations are shown."""

from __future__ import annotations

from typing import Any

import falcon.testing
import pytest

from tests.functional.compute.servers.conftest import IMAGE, Cloud, User, sentence

NODE = "cccccccc-0000-4000-8000-000000000001"


@pytest.fixture
def running(cloud: Cloud) -> str:
    uuid = cloud.alice.booted()
    cloud.run(uuid, node_uuid=NODE)
    cloud.woken.clear()
    return uuid


def ask(user: User, uuid: str, body: dict[str, Any], version: str = "2.96") -> falcon.testing.Result:
    return user.call("POST", f"/servers/{uuid}/action", body, version=version)


def migrations(cloud: Cloud, query: str = "", version: str = "2.96") -> Any:
    return cloud.admin.get(f"/os-migrations{query}", version)


@pytest.mark.parametrize(
    ("body", "code", "task_state", "status", "operation", "action", "kind"),
    [
        ({"resize": {"flavorRef": "big"}}, 202, "resize_prep", "RESIZE", "cold_move", "resize", "resize"),
        ({"migrate": None}, 202, "resize_prep", "RESIZE", "cold_move", "migrate", "migration"),
        (
            {"os-migrateLive": {"host": "host2", "block_migration": "auto"}},
            202,
            "migrating",
            "MIGRATING",
            "live_migrate",
            "live-migration",
            "live-migration",
        ),
        ({"rebuild": {"imageRef": IMAGE}}, 202, "rebuilding", "REBUILD", "rebuild", "rebuild", None),
    ],
)
def test_what_a_request_writes(
    cloud: Cloud,
    running: str,
    body: dict[str, Any],
    code: int,
    task_state: str,
    status: str,
    operation: str,
    action: str,
    kind: str | None,
) -> None:
    answer = ask(cloud.admin, running, body)
    assert answer.status_code == code, answer.text
    server = cloud.server(running)
    assert (server.task_state, server.status, server.host) == (task_state, status, "host1")
    assert cloud.operations(running)[-1] == (operation, None)
    assert cloud.woken == [1]
    newest = cloud.alice.get(f"/servers/{running}/os-instance-actions")["instanceActions"][0]
    assert newest["action"] == action
    assert [one["migration_type"] for one in migrations(cloud)["migrations"]] == ([kind] if kind else [])
    again = ask(cloud.admin, running, body)
    assert f"while it is in task_state {task_state}" in sentence(again, 409)


def test_who_may_ask_for_moves(cloud: Cloud, running: str) -> None:
    live: dict[str, Any] = {"os-migrateLive": {"host": None, "block_migration": "auto"}}
    body: dict[str, Any]
    for body in ({"migrate": None}, live, {"evacuate": {}}):
        assert ask(cloud.alice, running, body).status_code == 403
    for body in ({"resize": {"flavorRef": "big"}}, {"rebuild": {"imageRef": IMAGE}}, {"confirmResize": None}):
        assert ask(cloud.rita, running, body).status_code == 403
        assert ask(cloud.bob, running, body).status_code == 404
    manager = cloud.alice.with_roles("manager,member,reader")
    assert ask(manager, running, {"migrate": {"host": "host2"}}).status_code == 403
    assert manager.call("GET", "/os-migrations").status_code == 403
    assert ask(manager, running, {"migrate": None}).status_code == 202
    (own,) = manager.get("/os-migrations?project_id=red")["migrations"]
    assert own["source_compute"] is None
    assert cloud.alice.call("GET", "/os-migrations?project_id=red").status_code == 403


def test_a_locked_server_moves_for_administrators_only(cloud: Cloud, running: str) -> None:
    assert ask(cloud.alice, running, {"lock": None}).status_code == 202
    assert "is locked" in sentence(ask(cloud.alice, running, {"resize": {"flavorRef": "big"}}), 409)
    assert ask(cloud.admin, running, {"migrate": None}).status_code == 202


def test_the_host_of_a_cold_migration_came_with_2_56(cloud: Cloud, running: str) -> None:
    refusal = ask(cloud.admin, running, {"migrate": {"host": "nowhere"}}, "2.56")
    assert "Compute host nowhere could not be found." in sentence(refusal, 400)
    assert ask(cloud.admin, running, {"migrate": {"host": "nowhere"}}, "2.55").status_code == 202


def test_what_migrations_show_at_each_version(cloud: Cloud, running: str) -> None:
    assert ask(cloud.admin, running, {"migrate": {"host": "host2"}}).status_code == 202
    (oldest,) = migrations(cloud, version="2.1")["migrations"]
    assert set(oldest) == {
        *("created_at", "dest_compute", "dest_host", "dest_node", "id", "instance_uuid"),
        *("new_instance_type_id", "old_instance_type_id", "source_compute", "source_node", "status"),
        "updated_at",
    }
    assert (oldest["source_compute"], oldest["dest_compute"]) == ("host1", "host2")
    added = {"2.23": {"migration_type"}, "2.59": {"uuid"}, "2.80": {"user_id", "project_id"}}
    known = set(oldest)
    for version, names in added.items():
        known |= names
        (shown,) = migrations(cloud, version=version)["migrations"]
        assert set(shown) == known


def test_migrations_are_filtered_and_paged(cloud: Cloud) -> None:
    uuids = []
    for number in range(3):
        uuid = cloud.alice.booted(name=f"s{number}")
        cloud.run(uuid, node_uuid=NODE)
        body = {"migrate": None} if number else {"resize": {"flavorRef": "big"}}
        assert ask(cloud.admin, uuid, body).status_code == 202
        uuids.append(uuid)

    def found(query: str, version: str = "2.96") -> list[str]:
        return [one["instance_uuid"] for one in migrations(cloud, query, version)["migrations"]]

    assert found("") == uuids[::-1]
    assert found("", "2.58") == uuids
    assert found("?migration_type=resize") == uuids[:1]
    assert found(f"?instance_uuid={uuids[1]}") == [uuids[1]]
    assert found("?host=host1") == uuids[::-1]
    assert found("?source_compute=host2") == found("?status=done") == found("?hidden=true") == []
    assert found("?project_id=cloud") == uuids[::-1]
    assert found("?user_id=nobody") == []
    assert found("?changes-since=2999-01-01T00:00:00Z") == []
    assert found("?changes-since=2999-01-01T00:00:00Z", "2.58") == uuids
    assert found("?changes-before=2001-01-01T00:00:00Z") == []
    assert found("?changes-since=2001-01-01T00:00:00Z&changes-before=2999-01-01T00:00:00Z") == uuids[::-1]
    backwards = "?changes-since=2999-01-01T00:00:00Z&changes-before=2001-01-01T00:00:00Z"
    assert "must be less than or equal" in cloud.admin.refused(400, "GET", f"/os-migrations{backwards}")
    assert cloud.admin.call("GET", "/os-migrations?changes-before=x", version="2.65").status_code == 400
    assert cloud.admin.call("GET", "/os-migrations?changes-since=yesterday").status_code == 400
    assert cloud.admin.call("GET", "/os-migrations?limit=-1").status_code == 400
    assert found("?limit=0") == []
    page = migrations(cloud, "?limit=2")
    assert [one["instance_uuid"] for one in page["migrations"]] == uuids[:0:-1]
    (link,) = page["migrations_links"]
    assert found("?" + link["href"].partition("?")[2]) == uuids[:1]
    assert "could not be found" in cloud.admin.refused(400, "GET", "/os-migrations?marker=none")
    assert cloud.admin.call("GET", "/os-migrations?sort_key=id").status_code == 400
    assert cloud.admin.call("GET", "/os-migrations?project_id=x", version="2.79").status_code == 400


def test_migrations_of_a_server_came_with_2_23(cloud: Cloud, running: str) -> None:
    path = f"/servers/{running}/migrations"
    assert cloud.admin.call("GET", path, version="2.22").status_code == 404
    assert cloud.admin.get(path) == {"migrations": []}
    live = {"os-migrateLive": {"host": None, "block_migration": "auto"}}
    assert ask(cloud.admin, running, live).status_code == 202
    (shown,) = cloud.admin.get(path)["migrations"]
    assert shown["status"] == "queued"
    one = f"{path}/{shown['id']}"
    assert cloud.admin.get(one) == {"migration": shown}
    assert cloud.admin.call("DELETE", one, version="2.64").status_code == 400
    words = "Cannot force complete while the migration is in this state."
    assert words in cloud.admin.refused(400, "POST", f"{one}/action", {"force_complete": None})
    assert cloud.admin.call("DELETE", one).status_code == 202
    assert cloud.admin.call("DELETE", f"{path}/99999").status_code == 404
    actions = cloud.admin.get(f"/servers/{running}/os-instance-actions")["instanceActions"]
    assert actions[0]["action"] == "live_migration_cancel"


def test_a_rebuild_answers_with_the_server_as_it_will_be(cloud: Cloud, running: str) -> None:
    body = {"imageRef": IMAGE, "name": "new", "metadata": {"a": "b"}, "description": "d", "user_data": "YQ=="}
    answer = ask(cloud.alice, running, {"rebuild": body}).json["server"]
    assert (answer["name"], answer["metadata"], answer["description"]) == ("new", {"a": "b"}, "d")
    assert (answer["user_data"], answer["key_name"], answer["status"]) == ("YQ==", None, "REBUILD")
    assert "OS-EXT-STS:task_state" in answer


def test_the_answer_of_an_older_rebuild_is_shorter(cloud: Cloud, running: str) -> None:
    body = {"imageRef": IMAGE, "adminPass": "secret"}
    answer = ask(cloud.alice, running, {"rebuild": body}, "2.1").json["server"]
    assert answer["adminPass"] == "secret"
    assert {"user_data", "key_name", "OS-EXT-STS:task_state"}.isdisjoint(answer)


REBUILT = {
    *("id", "name", "status", "tenant_id", "user_id", "metadata", "hostId", "image", "flavor", "created"),
    *("updated", "addresses", "accessIPv4", "accessIPv6", "links", "OS-DCF:diskConfig", "progress"),
    "adminPass",
}
"""What a rebuild has always answered; then what each version added, to all and to administrators."""
ADDED: list[tuple[int, set[str], set[str]]] = [
    (9, {"locked"}, set()),
    (19, {"description"}, set()),
    (26, {"tags"}, set()),
    (54, {"key_name"}, set()),
    (57, {"user_data"}, set()),
    (63, {"trusted_image_certificates"}, set()),
    (71, {"server_groups"}, set()),
    (73, {"locked_reason"}, set()),
    (
        75,
        {
            *("OS-EXT-AZ:availability_zone", "config_drive", "OS-SRV-USG:launched_at", "security_groups"),
            *("OS-SRV-USG:terminated_at", "OS-EXT-STS:task_state", "OS-EXT-STS:vm_state"),
            *("OS-EXT-STS:power_state", "os-extended-volumes:volumes_attached"),
        },
        {
            "host_status",
            *(f"OS-EXT-SRV-ATTR:{name}" for name in ("host", "instance_name", "hypervisor_hostname")),
            *(f"OS-EXT-SRV-ATTR:{name}" for name in ("hostname", "kernel_id", "launch_index", "ramdisk_id")),
            *(f"OS-EXT-SRV-ATTR:{name}" for name in ("reservation_id", "root_device_name")),
        },
    ),
    (90, {"OS-EXT-SRV-ATTR:hostname"}, set()),
    (96, {"pinned_availability_zone"}, set()),
]


@pytest.mark.parametrize("administrator", [False, True])
def test_each_version_of_a_rebuild_answers_with_its_fields(
    cloud: Cloud, running: str, administrator: bool
) -> None:
    for minor in (1, 9, 19, 26, 53, 54, 56, 57, 62, 63, 70, 71, 72, 73, 74, 75, 89, 90, 95, 96):
        user = cloud.admin if administrator else cloud.alice
        answer = ask(user, running, {"rebuild": {"imageRef": IMAGE}}, f"2.{minor}")
        assert answer.status_code == 202, answer.text
        expected = set(REBUILT)
        for since, to_all, to_administrators in ADDED:
            if minor >= since:
                expected |= to_all | (to_administrators if administrator else set())
        assert set(answer.json["server"]) == expected, f"2.{minor}"
        cloud.run(running, node_uuid=NODE)


def test_resizing_keeps_to_the_quotas_of_the_user(cloud: Cloud, running: str) -> None:
    body = {"quota_set": {"cores": 3}}
    assert cloud.admin.call("PUT", "/os-quota-sets/red?user_id=alice", body).status_code == 200
    refusal = ask(cloud.alice, running, {"resize": {"flavorRef": "big"}})
    assert "Quota exceeded for cores" in sentence(refusal, 403)
    assert cloud.server(running).task_state is None


def test_a_host_that_a_move_needs_is_not_deleted(cloud: Cloud, running: str) -> None:
    assert ask(cloud.admin, running, {"migrate": {"host": "host2"}}).status_code == 202
    (service,) = cloud.admin.get("/os-services?host=host2")["services"]
    assert "in-progress migrations" in cloud.admin.refused(409, "DELETE", f"/os-services/{service['id']}")


def test_resizing_takes_quota_at_once(cloud: Cloud, running: str) -> None:
    before = cloud.usage("red")
    assert ask(cloud.alice, running, {"resize": {"flavorRef": "big"}}).status_code == 202
    instances, cores, ram = cloud.usage("red")
    assert (instances, cores, ram) == (before[0], before[1] + 7, before[2] + 8192 - 512)
    cloud.end(running)
    assert cloud.usage("red") == (0, 0, 0)
