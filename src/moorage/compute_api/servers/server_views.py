"""How servers look in the API, at each microversion and to each kind of caller."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from moorage.compute.hosts import host_status
from moorage.compute.ports import group_names
from moorage.compute.servers.server import Server
from moorage.compute_api import links, times
from moorage.compute_api.endpoint import RULE, is_admin, owner_of
from moorage.compute_api.links import Links
from moorage.compute_api.microversions import Microversion
from moorage.core.microversions import Version
from moorage.http.call import Call

Json = dict[str, Any]

EXTENDED_ATTRIBUTES = f"{RULE}os-extended-server-attributes"
SHOW_HOST_STATUS = f"{RULE}servers:show:host_status"
SHOW_UNKNOWN_HOST = f"{RULE}servers:show:host_status:unknown-only"
SHOW_EXTRA_SPECS = f"{RULE}servers:show:flavor-extra-specs"
EXTENDED_USER_DATA = "OS-EXT-SRV-ATTR:user_data"
ROOT_DEVICE = "/dev/vda"
"""Of every server."""

_WITH_PROGRESS = frozenset({"ACTIVE", "BUILD", "REBUILD", "RESIZE", "VERIFY_RESIZE", "MIGRATING"})
_IMAGE_PROPERTIES = ("hw_", "img_", "os_")
_WITH_FAULT = frozenset({"ERROR", "DELETED"})


@dataclass(frozen=True)
class Visibility:
    """What this caller may see of an owner's servers, at this version."""

    version: Version
    extended: bool
    any_host_status: bool
    unknown_host_status: bool
    extra_specs: bool
    is_admin: bool

    @classmethod
    def of(cls, call: Call, server: Server) -> Visibility:
        target = owner_of(server)
        return cls(
            version=call.version,
            extended=call.allows(EXTENDED_ATTRIBUTES, target),
            any_host_status=call.allows(SHOW_HOST_STATUS, target),
            unknown_host_status=call.allows(SHOW_UNKNOWN_HOST, target),
            extra_specs=call.allows(SHOW_EXTRA_SPECS, target),
            is_admin=is_admin(call),
        )

    @property
    def wants_host_status(self) -> bool:
        return self.version >= Microversion.HOST_STATUS and (self.any_host_status or self.unknown_host_status)


