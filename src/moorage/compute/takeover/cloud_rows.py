"""From Nova's flavors, key pairs, aggregates, groups, limits and hosts to rows of our tables. Pure."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from moorage.compute.hosts.registry import BEFORE_THE_AGENT
from moorage.compute.quotas.quotas import class_owner
from moorage.compute.takeover.nova_cloud import (
    NovaAggregate,
    NovaFlavor,
    NovaKeypair,
    NovaLimit,
    NovaNode,
    NovaServerGroup,
    NovaService,
)

Row = dict[str, Any]

_RENAMED = {"injected_file_path_bytes": "injected_file_path_length"}
"""Resources that our table calls otherwise."""


def flavor(found: NovaFlavor) -> Row:
    return {
        "id": found.id,
        "flavorid": found.flavorid,
        "name": found.name,
        "vcpus": found.vcpus,
        "ram": found.memory_mb,
        "disk": found.root_gb,
        "ephemeral": found.ephemeral_gb,
        "swap": found.swap,
        "rxtx_factor": found.rxtx_factor,
        "is_public": found.is_public,
        "description": found.description,
        "extra_specs": found.extra_specs,
        "created_at": found.created_at,
    }


def flavor_projects(found: NovaFlavor) -> list[Row]:
    return [{"flavor_id": found.id, "project_id": project} for project in found.projects]


def keypair(found: NovaKeypair) -> Row:
    return {
        "id": found.id,
        "user_id": found.user_id,
        "name": found.name,
        "type": found.type,
        "public_key": found.public_key,
        "fingerprint": found.fingerprint,
        "created_at": found.created_at,
    }


def aggregate(found: NovaAggregate) -> Row:
    return {
        "id": found.id,
        "uuid": found.uuid,
        "name": found.name,
        "metadata": found.metadata,
        "created_at": found.created_at,
        "updated_at": found.updated_at,
    }


def aggregate_hosts(found: NovaAggregate) -> list[Row]:
    return [{"aggregate_id": found.id, "host": host} for host in found.hosts]


def server_group(found: NovaServerGroup) -> Row:
    return {
        "id": found.id,
        "uuid": found.uuid,
        "project_id": found.project_id,
        "user_id": found.user_id,
        "name": found.name,
        "policy": found.policy,
        "rules": found.rules,
        "created_at": found.created_at,
    }


def limit(found: NovaLimit) -> Row:
    owner = class_owner(found.class_name) if found.class_name else found.project_id
    return {
        "project_id": owner,
        "user_id": found.user_id,
        "resource": _RENAMED.get(found.resource, found.resource),
        "bound": found.bound,
    }


def service(found: NovaService, number: int) -> Row:
    """Its agent says the rest, once it is there."""
    return {
        "id": number,
        "uuid": found.uuid,
        "host": found.host,
        "binary": found.binary,
        "version": BEFORE_THE_AGENT,
        "disabled": found.disabled,
        "disabled_reason": found.disabled_reason,
        "forced_down": found.forced_down,
        "seen_at": found.last_seen_up,
        "created_at": found.created_at,
        "updated_at": found.updated_at,
    }


def node(found: NovaNode, number: int) -> Row:
    """With what is shown of it until its agent says more."""
    facts = {
        "vcpus": found.vcpus,
        "memory_mb": found.memory_mb,
        "local_gb": found.local_gb,
        "hypervisor_version": found.hypervisor_version,
        "host_ip": found.host_ip,
        "cpu_info": found.cpu_info,
    }
    return {
        "id": number,
        "uuid": found.uuid,
        "name": found.name,
        "host": found.host,
        "hypervisor_type": found.hypervisor_type,
        "facts": facts,
        "created_at": found.created_at,
    }


def is_known(limit: NovaLimit, resources: Collection[str]) -> bool:
    """Whether there are quotas of it here: Nova still keeps some of networks, which nobody reads."""
    return _RENAMED.get(limit.resource, limit.resource) in resources
