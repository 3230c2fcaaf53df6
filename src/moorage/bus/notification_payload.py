"""A server in versioned notifications: the objects of the reference, so that its consumers understand us."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

_POWER = {0: "pending", 1: "running", 3: "paused", 4: "shutdown", 6: "crashed", 7: "suspended"}


def payload(
    action: str, server: Mapping[str, Any], error: str | None, request_id: str | None
) -> dict[str, Any]:
    """The payload of an action on a server, which is given as a row of the table of servers."""
    data = {**_server(server), "request_id": request_id, "fault": None if error is None else _fault(error)}
    if action != "create":
        return _object("InstanceActionPayload", "1.9", data)
    also = {"keypairs": [], "tags": list(server["tags"]), "trusted_image_certificates": None}
    return _object("InstanceCreatePayload", "1.13", {**data, **also, "instance_name": server["uuid"]})


def _object(name: str, version: str, data: dict[str, Any]) -> dict[str, Any]:
    return {
        "nova_object.name": name,
        "nova_object.namespace": "nova",
        "nova_object.version": version,
        "nova_object.data": data,
    }


def _server(server: Mapping[str, Any]) -> dict[str, Any]:
    times = ("created_at", "launched_at", "terminated_at", "deleted_at", "updated_at")
    same = ("uuid", "user_id", "reservation_id", "host", "node", "availability_zone", "key_name")
    also = ("task_state", "progress", "metadata", "locked_reason")
    return {
        **{name: server[name] for name in (*same, *also)},
        **{name: _time(server[name]) for name in times},
        "tenant_id": server["project_id"],
        "display_name": server["name"],
        "display_description": server["description"],
        "host_name": server["hostname"],
        "os_type": None,
        "architecture": None,
        "kernel_id": "",
        "ramdisk_id": "",
        "image_uuid": server["image_ref"],
        "state": server["vm_state"],
        "power_state": _POWER.get(server["power_state"], "pending"),
        "locked": server["locked_by"] is not None,
        "auto_disk_config": "MANUAL",
        "block_devices": [],
        "action_initiator_user": server["user_id"],
        "action_initiator_project": server["project_id"],
        "flavor": _flavor(server["flavor"]),
        "ip_addresses": [
            _address(label, address) for label, found in server["addresses"].items() for address in found
        ],
    }


def _flavor(flavor: Mapping[str, Any]) -> dict[str, Any]:
    data = {
        "flavorid": flavor.get("id"),
        "name": flavor.get("name", ""),
        "vcpus": flavor.get("vcpus"),
        "memory_mb": flavor.get("ram"),
        "root_gb": flavor.get("disk"),
        "ephemeral_gb": flavor.get("ephemeral", 0),
        "swap": flavor.get("swap", 0),
        "extra_specs": flavor.get("extra_specs", {}),
        "rxtx_factor": 1.0,
        "vcpu_weight": 0,
        "disabled": False,
        "is_public": True,
        "projects": None,
        "description": None,
    }
    return _object("FlavorPayload", "1.4", data)


def _address(label: str, address: Mapping[str, Any]) -> dict[str, Any]:
    data = {
        "label": label,
        "address": address["addr"],
        "version": address["version"],
        "mac": address.get("OS-EXT-IPS-MAC:mac_addr", ""),
        "meta": {},
        "port_uuid": None,
        "device_name": None,
    }
    return _object("IpPayload", "1.0", data)


def _fault(error: str) -> dict[str, Any]:
    data = {
        "exception": "OperationFailed",
        "exception_message": error,
        "function_name": "",
        "module_name": "moorage.conductor",
        "traceback": "",
    }
    return _object("ExceptionPayload", "1.1", data)


def _time(moment: datetime | None) -> str | None:
    return None if moment is None else moment.strftime("%Y-%m-%dT%H:%M:%SZ")
