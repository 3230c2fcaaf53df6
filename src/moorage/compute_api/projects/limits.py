"""`/limits`: what the caller's project may have, and what it has."""

from __future__ import annotations

from moorage.compute_api.endpoint import RULE
from moorage.compute_api.microversions import Microversion
from moorage.compute_api.projects.quota_sets import limits_shown, used_by
from moorage.compute_api.service import ComputeService
from moorage.core.microversions import Version
from moorage.http.call import Call
from moorage.http.reply import Reply

OTHER_PROJECT = f"{RULE}limits:other_project"

_SHOWN: tuple[tuple[str, str, Version | None], ...] = (
    ("maxTotalInstances", "instances", None),
    ("maxTotalCores", "cores", None),
    ("maxTotalRAMSize", "ram", None),
    ("maxTotalKeypairs", "key_pairs", None),
    ("maxServerMeta", "metadata_items", None),
    ("maxImageMeta", "metadata_items", Microversion.NO_IMAGE_METADATA),
    ("maxServerGroups", "server_groups", None),
    ("maxServerGroupMembers", "server_group_members", None),
    ("maxTotalFloatingIps", "floating_ips", Microversion.NO_PROXIES),
    ("maxSecurityGroups", "security_groups", Microversion.NO_PROXIES),
    ("maxSecurityGroupRules", "security_group_rules", Microversion.NO_PROXIES),
    ("maxPersonality", "injected_files", Microversion.USER_DATA_INSTEAD_OF_FILES),
    ("maxPersonalitySize", "injected_file_content_bytes", Microversion.USER_DATA_INSTEAD_OF_FILES),
)
"""The API's name, the quota, and the version that no longer shows it."""

_USED: tuple[tuple[str, str, Version | None], ...] = (
    ("totalInstancesUsed", "instances", None),
    ("totalCoresUsed", "cores", None),
    ("totalRAMUsed", "ram", None),
    ("totalServerGroupsUsed", "server_groups", None),
    ("totalFloatingIpsUsed", "floating_ips", Microversion.NO_PROXIES),
    ("totalSecurityGroupsUsed", "security_groups", Microversion.NO_PROXIES),
)


def index(service: ComputeService, call: Call) -> Reply:
    """Show the limits of a project and what it uses."""
    query = call.checked_query()
    project_id = call.caller.project_id or ""
    if "tenant_id" in query:
        project_id = query.get("tenant_id") or ""
        call.authorize(OTHER_PROJECT, {"project_id": project_id})
    service.limits.fetch(project_id)
    with service.database.snapshot() as connection:
        bounds = limits_shown(service.limits.shown(connection, project_id, None))
        used = used_by(connection, project_id, None)
    absolute = {
        name: bounds[quota] for name, quota, gone in _SHOWN if gone is None or call.version < gone
    } | {name: used.get(quota, 0) for name, quota, gone in _USED if gone is None or call.version < gone}
    return Reply(body={"limits": {"rate": [], "absolute": absolute}})
