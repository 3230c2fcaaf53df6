"""What a new cloud needs to be of use: a few flavors, and the images of the built-in catalogue."""

from __future__ import annotations

import hashlib
import logging
import uuid
from collections.abc import Sequence
from functools import partial
from pathlib import Path

from sqlalchemy.engine import Connection

import moorage
from moorage.compute.errors import ConflictError
from moorage.compute.flavors import flavors
from moorage.db.database import Database
from moorage.images.catalogue import Catalogue
from moorage.images.record import ACTIVE, PUBLIC
from moorage.images.service import ImageService
from moorage.images.uploads import ImageBusyError

LOG = logging.getLogger(__name__)

GUEST = "moorage-guest"
"""The name of the small guest that `make guest-image` makes."""
GUEST_DIRECTORY = Path(moorage.__file__).resolve().parents[2] / ".cache" / "guest"
"""Where it puts it: beside `src`, in a checkout."""
_GUEST_MARK = {"moorage_guest": "true"}
_GUEST_PROPERTIES = {
    **_GUEST_MARK,
    "hw_architecture": "x86_64",
    "os_distro": "debian",
    "hw_cdrom_bus": "scsi",  # Debian's cloud kernel sees no config drive on SATA
    "hw_scsi_model": "virtio-scsi",
}
SeededFlavor = tuple[str, str, int, int, int]
"""Its id, name, processors, memory and disk."""
FLAVORS: Sequence[SeededFlavor] = (
    ("1", "m1.tiny", 1, 512, 1),
    ("2", "m1.small", 1, 2048, 20),
    ("3", "m1.medium", 2, 4096, 40),
    ("4", "m1.large", 4, 8192, 80),
    ("5", "m1.xlarge", 8, 16384, 160),
)


def seed_flavors(database: Database) -> list[str]:
    """Make the usual five, but for those whose name or id is taken; the names of the new ones."""
    try:
        return database.transact(partial(_make, FLAVORS))
    except ConflictError:
        return [name for flavor in FLAVORS for name in _made_alone(database, flavor)]


def _made_alone(database: Database, flavor: SeededFlavor) -> list[str]:
    try:
        return database.transact(partial(_make, [flavor]))
    except ConflictError:
        return []


def _make(wanted: Sequence[SeededFlavor], connection: Connection) -> list[str]:
    for flavorid, name, vcpus, ram, disk in wanted:
        flavors.create(connection, flavorid=flavorid, name=name, vcpus=vcpus, ram=ram, disk=disk)
    return [name for _, name, *_ in wanted]


def seed_images(database: Database) -> list[str]:
    """Put the images that are not there yet into the catalogue; their names."""
    return Catalogue(database).seed()


def add_guest_image(images: ImageService, directory: Path = GUEST_DIRECTORY) -> str | None:
    """Put the small guest into the catalogue, if it has been made, in the place of an older one; its id."""
    disk = directory / "disk.qcow2"
    if not disk.exists():
        return None
    with disk.open("rb") as file:
        image_id = str(uuid.uuid5(uuid.NAMESPACE_OID, hashlib.file_digest(file, "sha256").hexdigest()))
    for older in images.catalogue.select(_GUEST_MARK):
        if older.id != image_id:
            images.catalogue.delete(older.id)
    images.catalogue.add(
        {
            "uuid": image_id,
            "name": GUEST,
            "visibility": PUBLIC,
            "disk_format": "qcow2",
            "container_format": "bare",
            "min_ram": 128,
            "properties": dict(_GUEST_PROPERTIES),
        }
    )
    if images.catalogue.record(image_id).status != ACTIVE:
        try:
            with disk.open("rb") as file:
                images.uploads.receive(image_id, file.read, disk.stat().st_size)
        except ImageBusyError:
            LOG.info("another process is putting %s into the catalogue", GUEST)
    return image_id


def seed_new_cloud(database: Database) -> None:
    """For a cloud that nobody furnishes: flavors only if it has none, since a deleted one was not wanted."""
    seed_images(database)
    with database.read() as connection:
        found = flavors.listed(connection, flavors.FlavorQuery(None, is_public=None, limit=1))
    if not found:
        seed_flavors(database)
