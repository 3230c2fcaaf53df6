"""What Ironic is told of a server that it shall deploy. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from moorage.drivers.contract import DriverError, ServerSpec
from moorage.drivers.ironic.api.record import NodeRecord
from moorage.drivers.ironic.servers import configdrive, console_log, machine_links
from moorage.drivers.ironic.servers import mark as marks
from moorage.drivers.ironic.servers.mark import Mark

IMAGE_PREFIX = "baremetal:"
"""Properties of an image that begin so go to Ironic as they are: `baremetal:image_source`, for instance."""
ROOT_DEVICE = "baremetal:root_device"
"""The extra spec of a flavor that says which disk to deploy to, as a JSON object of Ironic's hints."""
_MASKED = "******"
"""What Ironic says in place of a secret."""
REBUILD_MARK = "moorage_rebuild"
"""Where a node keeps for which work it is rebuilt, and when its provision state had changed before that."""
OURS = frozenset({marks.FIELD, REBUILD_MARK})
"""What we write into `instance_info` for ourselves."""


def instance_info(spec: ServerSpec) -> dict[str, Any]:
    """Ironic makes `project_id` the node's `lessee` until it is torn down, so that the project may see its
    machine there."""
    flavor = spec.flavor
    info: dict[str, Any] = {
        "display_name": spec.name,
        "project_id": spec.project_id,
        "user_id": spec.user_id,
        "flavor_name": str(flavor.get("name", "")),
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


def whole_info(spec: ServerSpec, mark: Mark) -> dict[str, Any]:
    """All that belongs to a deployment, and whose it is."""
    told = msgspec.structs.replace(spec, network=machine_links.real(spec.network))
    drive = {"configdrive": configdrive.encoded(told)} if spec.config_drive else {}
    return instance_info(spec) | drive | marks.info(mark)


def rebuild_info(spec: ServerSpec, mark: Mark, record: NodeRecord) -> dict[str, Any]:
    """Marked before it is ordered: another host that goes on with this work sees how far it has come."""
    kept = {name: said for name, said in record.instance_info.items() if name == console_log.FIELD}
    if spec.preserve_ephemeral:
        kept["preserve_ephemeral"] = True
    return whole_info(spec, mark) | kept | {REBUILD_MARK: _rebuild_mark(spec, record)}


def told(info: Mapping[str, Any] | None) -> dict[str, Any]:
    """What Ironic has told of a node's `instance_info`: it keeps config drives and passwords to itself. Whose
    the deployment is does not become another one's again."""
    known = {name: said for name, said in (info or {}).items() if said != _MASKED}
    return {name: said for name, said in known.items() if name not in OURS}


def is_rebuilt(spec: ServerSpec, record: NodeRecord) -> bool:
    """Whether the order was taken: the mark is there, and the provision state has changed since then."""
    mark = record.instance_info.get(REBUILD_MARK)
    return mark is not None and mark["work"] == spec.work and mark != _rebuild_mark(spec, record)


def _rebuild_mark(spec: ServerSpec, record: NodeRecord) -> dict[str, Any]:
    return {"work": spec.work, "after": record.provision_updated_at}


def required_traits(extra_specs: dict[str, str]) -> list[str]:
    """Deployment templates of Ironic are chosen by the traits that the user required."""
    return sorted(
        name.removeprefix("trait:")
        for name, value in extra_specs.items()
        if name.startswith("trait:") and value == "required"
    )


def _image(image: dict[str, Any] | None) -> dict[str, Any]:
    if image is None:
        return {}
    properties = image.get("properties", {})
    return _source(image) | {
        name.removeprefix(IMAGE_PREFIX): value
        for name, value in properties.items()
        if name.startswith(IMAGE_PREFIX)
    }


def _source(image: dict[str, Any]) -> dict[str, Any]:
    """Ironic fetches from a URL by itself, and holds what it gets against the checksum; it asks Glance for
    anything else."""
    if not image.get("location"):
        return {"image_source": image.get("id", "")}
    info = {"image_source": image["location"], "image_disk_format": image.get("disk_format", "")}
    if image.get("hash_value"):
        info["image_os_hash_algo"] = image["hash_algorithm"]
        info["image_os_hash_value"] = image["hash_value"]
    return {name: value for name, value in info.items() if value}


def _hints(text: str) -> dict[str, Any]:
    try:
        return msgspec.json.decode(text, type=dict[str, Any])
    except msgspec.MsgspecError as error:
        raise DriverError(f"the flavor's {ROOT_DEVICE} is no JSON object: {error}") from error
