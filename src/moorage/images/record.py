"""An image of the built-in catalogue, as its row has it."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Row

from moorage.db.tables.images import images
from moorage.images.contract import Image

QUEUED, SAVING, ACTIVE = "queued", "saving", "active"
PUBLIC, PRIVATE, SHARED, COMMUNITY = "public", "private", "shared", "community"
FOR_EVERYBODY = frozenset({PUBLIC, COMMUNITY})
HASH = "sha512"


@dataclass(frozen=True)
class ImageRecord:
    uuid: str
    name: str
    properties: dict[str, Any]
    created_at: datetime
    updated_at: datetime | None
    owner: str | None
    """The project; None for what belongs to the cloud."""
    visibility: str
    protected: bool
    hidden: bool
    status: str
    tags: list[str] | None
    disk_format: str | None
    container_format: str | None
    min_disk: int
    min_ram: int
    size: int | None
    checksum: str | None
    """MD5, as clients of the Image API know it."""
    os_hash_algo: str | None
    os_hash_value: str | None
    location: str | None
    """Where machines fetch its data, if they do so themselves."""
    file: str | None
    """The name of its data in the directory of images."""

    def is_seen_by(self, project_id: str | None) -> bool:
        """None sees everything."""
        return project_id is None or self.visibility in FOR_EVERYBODY or self.owner == project_id

    def as_image(self) -> Image:
        return Image(
            id=self.uuid,
            name=self.name,
            status=self.status,
            properties={name: str(value) for name, value in self.properties.items()},
            min_ram=self.min_ram,
            min_disk=self.min_disk,
            size=self.size or 0,
            disk_format=self.disk_format or "",
            container_format=self.container_format or "",
            created_at=api_time(self.created_at),
            location=self.location or "",
            hash_algorithm=self.os_hash_algo or "",
            hash_value=self.os_hash_value or "",
            owner=self.owner or "",
        )


COLUMNS: tuple[sa.Column[Any], ...] = tuple(images.c[name] for name in ImageRecord.__dataclass_fields__)


def of_row(row: Row[*tuple[Any, ...]]) -> ImageRecord:
    return ImageRecord(*row)


def api_time(moment: datetime) -> str:
    return moment.strftime("%Y-%m-%dT%H:%M:%SZ")
