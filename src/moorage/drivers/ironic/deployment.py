"""What Ironic is told of a server that it shall deploy. Pure."""

from __future__ import annotations

import base64
from typing import Any

import msgspec

from moorage.drivers.contract import DriverError, ServerSpec
from moorage.drivers.ironic.record import NodeRecord

IMAGE_PREFIX = "baremetal:"
"""Properties of an image that begin so go to Ironic as they are: `baremetal:image_source`, for instance."""
ROOT_DEVICE = "baremetal:root_device"
"""The extra spec of a flavor that says which disk to deploy to, as a JSON object of Ironic's hints."""
REBUILD_MARK = "moorage_rebuild"
"""Where a node keeps for which work it is rebuilt, and when its provision state had changed before that."""


def instance_info(spec: ServerSpec) -> dict[str, Any]:
    flavor = spec.flavor
    info: dict[str, Any] = {
        "display_name": spec.name,
        "vcpus": str(flavor.get("vcpus", 0)),
        "memory_mb": str(flavor.get("ram", 0)),
        "local_gb": str(flavor.get("disk", 0)),
        "root_gb": str(flavor.get("disk", 0)),
        "swap_mb": str(flavor.get("swap", 0)),
    }
    if flavor.get("ephemeral"):
        info["ephemeral_gb"] = str(flavor["ephemeral"])
    specs = flavor.get("extra_specs", {})
    if specs.get(ROOT_DEVICE):
        info["root_device"] = _hints(specs[ROOT_DEVICE])
    traits = required_traits(specs)
    if traits:
        info["traits"] = traits
    return info | _image(spec.image)


def rebuild_info(spec: ServerSpec, record: NodeRecord) -> dict[str, Any]:
    """Marked before it is ordered: another host that goes on with this work sees how far it has come."""
    return instance_info(spec) | {REBUILD_MARK: _mark(spec, record)}


def is_rebuilt(spec: ServerSpec, record: NodeRecord) -> bool:
    """Whether the order was taken: the mark is there, and the provision state has changed since then."""
    mark = record.instance_info.get(REBUILD_MARK)
    return mark is not None and mark["work"] == spec.work and mark != _mark(spec, record)


def _mark(spec: ServerSpec, record: NodeRecord) -> dict[str, Any]:
    return {"work": spec.work, "after": record.provision_updated_at}


def required_traits(extra_specs: dict[str, str]) -> list[str]:
    """Deployment templates of Ironic are chosen by the traits that the user required."""
    return sorted(
        name.removeprefix("trait:")
        for name, value in extra_specs.items()
        if name.startswith("trait:") and value == "required"
    )


def config_drive(spec: ServerSpec) -> dict[str, Any]:
    """Ironic makes the file system: it gets only what is to be in it."""
    meta: dict[str, Any] = {
        "uuid": spec.uuid,
        "name": spec.name,
        "hostname": spec.name,
        "project_id": spec.project_id,
        "meta": spec.metadata,
        "launch_index": 0,
    }
    if spec.public_key:
        meta["public_keys"] = {spec.key_name or "key": spec.public_key}
    drive: dict[str, Any] = {"meta_data": meta, "network_data": _network_data(spec)}
    if spec.user_data:
        drive["user_data"] = _decoded(spec.user_data)
    return drive


def _decoded(user_data: str) -> str:
    """Users send it in base64; Ironic wants it as it shall be read."""
    try:
        return base64.b64decode(user_data).decode()
    except ValueError as error:
        raise DriverError("the user data is no text, which Ironic can't put on a config drive") from error


def _image(image: dict[str, Any] | None) -> dict[str, Any]:
    if image is None:
        return {}
    properties = image.get("properties", {})
    info = {"image_source": image.get("id", "")}
    return info | {
        name.removeprefix(IMAGE_PREFIX): value
        for name, value in properties.items()
        if name.startswith(IMAGE_PREFIX)
    }


def _hints(text: str) -> dict[str, Any]:
    try:
        return msgspec.json.decode(text, type=dict[str, Any])
    except msgspec.MsgspecError as error:
        raise DriverError(f"the flavor's {ROOT_DEVICE} is no JSON object: {error}") from error


def _network_data(spec: ServerSpec) -> dict[str, Any]:
    links: list[dict[str, Any]] = []
    networks: list[dict[str, Any]] = []
    for number, port in enumerate(spec.network):
        link = f"link{number}"
        links.append(
            {"id": link, "type": "phy", "ethernet_mac_address": port.get("mac", ""), "vif_id": port["id"]}
        )
        for address in port.get("addresses", []):
            networks.append(
                {
                    "id": f"network{len(networks)}",
                    "type": "ipv6" if ":" in address else "ipv4",
                    "link": link,
                    "ip_address": address,
                    "network_id": port.get("network_id", ""),
                }
            )
    return {"links": links, "networks": networks, "services": []}
