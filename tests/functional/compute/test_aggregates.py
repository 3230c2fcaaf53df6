"""`/os-aggregates`: what an administrator groups hosts with, with the reference's statuses and words."""

from __future__ import annotations

from typing import Any

import pytest

from moorage.compute.aggregates import aggregates
from moorage.db.revisions import Revisions
from tests.functional.compute.rows import add_node, add_server, add_service
from tests.support.compute import Answer, Cloud, User

UNKNOWN = 999_999


def create(admin: User, name: str, zone: str | None = None) -> int:
    body: dict[str, Any] = {"name": name} if zone is None else {"name": name, "availability_zone": zone}
    answer = admin.post("/os-aggregates", {"aggregate": body})
    assert answer.status == 200, answer.text
    aggregate_id: int = answer.json["aggregate"]["id"]
    return aggregate_id


def act(admin: User, aggregate_id: int, action: str, **asked: Any) -> Answer:
    return admin.post(f"/os-aggregates/{aggregate_id}/action", {action: asked})


def show(admin: User, aggregate_id: int) -> Any:
    answer = admin.get(f"/os-aggregates/{aggregate_id}")
    assert answer.status == 200
    return answer.json["aggregate"]


def test_a_new_one_has_a_name_a_zone_and_a_uuid(admin: User) -> None:
    answer = admin.post("/os-aggregates", {"aggregate": {"name": "new", "availability_zone": "new-zone"}})
    assert answer.status == 200
    made = answer.json["aggregate"]
    assert set(made) == {
        *("id", "uuid", "name", "availability_zone"),
        *("created_at", "updated_at", "deleted", "deleted_at"),
    }
    assert (made["name"], made["availability_zone"], made["updated_at"]) == ("new", "new-zone", None)
    shown = show(admin, made["id"])
    assert shown == {**made, "hosts": [], "metadata": {"availability_zone": "new-zone"}}
    assert shown in admin.get("/os-aggregates").json["aggregates"]


def test_the_uuid_is_shown_since_2_41(admin: User) -> None:
    aggregate_id = create(admin, "versions")
    assert "uuid" not in show(admin.at("2.40"), aggregate_id)
    assert "uuid" in show(admin.at("2.41"), aggregate_id)
    old = admin.at("2.1").get("/os-aggregates").json["aggregates"]
    assert all("uuid" not in aggregate for aggregate in old)


def test_a_name_is_taken_once(admin: User) -> None:
    create(admin, "taken")
    other = create(admin, "other")
    again = admin.post("/os-aggregates", {"aggregate": {"name": "taken"}})
    assert again.fault == ("conflictingRequest", "Aggregate taken already exists.")
    renamed = admin.put(f"/os-aggregates/{other}", {"aggregate": {"name": "taken"}})
    assert renamed.status == 409
    assert show(admin, other)["name"] == "other"


@pytest.mark.parametrize("name", ["", " before", "behind ", "x" * 256, "tab\there", 7, None])
def test_bad_names_are_refused(admin: User, name: Any) -> None:
    assert admin.post("/os-aggregates", {"aggregate": {"name": name}}).status == 400


@pytest.mark.parametrize("zone", ["", " z", "a:b", "z" * 256, 1])
def test_bad_zones_are_refused(admin: User, zone: Any) -> None:
    body = {"aggregate": {"name": "badly-zoned", "availability_zone": zone}}
    assert admin.post("/os-aggregates", body).status == 400


def test_an_update_renames_and_moves_to_another_zone(admin: User) -> None:
    aggregate_id = create(admin, "old-name", "old-zone")
    body = {"aggregate": {"name": "  new-name ", "availability_zone": "new-zone"}}
    updated = admin.put(f"/os-aggregates/{aggregate_id}", body).json["aggregate"]
    assert (updated["name"], updated["availability_zone"]) == ("new-name", "new-zone")
    assert updated["metadata"] == {"availability_zone": "new-zone"}
    assert updated["updated_at"] is not None
    assert show(admin, aggregate_id) == updated