class ServerView:
    """Made once a request, used for each of its servers."""

    def __init__(self, call: Call) -> None:
        self._call = call
        self._version = call.version
        self._visibilities: dict[tuple[str, str], Visibility] = {}

    def visibility(self, server: Server) -> Visibility:
        owner = (server.project_id, server.user_id)
        known = self._visibilities.get(owner)
        if known is None:
            known = self._visibilities[owner] = Visibility.of(self._call, server)
        return known

    def links(self, uuid: str) -> Links:
        return links.of(self._call, "servers", uuid)

    def _bookmark(self, collection: str, identity: str) -> Json:
        """Something that another part of the cloud knows, which has no page at this version."""
        return {"id": identity, "links": links.of(self._call, collection, identity)[1:]}

    def brief(self, uuid: str, name: str) -> Json:
        return {"id": uuid, "name": name, "links": self.links(uuid)}

    def created(self, uuid: str, asked: Json) -> Json:
        return {
            "id": uuid,
            "links": self.links(uuid),
            "OS-DCF:diskConfig": asked.get("OS-DCF:diskConfig", "MANUAL"),
            "security_groups": asked.get("security_groups", [{"name": "default"}]),
        }

    def full(
        self,
        server: Server,
        statuses: Mapping[str | None, str],
        groups: Sequence[str] | None = None,
    ) -> Json:
        """All that GET shows; `groups` are the server groups, where they are shown."""
        return {
            **self._core(server),
            **self._details(server),
            **self._extended(server),
            **self._newer(server, groups),
            **self._host_status(server, statuses),
        }

    def updated(
        self, server: Server, statuses: Mapping[str | None, str], groups: Sequence[str] | None
    ) -> Json:
        """What PUT answers: less than GET, until 2.75 made them the same."""
        if self._version >= Microversion.CONSISTENT_ANSWERS:
            return self.full(server, statuses, groups)
        shown = {**self._core(server), **self._newer(server, groups)}
        shown["addresses"] = plain_addresses(server)
        return shown

    def _core(self, server: Server) -> Json:
        status = server.status
        shown: Json = {
            "id": server.uuid,
            "name": server.name,
            "status": status,
            "tenant_id": server.project_id,
            "user_id": server.user_id,
            "metadata": server.metadata,
            "hostId": host_id(server.host, server.project_id),
            "image": self._image(server),
            "flavor": self._flavor(server),
            "created": times.zulu(server.created_at),
            "updated": times.zulu(server.updated_at),
            "addresses": {} if server.vm_state == "building" else server.addresses,
            "accessIPv4": server.access_ip_v4,
            "accessIPv6": server.access_ip_v6,
            "links": self.links(server.uuid),
            "OS-DCF:diskConfig": server.request.get("disk_config", "MANUAL"),
        }
        if status in _WITH_PROGRESS:
            shown["progress"] = server.progress
        if status in _WITH_FAULT and server.fault is not None:
            shown["fault"] = self._fault(server, server.fault)
        return shown

    def _details(self, server: Server) -> Json:
        shown: Json = {
            "OS-EXT-AZ:availability_zone": server.availability_zone or server.requested_zone or "",
            "config_drive": "True" if server.config_drive else "",
            "key_name": server.key_name,
            "OS-SRV-USG:launched_at": times.plain(server.launched_at),
            "OS-SRV-USG:terminated_at": times.plain(server.terminated_at),
            "OS-EXT-STS:task_state": server.task_state,
            "OS-EXT-STS:vm_state": server.vm_state,
            "OS-EXT-STS:power_state": server.power_state,
            "os-extended-volumes:volumes_attached": [],
        }
        names = group_names.of(server.request)
        if names and server.request.get("networks") != "none":
            shown["security_groups"] = [{"name": name} for name in names]
        return shown

    def _extended(self, server: Server) -> Json:
        """For administrators, as the hypervisor sees it."""
        prefix = "OS-EXT-SRV-ATTR"
        if not self.visibility(server).extended:
            return {f"{prefix}:hostname": server.hostname} if self._version >= Microversion.HOSTNAMES else {}
        shown: Json = {
            f"{prefix}:host": server.host,
            f"{prefix}:instance_name": server.instance_name,
            f"{prefix}:hypervisor_hostname": server.node,
        }
        if self._version >= Microversion.EXTENDED_ATTRIBUTES:
            shown |= {
                f"{prefix}:hostname": server.hostname,
                f"{prefix}:kernel_id": "",
                f"{prefix}:launch_index": server.launch_index,
                f"{prefix}:ramdisk_id": "",
                f"{prefix}:reservation_id": server.reservation_id,
                f"{prefix}:root_device_name": ROOT_DEVICE,
                EXTENDED_USER_DATA: server.user_data,
            }
        return shown

    def _newer(self, server: Server, groups: Sequence[str] | None) -> Json:
        """What later microversions added, oldest first."""
        shown: Json = {}
        if self._version >= Microversion.LOCKED_SHOWN:
            shown["locked"] = server.locked_by is not None
        if self._version >= Microversion.SERVER_DESCRIPTIONS:
            shown["description"] = server.description
        if self._version >= Microversion.SERVER_TAGS:
            shown["tags"] = server.tags
        if self._version >= Microversion.TRUSTED_IMAGE_CERTIFICATES:
            shown["trusted_image_certificates"] = server.request.get("trusted_image_certificates")
        if self._version >= Microversion.GROUPS_IN_SERVER and groups is not None:
            shown["server_groups"] = list(groups)
        if self._version >= Microversion.LOCK_REASON:
            shown["locked_reason"] = server.locked_reason
        if self._version >= Microversion.PINNED_ZONE_SHOWN:
            shown["pinned_availability_zone"] = server.requested_zone
        if self._version >= Microversion.SCHEDULER_HINTS_SHOWN:
            hints = server.request.get("scheduler_hints") or {}
            shown["scheduler_hints"] = {
                name: value if isinstance(value, list) else [value] for name, value in hints.items()
            }
        return shown

    def _host_status(self, server: Server, statuses: Mapping[str | None, str]) -> Json:
        visibility = self.visibility(server)
        if not visibility.wants_host_status:
            return {}
        status = statuses[server.host]
        if not visibility.any_host_status and status != host_status.UNKNOWN:
            return {}
        return {"host_status": status}

    def _image(self, server: Server) -> Json | str:
        """With what is known of it to drivers and the scheduler, since 2.98."""
        if not server.image_ref:
            return ""
        shown = self._bookmark("images", server.image_ref)
        if self._version >= Microversion.IMAGE_PROPERTIES_SHOWN:
            known = (server.request.get("image") or {}).get("properties") or {}
            shown["properties"] = {
                name: value for name, value in known.items() if name.startswith(_IMAGE_PROPERTIES)
            }
        return shown

    def _flavor(self, server: Server) -> Json:
        """Embedded since 2.47, because the flavor may have been deleted since."""
        flavor = server.flavor
        if self._version < Microversion.FLAVOR_IN_SERVER:
            return self._bookmark("flavors", flavor["id"])
        shown = {name: flavor[name] for name in ("vcpus", "ram", "disk", "ephemeral", "swap")}
        shown["original_name"] = flavor["name"]
        if self.visibility(server).extra_specs:
            shown["extra_specs"] = flavor.get("extra_specs") or {}
        return shown

    def _fault(self, server: Server, fault: Mapping[str, Any]) -> Json:
        shown = {"code": fault["code"], "created": fault["created"], "message": fault["message"]}
        if fault.get("details") and (self.visibility(server).is_admin or fault["code"] != 500):
            shown["details"] = fault["details"]
        return shown


def plain_addresses(server: Server) -> Json:
    """Addresses without what later extensions added to them."""
    if server.vm_state == "building":
        return {}
    return {
        network: [{"addr": one["addr"], "version": one["version"]} for one in found]
        for network, found in server.addresses.items()
    }


def host_id(host: str | None, project_id: str) -> str:
    """Lets a project see whether two servers share a host, and nobody which."""
    return hashlib.sha224(f"{project_id}{host}".encode()).hexdigest() if host else ""
