"""Images of servers: they get what is on the disk, or go again, whatever happens meanwhile."""

from __future__ import annotations

from typing import Any

import sqlalchemy as sa

from moorage.core.clock import utcnow
from moorage.db.tables.compute import operations
from tests.functional.conductor.conftest import Make
from tests.functional.conductor.harbour import Harbour
from tests.support.processes import wait_until


def images(place: Harbour, uuid: str) -> list[Any]:
    """Those of the server, the newest first."""
    listed = place.cloud.get("/image/v2/images")["images"]
    return [one for one in listed if one.get("instance_uuid") == uuid]


def take(place: Harbour, uuid: str, status: str = "ACTIVE", **backup: Any) -> str:
    body = {"createBackup": {"name": "b", **backup}} if backup else {"createImage": {"name": "i"}}
    image_id = str(place.act(uuid, body)["image_id"])
    place.settled(uuid, status)
    return image_id


def test_what_is_on_the_disk_becomes_an_image(harbour: Make) -> None:
    place = harbour(hosts=1)
    uuid = place.running()
    disk = place.copies(uuid)["fake-1"].disk
    for action, status in ((None, "ACTIVE"), ("pause", "PAUSED")):
        if action is not None:
            place.act(uuid, {action: None})
            place.settled(uuid, status)
        image_id = take(place, uuid, status)
        image = place.cloud.get(f"/image/v2/images/{image_id}")
        assert (image["status"], image["os_distro"], image["image_type"]) == ("active", "cirros", "snapshot")
        assert place.cloud.api.simulate_get(f"/image/v2/images/{image_id}/file").content == disk.encode()
    assert len(images(place, uuid)) == 2


def test_only_so_many_backups_are_kept(harbour: Make) -> None:
    place = harbour(hosts=1)
    uuid = place.running()
    weekly = take(place, uuid, backup_type="weekly", rotation=1)
    daily = [take(place, uuid, backup_type="daily", rotation=2) for _ in range(3)]
    snapshot = take(place, uuid)
    assert {one["id"] for one in images(place, uuid)} == {weekly, snapshot, *daily[1:]}
    take(place, uuid, backup_type="daily", rotation=0)
    assert {one["id"] for one in images(place, uuid)} == {weekly, snapshot}


def test_what_others_say_of_their_images_rotates_nothing_out(harbour: Make) -> None:
    place = harbour(hosts=1)
    uuid = place.running()
    mine = take(place, uuid, backup_type="daily", rotation=2)
    said = {"instance_uuid": uuid, "image_type": "backup", "backup_type": "daily", "owner": "elsewhere"}
    api = place.cloud.api
    foreign = [api.simulate_post("/image/v2/images", json=said).json["id"] for _ in range(2)]
    newer = take(place, uuid, backup_type="daily", rotation=2)
    assert {one["id"] for one in images(place, uuid)} == {mine, newer, *foreign}


def test_what_comes_to_nothing_leaves_no_image(harbour: Make) -> None:
    place = harbour(hosts=1)
    uuid = place.running(metadata={"fake:snapshot": "fail"})
    take(place, uuid)
    assert "snapshot shall fail" in place.last_error(uuid)
    assert images(place, uuid) == []
    for end in ("reset", "delete"):
        uuid = place.running(metadata={"fake:snapshot": "hang"})
        place.act(uuid, {"createImage": {"name": "i"}})
        place.await_task_state(uuid, "image_uploading")
        assert [one["status"] for one in images(place, uuid)] == ["queued"]
        if end == "reset":
            place.act(uuid, {"os-resetState": {"state": "active"}})
            place.settled(uuid, "ACTIVE")
        else:
            place.cloud.delete(uuid)
            place.cloud.await_gone([uuid])
        await_none(place, uuid)


def await_none(place: Harbour, uuid: str) -> None:
    wait_until(lambda: images(place, uuid) == [], "the image to go", 20)


def test_an_operation_whose_record_was_never_made_ends(harbour: Make) -> None:
    """Whoever was to make it died."""
    place = harbour(hosts=1)
    uuid = place.running()
    catalogue = place.cloud.cloud._compute.images
    kept, catalogue.create = catalogue.create, lambda *_: ""  # type: ignore[method-assign]
    try:
        place.act(uuid, {"createImage": {"name": "i"}})
    finally:
        catalogue.create = kept  # type: ignore[method-assign]
    with place.cloud.placement.database.write() as connection:
        now = sa.update(operations).where(operations.c.finished_at.is_(None)).values(due_at=utcnow())
        connection.execute(now)
    place.settled(uuid, "ACTIVE")
    assert place.last_error(uuid) == "the record of its image was not made"