@pytest.mark.parametrize("aggregate", [{}, {"name": "   "}, {"uuid": "x"}])
def test_an_update_has_to_make_sense(admin: User, aggregate: Any) -> None:
    aggregate_id = create(admin, f"update-{len(str(aggregate))}")
    assert admin.put(f"/os-aggregates/{aggregate_id}", {"aggregate": aggregate}).status == 400


def test_a_zone_is_not_taken_away(admin: User) -> None:
    aggregate_id = create(admin, "zoned", "zone-1")
    updated = admin.put(f"/os-aggregates/{aggregate_id}", {"aggregate": {"availability_zone": None}})
    kind, message = updated.fault
    assert kind == "badRequest"
    assert "does not support empty named availability zone" in message
    assert act(admin, aggregate_id, "set_metadata", metadata={"availability_zone": None}).status == 400
    assert show(admin, aggregate_id)["availability_zone"] == "zone-1"


def test_metadata_is_merged_and_null_deletes(admin: User) -> None:
    aggregate_id = create(admin, "described", "zone-d")
    act(admin, aggregate_id, "set_metadata", metadata={"ssd": "true", "rack": "7"})
    answer = act(admin, aggregate_id, "set_metadata", metadata={"ssd": None, "gpu": "a100", "unknown": None})
    assert answer.status == 200
    expected = {"availability_zone": "zone-d", "rack": "7", "gpu": "a100"}
    assert answer.json["aggregate"]["metadata"] == expected
    assert show(admin, aggregate_id)["metadata"] == expected


@pytest.mark.parametrize("metadata", [{"k": 1}, {"k": "v" * 256}, {"": "v"}, {"bad/key": "v"}, None, []])
def test_bad_metadata_is_refused(admin: User, metadata: Any) -> None:
    aggregate_id = create(admin, f"bad-metadata-{metadata}"[:30])
    assert act(admin, aggregate_id, "set_metadata", metadata=metadata).status == 400
    assert show(admin, aggregate_id)["metadata"] == {}


def test_hosts_come_and_go(cloud: Cloud, admin: User) -> None:
    add_service(cloud, "host-a")
    add_service(cloud, "host-b")
    aggregate_id = create(admin, "with-hosts")
    assert act(admin, aggregate_id, "add_host", host="host-b").json["aggregate"]["hosts"] == ["host-b"]
    added = act(admin, aggregate_id, "add_host", host="host-a")
    assert added.json["aggregate"]["hosts"] == ["host-a", "host-b"]
    removed = act(admin, aggregate_id, "remove_host", host="host-b")
    assert removed.status == 200
    assert removed.json["aggregate"]["hosts"] == ["host-a"] == show(admin, aggregate_id)["hosts"]


def test_a_host_is_in_an_aggregate_once(cloud: Cloud, admin: User) -> None:
    add_service(cloud, "once")
    aggregate_id = create(admin, "has-once")
    act(admin, aggregate_id, "add_host", host="once")
    again = act(admin, aggregate_id, "add_host", host="once")
    assert again.fault == ("conflictingRequest", f"Aggregate {aggregate_id} already has host once.")


def test_only_hosts_of_agents_can_be_added(cloud: Cloud, admin: User) -> None:
    add_service(cloud, "brain", binary="nova-conductor")
    aggregate_id = create(admin, "agents-only")
    for host in ("brain", "nobody", "NOBODY.example"):
        answer = act(admin, aggregate_id, "add_host", host=host)
        assert answer.fault == ("itemNotFound", f"Compute host {host} could not be found.")
    assert act(admin, aggregate_id, "add_host", host="no/host").status == 400


def test_a_host_that_is_not_in_it_can_not_be_removed(cloud: Cloud, admin: User) -> None:
    add_service(cloud, "outside")
    aggregate_id = create(admin, "without-outside")
    for host in ("outside", "never-seen"):
        answer = act(admin, aggregate_id, "remove_host", host=host)
        assert answer.fault == ("itemNotFound", f"Cannot remove host {host} in aggregate {aggregate_id}")


