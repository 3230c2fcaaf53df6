"""POST /servers/{id}/action, and the record that is kept of what was done."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from moorage.compute.servers import actions
from moorage.core.clock import utcnow
from tests.functional.compute.servers.conftest import ABSENT, IMAGE, QUEUED_IMAGE, Cloud


def act(cloud: Cloud, uuid: str, name: str, argument: Any = None, *, version: str = "2.96") -> None:
    answer = cloud.alice.call("POST", f"/servers/{uuid}/action", {name: argument}, version=version)
    assert answer.status_code == 202, answer.text


def refused(cloud: Cloud, status: int, uuid: str, name: str, argument: Any = None) -> str:
    return cloud.alice.refused(status, "POST", f"/servers/{uuid}/action", {name: argument})


@pytest.fixture
def running(cloud: Cloud) -> str:
    uuid = cloud.alice.booted()
    cloud.run(uuid)
    cloud.woken.clear()
    return uuid


@pytest.mark.parametrize(
    ("vm_state", "name", "argument", "task_state", "status"),
    [
        ("active", "os-stop", None, "powering-off", "ACTIVE"),
        ("error", "os-stop", None, "powering-off", "ERROR"),
        ("stopped", "os-start", None, "powering-on", "SHUTOFF"),
        ("active", "reboot", {"type": "SOFT"}, "rebooting", "REBOOT"),
        ("active", "reboot", {"type": "hard"}, "rebooting_hard", "HARD_REBOOT"),
        ("stopped", "reboot", {"type": "HARD"}, "rebooting_hard", "HARD_REBOOT"),
        ("paused", "reboot", {"type": "HARD"}, "rebooting_hard", "PAUSED"),
        ("active", "pause", None, "pausing", "ACTIVE"),
        ("paused", "unpause", None, "unpausing", "PAUSED"),
        ("active", "suspend", None, "suspending", "ACTIVE"),
        ("suspended", "resume", None, "resuming", "SUSPENDED"),
        ("rescued", "unrescue", None, "unrescuing", "RESCUE"),
        ("paused", "shelve", None, "shelving", "PAUSED"),
        ("error", "trigger_crash_dump", None, None, "ERROR"),
    ],
)
def test_what_a_host_is_asked_to_do(
    cloud: Cloud, running: str, vm_state: str, name: str, argument: Any, task_state: str | None, status: str
) -> None:
    cloud.run(running, vm_state=vm_state)
    act(cloud, running, name, argument)
    server = cloud.server(running)
    assert (server.task_state, server.status) == (task_state, status)
    kind = name.removeprefix("os-")
    assert cloud.operations(running)[-1] == (kind, None)
    assert cloud.woken == [1]
    newest = cloud.alice.get(f"/servers/{running}/os-instance-actions")["instanceActions"][0]
    assert newest["action"] == kind


@pytest.mark.parametrize(
    ("columns", "name", "argument", "words"),
    [
        (
            {"vm_state": "stopped"},
            "os-stop",
            None,
            "Cannot 'stop' instance {} while it is in vm_state stopped",
        ),
        ({}, "os-start", None, "Cannot 'start' instance {} while it is in vm_state active"),
        (
            {"task_state": "rebooting"},
            "os-stop",
            None,
            "Cannot 'stop' instance {} while it is in task_state rebooting",
        ),
        (
            {"vm_state": "stopped"},
            "reboot",
            {"type": "SOFT"},
            "Cannot 'reboot' instance {} while it is in vm_state stopped",
        ),
        (
            {"task_state": "deleting"},
            "reboot",
            {"type": "HARD"},
            "Cannot 'reboot' instance {} while it is in task_state deleting",
        ),
        ({"host": None}, "os-stop", None, "Instance {} is not ready"),
        *(
            (
                {"vm_state": vm_state},
                name,
                None,
                f"Cannot '{name}' instance {{}} while it is in vm_state {vm_state}",
            )
            for vm_state, name in (
                ("stopped", "pause"),
                ("active", "unpause"),
                ("paused", "suspend"),
                ("paused", "resume"),
                ("paused", "rescue"),
                ("active", "unrescue"),
                ("error", "shelve"),
                ("active", "unshelve"),
                ("stopped", "trigger_crash_dump"),
                ("active", "restore"),
            )
        ),
    ],
)
def test_the_state_must_allow_it(
    cloud: Cloud, running: str, columns: dict[str, Any], name: str, argument: Any, words: str
) -> None:
    server = cloud.server(running)
    cloud.run(running, **{"host": server.host, **columns})
    before = cloud.server(running)
    assert refused(cloud, 409, running, name, argument) == words.format(running)
    assert cloud.server(running) == before
    assert cloud.operations(running) == [("build", None)]
    assert cloud.woken == []


def test_a_hard_reboot_cuts_a_soft_one_short(cloud: Cloud, running: str) -> None:
    act(cloud, running, "reboot", {"type": "SOFT"})
    act(cloud, running, "reboot", {"type": "HARD"})
    assert cloud.operations(running)[1:] == [("reboot", "cancelled"), ("reboot", None)]


def test_a_locked_server_is_changed_by_administrators_only(cloud: Cloud, running: str) -> None:
    act(cloud, running, "lock", {"locked_reason": "mine"})
    shown = cloud.alice.get(f"/servers/{running}")["server"]
    assert (shown["locked"], shown["locked_reason"]) == (True, "mine")
    for name, argument in (("os-stop", None), ("reboot", {"type": "HARD"}), ("forceDelete", None)):
        assert refused(cloud, 409, running, name, argument) == f"Instance {running} is locked"
    assert cloud.alice.refused(409, "DELETE", f"/servers/{running}") == f"Instance {running} is locked"
    metadata = {"metadata": {"a": "b"}}
    cloud.alice.refused(409, "POST", f"/servers/{running}/metadata", metadata)
    answer = cloud.admin.call("POST", f"/servers/{running}/action", {"os-stop": None})
    assert answer.status_code == 202
    act(cloud, running, "unlock")
    shown = cloud.alice.get(f"/servers/{running}")["server"]
    assert (shown["locked"], shown["locked_reason"]) == (False, None)


def test_an_administrators_lock_is_opened_by_administrators(cloud: Cloud, running: str) -> None:
    path = f"/servers/{running}/action"
    assert cloud.admin.call("POST", path, {"lock": None}).status_code == 202
    assert cloud.server(running).locked_by == "admin"
    assert "unlock_override" in refused(cloud, 403, running, "unlock")
    assert cloud.admin.call("POST", path, {"unlock": None}).status_code == 202
    assert cloud.server(running).locked_by is None


def test_reasons_for_a_lock_came_with_a_version(cloud: Cloud, running: str) -> None:
    path, body = f"/servers/{running}/action", {"lock": {"locked_reason": ""}}
    cloud.alice.refused(400, "POST", path, body, "2.73")
    act(cloud, running, "lock", {"locked_reason": "ignored"}, version="2.72")
    assert cloud.server(running).locked_reason is None


def test_administrators_reset_states(cloud: Cloud, running: str) -> None:
    act(cloud, running, "os-stop")
    path = f"/servers/{running}/action"
    assert "reset_state" in refused(cloud, 403, running, "os-resetState", {"state": "error"})
    answer = cloud.admin.call("POST", path, {"os-resetState": {"state": "error"}})
    assert answer.status_code == 202
    server = cloud.server(running)
    assert (server.vm_state, server.task_state) == ("error", None)
    assert cloud.operations(running)[-1] == ("stop", "cancelled")
    cloud.admin.refused(400, "POST", path, {"os-resetState": {"state": "stopped"}})


@pytest.mark.parametrize("vm_state", ["active", "stopped", "error"])
def test_a_rescue_answers_a_password(cloud: Cloud, running: str, vm_state: str) -> None:
    cloud.run(running, vm_state=vm_state)
    path, body = f"/servers/{running}/action", {"rescue": {"adminPass": "secret", "rescue_image_ref": IMAGE}}
    answer = cloud.alice.call("POST", path, body)
    assert (answer.status_code, answer.json) == (200, {"adminPass": "secret"})
    assert cloud.server(running).task_state == "rescuing"
    cloud.run(running, vm_state=vm_state)
    answer = cloud.alice.call("POST", path, {"rescue": None})
    assert len(answer.json["adminPass"]) == 12
    assert cloud.operations(running)[-1] == ("rescue", None)


def test_only_administrators_offload_what_is_shelved(cloud: Cloud, running: str) -> None:
    path = f"/servers/{running}/action"
    assert "shelve_offload" in refused(cloud, 403, running, "shelveOffload")
    words = cloud.admin.refused(409, "POST", path, {"shelveOffload": None})
    assert words == f"Cannot 'shelveOffload' instance {running} while it is in vm_state active"
    cloud.run(running, vm_state="shelved")
    assert cloud.admin.call("POST", path, {"shelveOffload": None}).status_code == 202
    assert cloud.server(running).task_state == "shelving_offloading"


def test_where_a_server_is_unshelved(cloud: Cloud, running: str) -> None:
    """Zones since 2.77, hosts, for administrators, since 2.91; only once it is on no host."""
    path = f"/servers/{running}/action"
    cloud.run(running, vm_state="shelved")
    words = refused(cloud, 409, running, "unshelve", {"availability_zone": "west"})
    assert words.endswith("The server status must be SHELVED_OFFLOADED.")
    request = {**cloud.server(running).request, "shelved_image": {"id": IMAGE}}
    offloaded: dict[str, Any] = {
        "vm_state": "shelved_offloaded",
        "host": None,
        "node": None,
        "request": request,
    }
    cloud.run(running, **offloaded)
    for version, argument in (("2.77", {}), ("2.77", {"host": "host1"}), ("2.91", {"zone": "west"})):
        cloud.admin.refused(400, "POST", path, {"unshelve": argument}, version)
    assert "not available" in refused(cloud, 400, running, "unshelve", {"availability_zone": "east"})
    assert "unshelve_to_host" in refused(cloud, 403, running, "unshelve", {"host": "host1"})
    assert "could not be found" in cloud.admin.refused(400, "POST", path, {"unshelve": {"host": "none"}})
    wrong = {"unshelve": {"host": "host1", "availability_zone": "west"}}
    words = cloud.admin.refused(409, "POST", path, wrong)
    assert words == 'Host "host1" is not in the availability zone "west".'
    act(cloud, running, "unshelve", {"availability_zone": "west"})
    server = cloud.server(running)
    assert (server.requested_zone, server.task_state) == ("west", "unshelving")
    cloud.run(running, **offloaded)
    act(cloud, running, "unshelve", {"availability_zone": "ignored"}, version="2.76")
    assert cloud.server(running).requested_zone == "west"
    cloud.run(running, **offloaded)
    body = {"unshelve": {"host": "host1", "availability_zone": None}}
    assert cloud.admin.call("POST", path, body).status_code == 202
    server = cloud.server(running)
    assert (server.requested_zone, server.request["host"]) == (None, "host1")


def test_some_actions_came_with_a_version_or_are_for_few(cloud: Cloud, running: str) -> None:
    path = f"/servers/{running}/action"
    cloud.alice.refused(404, "POST", path, {"trigger_crash_dump": None}, "2.16")
    act(cloud, running, "trigger_crash_dump", version="2.17")
    assert cloud.admin.call("POST", path, {"injectNetworkInfo": None}).status_code == 202


def test_what_a_guest_tells_of_its_password_is_shown_until_it_is_forgotten(
    cloud: Cloud, running: str
) -> None:
    path = f"/servers/{running}/os-server-password"
    assert cloud.rita.get(path) == {"password": ""}
    cloud.run(running, request={**cloud.server(running).request, "encrypted_password": "c2VjcmV0"})
    assert cloud.rita.get(path) == {"password": "c2VjcmV0"}
    cloud.rita.refused(403, "DELETE", path)
    for _ in range(2):
        assert cloud.alice.call("DELETE", path).status_code == 204
    assert cloud.alice.get(path) == {"password": ""}


def test_force_delete(cloud: Cloud, running: str) -> None:
    act(cloud, running, "forceDelete")
    assert cloud.server(running).task_state == "deleting"
    assert cloud.operations(running)[-1] == ("delete", None)


@pytest.mark.parametrize(
    ("body", "status"),
    [
        ({"rescue": {"rescue_image_ref": ABSENT}}, 400),
        ({"rescue": {"rescue_image_ref": QUEUED_IMAGE}}, 400),
        ({"rescue": {"rescue_image_ref": "cirros"}}, 400),
        ({"rescue": []}, 400),
        ({"createImage": {"name": ""}}, 400),
        ({"createImage": {}}, 400),
        ({"createBackup": {"name": "b", "backup_type": "daily"}}, 400),
        ({"createBackup": {"name": "b", "backup_type": "daily", "rotation": -1}}, 400),
        ({"changePassword": {"adminPass": "x"}}, 501),
        ({"changePassword": {}}, 400),
        ({"trigger_crash_dump": {}}, 400),
        ({"addSecurityGroup": {"name": "web"}}, 404),
        ({"addSecurityGroup": {"name": ""}}, 400),
        ({"restore": None}, 409),
        ({"injectNetworkInfo": None}, 403),
        ({"unshelve": {"availability_zone": 7}}, 400),
        ({"resetNetwork": None}, 410),
        ({"addFloatingIp": {"address": "10.0.0.1"}}, 404),
        ({"os-fly": None}, 400),
        ({}, 400),
        ({"os-start": None, "os-stop": None}, 400),
        ([], 400),
        ({"reboot": {}}, 400),
        ({"reboot": {"type": "WARM"}}, 400),
        ({"reboot": None}, 400),
    ],
)
def test_what_the_cloud_does_not_offer(cloud: Cloud, running: str, body: Any, status: int) -> None:
    before = cloud.server(running)
    cloud.alice.refused(status, "POST", f"/servers/{running}/action", body)
    assert cloud.server(running) == before


def test_readers_only_read(cloud: Cloud, running: str) -> None:
    for body in ({"os-stop": None}, {"lock": None}, {"forceDelete": None}):
        cloud.rita.refused(403, "POST", f"/servers/{running}/action", body)


# ---------------------------------------------------------------- the record


def finish(cloud: Cloud, uuid: str, error: str | None = None) -> str:
    """A step of the newest action ends; the id of its request."""

    def write(connection: Any) -> str:
        newest = actions.of_server(connection, cloud.server(uuid).id)[0]
        actions.add_events(connection, [actions.Event(newest.id, "compute_stop", "host1", error)])
        actions.finish(connection, {newest.id: error})
        return newest.request_id

    return cloud.database.transact(write)


def test_who_sees_what_of_an_action(cloud: Cloud, running: str) -> None:
    act(cloud, running, "os-stop")
    path = f"/servers/{running}/os-instance-actions/{finish(cloud, running, 'it broke')}"
    action = cloud.alice.get(path, "2.50")["instanceAction"]
    assert "events" not in action
    assert (action["action"], action["message"], action["user_id"]) == ("stop", "Error", "alice")
    assert "updated_at" not in action
    assert "updated_at" in cloud.alice.get(path, "2.58")["instanceAction"]
    plain = {"event", "start_time", "finish_time", "result"}
    [event] = cloud.alice.get(path, "2.51")["instanceAction"]["events"]
    assert set(event) == plain
    assert event["result"] == "Error"
    [event] = cloud.alice.get(path, "2.62")["instanceAction"]["events"]
    assert set(event) == plain | {"hostId"}
    [event] = cloud.admin.get(path, "2.1")["instanceAction"]["events"]
    assert set(event) == plain | {"traceback"}
    [event] = cloud.admin.get(path, "2.84")["instanceAction"]["events"]
    assert set(event) == plain | {"traceback", "host", "hostId", "details"}
    assert (event["host"], event["details"]) == ("host1", "it broke")
    cloud.alice.refused(404, "GET", f"/servers/{running}/os-instance-actions/req-{ABSENT}")


def test_actions_come_in_pages(cloud: Cloud, running: str) -> None:
    act(cloud, running, "lock")
    act(cloud, running, "unlock")
    path = f"/servers/{running}/os-instance-actions"
    assert [one["action"] for one in cloud.alice.get(path)["instanceActions"]] == ["unlock", "lock", "create"]
    page = cloud.alice.get(f"{path}?limit=2")
    assert [one["action"] for one in page["instanceActions"]] == ["unlock", "lock"]
    assert f"marker={page['instanceActions'][1]['request_id']}" in page["links"][0]["href"]
    rest = cloud.alice.get(f"{path}?marker={page['instanceActions'][1]['request_id']}")
    assert [one["action"] for one in rest["instanceActions"]] == ["create"]
    assert len(cloud.alice.get(f"{path}?limit=1", "2.57")["instanceActions"]) == 3
    later = (utcnow() + timedelta(minutes=5)).strftime("%Y-%m-%dT%H:%M:%SZ")
    assert cloud.alice.get(f"{path}?changes-since={later}", "2.58")["instanceActions"] == []
    assert len(cloud.alice.get(f"{path}?changes-before={later}", "2.66")["instanceActions"]) == 3
    cloud.alice.refused(400, "GET", f"{path}?changes-before={later}", version="2.65")
    cloud.alice.refused(400, "GET", f"{path}?marker=req-{ABSENT}")
    cloud.alice.refused(400, "GET", f"{path}?limit=many")


def test_the_record_outlives_the_server(cloud: Cloud, running: str) -> None:
    cloud.end(running)
    path = f"/servers/{running}/os-instance-actions"
    cloud.alice.refused(404, "GET", path, version="2.20")
    assert len(cloud.alice.get(path, "2.21")["instanceActions"]) == 1
    cloud.bob.refused(404, "GET", path)


# ---------------------------------------------------------------- external events


def test_each_event_gets_its_answer(cloud: Cloud, running: str) -> None:
    waiting = cloud.alice.booted()
    events = [
        {"name": "network-changed", "server_uuid": running},
        {"name": "network-changed", "server_uuid": ABSENT},
        {"name": "network-vif-plugged", "server_uuid": waiting, "tag": "port"},
        {"name": "power-update", "server_uuid": running},
    ]
    path = "/os-server-external-events"
    answer = cloud.neutron.call("POST", path, {"events": events})
    assert answer.status_code == 207
    assert [event["code"] for event in answer.json["events"]] == [200, 404, 422, 400]
    assert [event["status"] for event in answer.json["events"]] == ["completed", "failed", "failed", "failed"]
    answer = cloud.neutron.call("POST", path, {"events": [{**events[0], "status": "failed"}]})
    assert answer.status_code == 200
    assert answer.json["events"][0]["status"] == "completed"  # that is: we have heard it
    cloud.alice.refused(403, "POST", path, {"events": events})
    cloud.neutron.refused(400, "POST", path, {"events": []})
    cloud.neutron.refused(400, "POST", path, {"events": events[3:]}, "2.75")
