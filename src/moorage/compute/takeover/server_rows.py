"""From a server of Nova's to rows of our tables. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import msgspec

from moorage.compute.imaging.discarding import SHELVED_IMAGE
from moorage.compute.ports import shown_addresses
from moorage.compute.takeover import port_records
from moorage.compute.takeover.nova_cloud import NovaAction, NovaFault, NovaFlavor, NovaMigration, NovaServer
from moorage.compute.takeover.nova_objects import Json
from moorage.images.contract import Image

Row = dict[str, Any]

_IMAGE = "image_"
"""What Nova remembers of a server's image begins so in its system metadata."""
_NO_PROPERTIES = ("min_ram", "min_disk", "disk_format", "container_format", "base_image_ref", "size", "owner")


@dataclass(frozen=True)
class Known:
    """What servers of Nova's refer to by another name than ours do."""

    nodes: Mapping[tuple[str, str], str]
    """UUIDs of nodes by their host's name and their own."""
    groups: Mapping[str, str]
    """By server: the UUID of the group that it is in."""
    flavors: Mapping[int, NovaFlavor]
    """By number: those that are still there."""

    def node(self, host: str | None, name: str | None) -> str | None:
        return self.nodes.get((host, name)) if host and name else None


def server(found: NovaServer, number: int, known: Known) -> Row:
    ports = port_records.of(found.network_info, found.vif_tags)
    flavor = booted_flavor(found.flavor)
    return {
        "id": number,
        "uuid": found.uuid,
        "project_id": found.project_id,
        "user_id": found.user_id,
        "name": found.name,
        "description": found.description,
        "hostname": found.hostname or f"Server-{found.uuid}",
        "reservation_id": found.reservation_id,
        "launch_index": found.launch_index,
        "flavor": flavor,
        "flavorid": flavor["id"],
        "image_ref": found.image_ref,
        "key_name": found.key_name,
        "vm_state": found.vm_state,
        "task_state": None,
        "power_state": found.power_state,
        "progress": found.progress,
        "host": found.host,
        "node": found.node,
        "node_uuid": known.node(found.host, found.node),
        "availability_zone": found.availability_zone,
        "requested_zone": found.request.get("availability_zone"),
        "locked_by": found.locked_by,
        "locked_reason": found.system_metadata.get("locked_reason"),
        "config_drive": found.config_drive,
        "user_data": found.user_data,
        "access_ip_v4": found.access_ip_v4,
        "access_ip_v6": found.access_ip_v6,
        "metadata": found.metadata,
        "tags": found.tags,
        "addresses": shown_addresses.addresses(ports),
        "request": {
            **_request(found, known),
            "networks": port_records.wishes(ports),
            "ports": msgspec.to_builtins(ports),
        },
        "fault": None if found.fault is None else _fault(found.fault),
        "created_at": found.created_at,
        "updated_at": found.updated_at,
        "launched_at": found.launched_at,
        "terminated_at": found.terminated_at,
        "deleted_at": None,
    }


def booted_flavor(flavor: Json) -> Json:
    """As a server of ours remembers it."""
    return {
        "id": flavor["flavorid"],
        "name": flavor["name"],
        "vcpus": flavor["vcpus"],
        "ram": flavor["memory_mb"],
        "disk": flavor.get("root_gb") or 0,
        "ephemeral": flavor.get("ephemeral_gb") or 0,
        "swap": flavor.get("swap") or 0,
        "extra_specs": flavor.get("extra_specs") or {},
    }


def _request(found: NovaServer, known: Known) -> Json:
    asked = found.request
    image = _image(found)
    request: Json = {
        "security_groups": sorted(
            {group["name"] for group in _listed(asked.get("security_groups")) if group.get("name")}
        ),
        "scheduler_hints": asked.get("scheduler_hints") or {},
        "group": known.groups.get(found.uuid),
        "host": None,
        "node": None,
        "forced": False,
        "image": None if image is None else msgspec.to_builtins(image),
        "block_device": [],
        "disk_config": "AUTO" if found.auto_disk_config else "MANUAL",
        "public_key": found.key_data,
        "files": [],
        "trusted_image_certificates": found.trusted_certs,
    }
    shelved = found.system_metadata.get("shelved_image_id")
    if shelved:
        request[SHELVED_IMAGE] = shelved
    return request


def _listed(found: Any) -> list[Json]:
    """A list of Nova's is an object that has one."""
    objects = found.get("objects") if isinstance(found, dict) else found
    return objects or []


def _image(found: NovaServer) -> Image | None:
    """As Nova remembers it: the image itself may be gone."""
    if not found.image_ref:
        return None
    told = {
        name.removeprefix(_IMAGE): value
        for name, value in found.system_metadata.items()
        if name.startswith(_IMAGE)
    }
    asked = found.request.get("image") or {}
    return Image(
        id=found.image_ref,
        name=asked.get("name") or "",
        min_ram=int(asked.get("min_ram") or told.get("min_ram") or 0),
        min_disk=int(asked.get("min_disk") or 0),
        size=int(asked.get("size") or 0),
        properties={name: value for name, value in told.items() if name not in _NO_PROPERTIES},
        disk_format=told.get("disk_format", ""),
        container_format=told.get("container_format", ""),
        created_at=asked.get("created_at") or "",
        owner=asked.get("owner") or "",
    )


def _fault(fault: NovaFault) -> Json:
    told = {
        "code": fault.code,
        "message": fault.message,
        "created": fault.created_at.strftime("%Y-%m-%dT%H:%M:%SZ"),
    }
    return {**told, "details": fault.details} if fault.details else told


def action(found: NovaAction, server_id: int) -> Row:
    return {
        "server_id": server_id,
        "action": found.action,
        "request_id": found.request_id,
        "user_id": found.user_id,
        "project_id": found.project_id,
        "message": found.message,
        "started_at": found.start_time,
        "updated_at": found.updated_at,
        "events": [
            {
                "event": event.event,
                "start_time": event.start_time.isoformat(),
                "finish_time": None if event.finish_time is None else event.finish_time.isoformat(),
                "result": event.result,
                "host": event.host,
                "details": event.details,
            }
            for event in found.events
        ],
    }


def migration(found: NovaMigration, number: int, row: Row, known: Known) -> Row:
    """One that is over: whoever is in the middle of one does not come over. `row` is its server's."""
    return {
        "id": number,
        "uuid": found.uuid,
        "server_id": row["id"],
        "server_uuid": row["uuid"],
        "user_id": found.user_id or row["user_id"],
        "project_id": found.project_id or row["project_id"],
        "kind": found.kind,
        "status": found.status,
        "active": False,
        "source_host": found.source_host,
        "source_node": found.source_node,
        "source_node_uuid": known.node(found.source_host, found.source_node) or "",
        "dest_host": found.dest_host,
        "dest_node": found.dest_node,
        "dest_node_uuid": known.node(found.dest_host, found.dest_node),
        "dest_address": found.dest_address,
        "old_flavor": _flavor_of(found.old_flavor_id, known),
        "new_flavor": _flavor_of(found.new_flavor_id, known),
        "old_flavor_id": found.old_flavor_id,
        "new_flavor_id": found.new_flavor_id,
        "old_state": "",
        "created_at": found.created_at,
        "updated_at": found.updated_at,
    }


def _flavor_of(number: int | None, known: Known) -> Json:
    """Of a flavor that is gone nothing is left but its number."""
    flavor = None if number is None else known.flavors.get(number)
    return {} if flavor is None else booted_flavor(msgspec.to_builtins(flavor))
