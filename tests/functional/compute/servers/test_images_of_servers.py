"""createImage and createBackup: the record of the image, the operation, and what is answered."""

from __future__ import annotations

from typing import Any

import pytest
import sqlalchemy as sa

from moorage.compute.imaging import discarding
from moorage.core.clock import utcnow
from moorage.db.tables.compute import operations
from moorage.images.contract import ImageRefusedError, ImagesUnavailableError
from tests.functional.compute.servers.conftest import ABSENT, Cloud

IMAGE = {"createImage": {"name": "mine", "metadata": {"colour": "red"}}}
BACKUP = {"createBackup": {"name": "nightly", "backup_type": "daily", "rotation": "3"}}


@pytest.fixture
def running(cloud: Cloud) -> str:
    uuid = cloud.alice.booted()
    cloud.run(uuid)
    cloud.woken.clear()
    return uuid


def ask(cloud: Cloud, uuid: str, body: Any, version: str = "2.96") -> Any:
    answer = cloud.alice.call("POST", f"/servers/{uuid}/action", body, version=version)
    assert answer.status_code == 202, answer.text
    return answer


def operation(cloud: Cloud) -> Any:
    newest = sa.select(operations).order_by(operations.c.id.desc()).limit(1)
    with cloud.database.read() as connection:
        return connection.execute(newest).one()


@pytest.mark.parametrize(
    ("body", "kind", "task_state", "action"),
    [
        (IMAGE, "snapshot", "image_snapshot_pending", "createImage"),
        (BACKUP, "backup", "image_backup", "createBackup"),
    ],
)
def test_a_record_waits_for_what_is_on_the_disk(
    cloud: Cloud, running: str, body: Any, kind: str, task_state: str, action: str
) -> None:
    cloud.alice.call("POST", f"/servers/{running}/action", {"lock": None})
    answer = ask(cloud, running, body)
    image = cloud.images.find(answer.json["image_id"])
    assert image.status == "queued"
    assert image.properties["instance_uuid"] == running
    assert (image.properties["image_type"], image.properties["hw_disk_bus"]) == (kind, "virtio")
    assert cloud.server(running).task_state == task_state
    begun = operation(cloud)
    assert (begun.kind, begun.data["image_id"], begun.outcome) == (kind, image.id, None)
    assert begun.due_at <= utcnow()
    newest = cloud.alice.get(f"/servers/{running}/os-instance-actions")["instanceActions"][0]
    assert newest["action"] == action


def test_older_versions_answer_where_the_image_is(cloud: Cloud, running: str) -> None:
    too_much = {"createImage": {"name": "i", "metadata": {str(n): "" for n in range(200)}}}
    path = f"/servers/{running}/action"
    assert cloud.alice.refused(403, "POST", path, too_much, "2.38") == "Image metadata limit exceeded"
    answer = ask(cloud, running, {"createImage": {"name": "i"}}, "2.44")
    assert cloud.images.find(answer.headers["location"].rpartition("/")[2]).name == "i"
    assert not answer.content
    cloud.run(running)
    none_kept = {"createBackup": {**BACKUP["createBackup"], "rotation": 0}}
    assert "location" not in ask(cloud, running, none_kept, "2.44").headers


@pytest.mark.parametrize("vm_state", ["rescued", "error", "resized", "shelved"])
@pytest.mark.parametrize("body", [IMAGE, BACKUP], ids=["image", "backup"])
def test_what_can_not_be_imaged_is_refused(cloud: Cloud, running: str, body: Any, vm_state: str) -> None:
    cloud.run(running, vm_state=vm_state)
    words = cloud.alice.refused(409, "POST", f"/servers/{running}/action", body)
    assert f"while it is in vm_state {vm_state}" in words
    assert cloud.images.select({"instance_uuid": running}) == []


@pytest.mark.parametrize(
    ("refusal", "status"), [(ImageRefusedError("full"), 403), (ImagesUnavailableError("away"), 503)]
)
def test_without_a_record_nothing_is_left_to_do_but_cleaning_up(
    cloud: Cloud, running: str, refusal: Exception, status: int
) -> None:
    cloud.images.refusal = refusal
    cloud.alice.refused(status, "POST", f"/servers/{running}/action", {"createImage": {"name": "i"}})
    left = operation(cloud)
    assert (left.kind, left.data["withdrawn"]) == ("snapshot", str(refusal))
    assert left.due_at <= utcnow()
    assert cloud.woken == [1]


@pytest.mark.parametrize("hard", [False, True], ids=["deleted", "reset"])
def test_an_image_that_is_to_be_removed_still_is(cloud: Cloud, running: str, hard: bool) -> None:
    """What cuts everything else short: nobody else would remove what a server was shelved in."""
    server = cloud.server(running)
    cloud.database.transact(
        lambda connection: discarding.discard(connection, server, ABSENT, even_whole=True)
    )
    if hard:
        ask(cloud, running, {"reboot": {"type": "HARD"}})
    else:
        assert cloud.alice.call("DELETE", f"/servers/{running}").status_code == 204
    unfinished = sa.select(operations.c.kind).where(operations.c.finished_at.is_(None))
    with cloud.database.read() as connection:
        kinds = set(connection.execute(unfinished).scalars())
    assert kinds == {"discard_image", "reboot" if hard else "delete"}


@pytest.mark.parametrize(
    ("asked", "even_whole"), [({"createImage": {"name": "i"}}, False), ({"shelve": None}, True)]
)
def test_what_a_deleted_server_was_to_be_shelved_in_goes_even_if_its_data_has_come(
    cloud: Cloud, running: str, asked: dict[str, Any], even_whole: bool
) -> None:
    """A snapshot that is whole is its user's; nobody has a use for the other."""
    ask(cloud, running, asked)
    assert cloud.alice.call("DELETE", f"/servers/{running}").status_code == 204
    query = sa.select(operations.c.data).where(operations.c.kind == "discard_image")
    with cloud.database.read() as connection:
        [data] = connection.execute(query).scalars()
    assert bool(data.get("even_whole")) is even_whole
