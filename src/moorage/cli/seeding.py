"""What a new cloud needs to be of use: a few flavors, and the images of the built-in catalogue."""

from __future__ import annotations

from functools import partial

from sqlalchemy.engine import Connection

from moorage.compute.errors import ConflictError
from moorage.compute.flavors import flavors
from moorage.db.database import Database
from moorage.images.catalogue import Catalogue

FLAVORS = (
    ("1", "m1.tiny", 1, 512, 1),
    ("2", "m1.small", 1, 2048, 20),
    ("3", "m1.medium", 2, 4096, 40),
    ("4", "m1.large", 4, 8192, 80),
    ("5", "m1.xlarge", 8, 16384, 160),
)


def seed_flavors(database: Database) -> list[str]:
    """Make the usual five, but for those whose name or id is taken; the names of the new ones."""
    return [flavor[1] for flavor in FLAVORS if database.transact(partial(_make, flavor))]


def _make(flavor: tuple[str, str, int, int, int], connection: Connection) -> bool:
    flavorid, name, vcpus, ram, disk = flavor
    try:
        flavors.create(connection, flavorid=flavorid, name=name, vcpus=vcpus, ram=ram, disk=disk)
    except ConflictError:
        return False
    return True


def seed_images(database: Database) -> list[str]:
    """Put the images that are not there yet into the catalogue; their names."""
    return Catalogue(database).seed()


def seed_new_cloud(database: Database) -> None:
    """For a cloud that nobody furnishes: flavors only if it has none, since a deleted one was not wanted."""
    seed_images(database)
    with database.read() as connection:
        found = flavors.listed(connection, flavors.FlavorQuery(None, is_public=None, limit=1))
    if not found:
        seed_flavors(database)
