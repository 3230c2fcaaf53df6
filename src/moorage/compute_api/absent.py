"""What the Compute API once had, or has for clouds of another kind: it says so instead of failing oddly.

Each path with the methods that it has in the reference; others are answered with 405, as anywhere.
"""

from __future__ import annotations

from collections.abc import Mapping

from moorage.compute_api.service import ComputeService
from moorage.http.call import Call
from moorage.http.errors import HttpError
from moorage.http.reply import Reply


def gone(_service: ComputeService, _call: Call) -> Reply:
    """An API that was removed."""
    raise HttpError(410)


def elsewhere(_service: ComputeService, _call: Call) -> Reply:
    """A proxy of another service, which clients ask directly."""
    raise HttpError(404)


GONE: Mapping[str, tuple[str, ...]] = {
    "/os-agents": ("GET", "POST"),
    "/os-agents/{id}": ("PUT", "DELETE"),
    "/os-cells": ("GET", "POST"),
    "/os-cells/capacities": ("GET",),
    "/os-cells/detail": ("GET",),
    "/os-cells/info": ("GET",),
    "/os-cells/sync_instances": ("POST",),
    "/os-cells/{id}": ("GET", "PUT", "DELETE"),
    "/os-cells/{id}/capacities": ("GET",),
    "/os-certificates": ("POST",),
    "/os-certificates/{id}": ("GET",),
    "/os-cloudpipe": ("GET", "POST"),
    "/os-cloudpipe/{id}": ("PUT",),
    "/os-fixed-ips/{id}": ("GET",),
    "/os-fixed-ips/{id}/action": ("POST",),
    "/os-floating-ip-dns": ("GET",),
    "/os-floating-ip-dns/{domain_id}": ("PUT", "DELETE"),
    "/os-floating-ip-dns/{domain_id}/entries/{id}": ("GET", "PUT", "DELETE"),
    "/os-floating-ips-bulk": ("GET", "POST"),
    "/os-floating-ips-bulk/{id}": ("GET", "PUT"),
    "/os-fping": ("GET",),
    "/os-fping/{id}": ("GET",),
    "/os-networks": ("POST",),
    "/os-networks/add": ("POST",),
    "/os-networks/{id}": ("DELETE",),
    "/os-networks/{id}/action": ("POST",),
    "/os-security-group-default-rules": ("GET", "POST"),
    "/os-security-group-default-rules/{id}": ("GET", "DELETE"),
    "/os-tenant-networks": ("POST",),
    "/os-tenant-networks/{id}": ("DELETE",),
    "/servers/{server_id}/consoles": ("GET", "POST"),
    "/servers/{server_id}/consoles/{id}": ("GET", "DELETE"),
    "/servers/{server_id}/os-virtual-interfaces": ("GET",),
}
ELSEWHERE: Mapping[str, tuple[str, ...]] = {
    "/images": ("GET",),
    "/images/detail": ("GET",),
    "/images/{id}": ("GET", "DELETE"),
    "/images/{id}/metadata": ("GET", "POST", "PUT"),
    "/images/{id}/metadata/{key}": ("GET", "PUT", "DELETE"),
    "/os-assisted-volume-snapshots": ("POST",),
    "/os-assisted-volume-snapshots/{id}": ("DELETE",),
    "/os-baremetal-nodes": ("GET", "POST"),
    "/os-baremetal-nodes/{id}": ("GET", "DELETE"),
    "/os-baremetal-nodes/{id}/action": ("POST",),
    "/os-networks": ("GET",),
    "/os-networks/{id}": ("GET",),
    "/os-floating-ip-pools": ("GET",),
    "/os-floating-ips": ("GET", "POST"),
    "/os-floating-ips/{id}": ("GET", "DELETE"),
    "/os-security-groups": ("GET", "POST"),
    "/os-security-groups/{id}": ("GET", "PUT", "DELETE"),
    "/os-security-group-rules": ("POST",),
    "/os-security-group-rules/{id}": ("DELETE",),
    "/os-snapshots": ("GET", "POST"),
    "/os-snapshots/detail": ("GET",),
    "/os-snapshots/{id}": ("GET", "DELETE"),
    "/os-tenant-networks": ("GET",),
    "/os-tenant-networks/{id}": ("GET",),
    "/os-volumes": ("GET", "POST"),
    "/os-volumes/detail": ("GET",),
    "/os-volumes/{id}": ("GET", "DELETE"),
    "/os-volumes_boot": ("GET", "POST"),
    "/os-volumes_boot/detail": ("GET",),
    "/os-volumes_boot/{id}": ("GET", "PUT", "DELETE"),
}
