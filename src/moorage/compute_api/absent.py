"""What the Compute API once had, or has for clouds of another kind: it says so instead of failing oddly."""

from __future__ import annotations

from moorage.compute_api.service import ComputeService
from moorage.http.call import Call
from moorage.http.errors import HttpError
from moorage.http.reply import Reply


def gone(_service: ComputeService, _call: Call) -> Reply:
    """An API that was removed."""
    raise HttpError(410)


def elsewhere(_service: ComputeService, _call: Call) -> Reply:
    """An old proxy of another service, which clients ask directly."""
    raise HttpError(404)


GONE = (
    "/os-agents",
    "/os-agents/{id}",
    "/os-cells",
    "/os-cells/{id}",
    "/os-certificates",
    "/os-certificates/{id}",
    "/os-cloudpipe",
    "/os-fixed-ips/{id}",
    "/os-floating-ip-dns",
    "/os-floating-ips-bulk",
    "/os-fping",
    "/os-fping/{id}",
    "/os-security-group-default-rules",
    "/os-virtual-interfaces",
)
ELSEWHERE = (
    "/images",
    "/images/detail",
    "/images/{id}",
    "/os-networks",
    "/os-networks/{id}",
    "/os-floating-ip-pools",
    "/os-floating-ips",
    "/os-floating-ips/{id}",
    "/os-security-groups",
    "/os-security-groups/{id}",
    "/os-security-group-rules",
    "/os-snapshots",
    "/os-tenant-networks",
    "/os-volumes",
    "/os-volumes/detail",
    "/os-volumes/{id}",
)