def test_a_host_is_in_one_zone(cloud: Cloud, admin: User) -> None:
    add_service(cloud, "torn")
    first = create(admin, "zone-one", "one")
    same = create(admin, "zone-one-too", "one")
    second = create(admin, "zone-two", "two")
    plain = create(admin, "no-zone")
    assert act(admin, first, "add_host", host="torn").status == 200
    refused = act(admin, second, "add_host", host="torn")
    assert refused.status == 409
    assert "already in availability zone(s) ['one']" in refused.fault[1]
    assert act(admin, same, "add_host", host="torn").status == 200
    assert act(admin, plain, "add_host", host="torn").status == 200
    refused = act(admin, plain, "set_metadata", metadata={"availability_zone": "two"})
    assert refused.status == 400
    assert refused.fault[1].startswith(f"Cannot update metadata of aggregate {plain}. Reason: ")
    assert admin.put(f"/os-aggregates/{plain}", {"aggregate": {"availability_zone": "two"}}).status == 400
    assert act(admin, plain, "set_metadata", metadata={"availability_zone": "one"}).status == 200


def test_a_host_with_servers_keeps_its_zone(cloud: Cloud, admin: User) -> None:
    add_service(cloud, "busy")
    node = add_node(cloud, "busy", "busy")
    zoned = create(admin, "busy-zone", "busy-1")
    same = create(admin, "busy-zone-too", "busy-1")
    plain = create(admin, "busy-plain")
    act(admin, plain, "add_host", host="busy")
    add_server(cloud, "tenant", "busy", node)
    refused = act(admin, zoned, "add_host", host="busy")
    assert refused.status == 409
    assert "would change from 'None' to 'busy-1' but the host already has 1 instance(s)" in refused.fault[1]
    assert act(admin, plain, "set_metadata", metadata={"availability_zone": "busy-1"}).status == 400
    assert admin.put(f"/os-aggregates/{plain}", {"aggregate": {"availability_zone": "b"}}).status == 400
    assert act(admin, plain, "set_metadata", metadata={"color": "red"}).status == 200
    assert act(admin, plain, "remove_host", host="busy").status == 200
    assert act(admin, same, "remove_host", host="busy").status == 404


def test_a_zone_with_servers_stays(cloud: Cloud, admin: User) -> None:
    add_service(cloud, "settled")
    zoned, same = create(admin, "settled-zone", "settled"), create(admin, "settled-zone-too", "settled")
    act(admin, zoned, "add_host", host="settled")
    node = add_node(cloud, "settled", "settled")
    add_server(cloud, "tenant", "settled", node)
    refused = admin.put(f"/os-aggregates/{zoned}", {"aggregate": {"name": "x", "availability_zone": "y"}})
    assert refused.fault == (
        "badRequest",
        f"Cannot update aggregate {zoned}. Reason: One or more hosts contain instances in this zone.",
    )
    assert show(admin, zoned)["name"] == "settled-zone", "half of a refused update must not come true"
    assert admin.put(f"/os-aggregates/{zoned}", {"aggregate": {"availability_zone": "settled"}}).status == 200
    refused = act(admin, zoned, "remove_host", host="settled")
    assert refused.status == 409
    assert "would change from 'settled' to 'None'" in refused.fault[1]
    assert act(admin, same, "add_host", host="settled").status == 200
    assert act(admin, zoned, "remove_host", host="settled").status == 200, "its zone stays the same"


def test_only_an_empty_one_is_deleted(cloud: Cloud, admin: User) -> None:
    add_service(cloud, "last")
    aggregate_id = create(admin, "full")
    act(admin, aggregate_id, "add_host", host="last")
    refused = admin.delete(f"/os-aggregates/{aggregate_id}")
    assert refused.status == 400
    assert "Host aggregate is not empty" in refused.fault[1]
    act(admin, aggregate_id, "remove_host", host="last")
    answer = admin.delete(f"/os-aggregates/{aggregate_id}")
    assert (answer.status, answer.text) == (200, "")
    assert admin.get(f"/os-aggregates/{aggregate_id}").status == 404
    assert create(admin, "full") != aggregate_id, "the name is free again"


