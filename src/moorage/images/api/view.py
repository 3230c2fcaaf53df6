"""An image, as the Image API shows it."""

from __future__ import annotations

from typing import Any

from moorage.images.record import ImageRecord, api_time


def shown(record: ImageRecord) -> dict[str, Any]:
    return {
        **record.properties,
        "id": record.uuid,
        "name": record.name,
        "status": record.status,
        "visibility": record.visibility,
        "protected": record.protected,
        "os_hidden": record.hidden,
        "owner": record.owner,
        "min_ram": record.min_ram,
        "min_disk": record.min_disk,
        "size": record.size,
        "virtual_size": None,
        "disk_format": record.disk_format,
        "container_format": record.container_format,
        "checksum": record.checksum,
        "os_hash_algo": record.os_hash_algo,
        "os_hash_value": record.os_hash_value,
        "tags": record.tags or [],
        "created_at": api_time(record.created_at),
        "updated_at": api_time(record.updated_at or record.created_at),
        "self": f"/v2/images/{record.uuid}",
        "file": f"/v2/images/{record.uuid}/file",
        "schema": "/v2/schemas/image",
    }
