"""What a node in Ironic says of the server that is on it. Pure."""

from __future__ import annotations

from typing import Any

from moorage.drivers.contract import ServerSpec
from moorage.drivers.ironic.api.record import NodeRecord
from moorage.drivers.ironic.servers import mark as marks

_FLAVOR = {
    "vcpus": "vcpus",
    "ram": "memory_mb",
    "disk": "root_gb",
    "swap": "swap_mb",
    "ephemeral": "ephemeral_gb",
}


def spec_of(record: NodeRecord, server_uuid: str) -> ServerSpec:
    """As much as `instance_info` has; the flavor without its id, since Ironic was told only its name."""
    info, mark = record.instance_info, marks.read(record)
    image = str(info.get("image_source", ""))
    return ServerSpec(
        uuid=server_uuid,
        name=str(info.get("display_name", "")),
        project_id=str(info.get("project_id", "")),
        user_id=str(info.get("user_id", "")),
        node_uuid=record.uuid if mark is None else mark.home,
        flavor=_flavor(info),
        image={"id": image} if image and "/" not in image else None,
        config_drive="configdrive" in info,
    )


def _flavor(info: dict[str, Any]) -> dict[str, Any]:
    if not info.get("flavor_name"):
        return {}
    sizes = {name: int(info.get(told) or 0) for name, told in _FLAVOR.items()}
    return {"name": str(info["flavor_name"]), **sizes}