def test_what_does_not_exist_is_not_found(cloud: Cloud, admin: User) -> None:
    add_service(cloud, "lonely")
    path = f"/os-aggregates/{UNKNOWN}"
    answers = [
        admin.get(path),
        admin.put(path, {"aggregate": {"name": "x"}}),
        admin.delete(path),
        act(admin, UNKNOWN, "add_host", host="lonely"),
        act(admin, UNKNOWN, "remove_host", host="lonely"),
        act(admin, UNKNOWN, "set_metadata", metadata={}),
        admin.post(f"{path}/images", {"cache": [{"id": "5b0e4c9c-5a4f-4f6c-8c7e-5a3bde0b1a55"}]}),
    ]
    for answer in answers:
        assert answer.fault == ("itemNotFound", f"Aggregate {UNKNOWN} could not be found.")
    for odd in ("-1", "9" * 40):
        assert admin.get(f"/os-aggregates/{odd}").status == 404
    for bad in ("x", "1.5", "5b0e4c9c-5a4f-4f6c-8c7e-5a3bde0b1a55"):
        answer = admin.get(f"/os-aggregates/{bad}")
        assert answer.fault == ("badRequest", "Invalid input received: id must be an integer")


@pytest.mark.parametrize(
    "body",
    [{}, {"dance": {}}, {"add_host": {}}, {"add_host": {"host": "a"}, "remove_host": {"host": "a"}}, []],
)
def test_an_action_has_to_make_sense(admin: User, body: Any) -> None:
    assert admin.post("/os-aggregates/1/action", body).status == 400


def test_images_are_taken_note_of_since_2_81(admin: User) -> None:
    aggregate_id = create(admin, "cache")
    image = {"id": "5b0e4c9c-5a4f-4f6c-8c7e-5a3bde0b1a55"}
    path = f"/os-aggregates/{aggregate_id}/images"
    assert admin.post(path, {"cache": [image]}).status == 202
    assert admin.at("2.80").post(path, {"cache": [image]}).status == 404
    assert admin.post(path, {"cache": [image, image]}).fault == ("badRequest", "Duplicate images in request")
    bodies: tuple[dict[str, Any], ...] = ({"cache": []}, {"cache": [{"id": "x"}]}, {})
    for bad in bodies:
        assert admin.post(path, bad).status == 400


def test_only_administrators_see_and_change_them(cloud: Cloud, admin: User) -> None:
    aggregate_id = create(admin, "secret")
    path = f"/os-aggregates/{aggregate_id}"
    for user in (cloud.member(), cloud.reader()):
        answers = [
            user.get("/os-aggregates"),
            user.post("/os-aggregates", {"aggregate": {"name": "x"}}),
            user.get(path),
            user.put(path, {"aggregate": {"name": "x"}}),
            user.delete(path),
            act(user, aggregate_id, "add_host", host="h"),
            act(user, aggregate_id, "remove_host", host="h"),
            act(user, aggregate_id, "set_metadata", metadata={}),
            user.post(f"{path}/images", {"cache": [{"id": "5b0e4c9c-5a4f-4f6c-8c7e-5a3bde0b1a55"}]}),
        ]
        assert {answer.status for answer in answers} == {403}


def test_every_change_is_a_new_revision(cloud: Cloud, admin: User) -> None:
    revisions = Revisions(cloud.database)

    def revision() -> int:
        return revisions.now().get(aggregates.SUBJECT, 0)

    add_service(cloud, "counted")
    seen = [revision()]
    aggregate_id = create(admin, "revised")
    seen.append(revision())
    for action in ("add_host", "remove_host"):
        act(admin, aggregate_id, action, host="counted")
        seen.append(revision())
    act(admin, aggregate_id, "set_metadata", metadata={"a": "b"})
    seen.append(revision())
    admin.delete(f"/os-aggregates/{aggregate_id}")
    seen.append(revision())
    assert seen == sorted(set(seen))
    act(admin, aggregate_id, "add_host", host="counted")
    assert revision() == seen[-1], "what was refused changed nothing"
