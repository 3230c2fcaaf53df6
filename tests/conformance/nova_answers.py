"""What an administrator can read of a cloud, from Nova and from us, and what may differ between the two."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

Answers = dict[str, Any]
"""By path."""

VERSION = "2.100"
EXPECTED = {
    "links": "addresses of the API itself",
    "state": "hosts are down until their agents come",
    "host_status": "likewise",
    "updated_at of a service": "when it was heard last, which goes on while one looks",
    "uptime": "what an agent says",
    "traceback": "what is kept of events is their details",
    "OS-EXT-SRV-ATTR:root_device_name": "it is the same for all servers here",
    "OS-EXT-SRV-ATTR:instance_name of a server without a host": "cells number by themselves",
}
"""Fields that differ, and why; no other may."""

_SERVERS, _FLAVORS, _KEYS = "/servers/detail?all_tenants=1", "/flavors/detail?is_public=none", "/os-keypairs"
_AGGREGATES = "/os-aggregates"
_LISTS = (
    *(_SERVERS, _FLAVORS, _KEYS, _AGGREGATES, "/os-server-groups?all_projects=1", "/os-migrations"),
    *("/os-services?binary=nova-compute", "/os-hypervisors/detail", "/os-quota-class-sets/default"),
)
_OF_SERVER = ("", "/os-instance-actions", "/metadata", "/tags")
_HIDDEN = ("links", "state", "host_status", "uptime", "traceback", "OS-EXT-SRV-ATTR:root_device_name")


def read(get: Callable[[str], Any], *further: str) -> Answers:
    """All lists, each thing in them by itself, and what else is wanted."""
    found = {path: get(path) for path in (*_LISTS, *further)}
    return found | {path: get(path) for path in _single(found, get)}


def _single(found: Answers, get: Callable[[str], Any]) -> Iterator[str]:
    for server in found[_SERVERS]["servers"]:
        yield from (f"/servers/{server['id']}{what}" for what in _OF_SERVER)
        actions = f"/servers/{server['id']}/os-instance-actions"
        for action in get(actions)["instanceActions"]:
            yield f"{actions}/{action['request_id']}"
    for flavor in found[_FLAVORS]["flavors"]:
        yield f"/flavors/{flavor['id']}"
        yield f"/flavors/{flavor['id']}/os-extra_specs"
        if not flavor["os-flavor-access:is_public"]:
            yield f"/flavors/{flavor['id']}/os-flavor-access"
    yield from (f"{_AGGREGATES}/{aggregate['id']}" for aggregate in found[_AGGREGATES]["aggregates"])
    yield from (f"{_KEYS}/{entry['keypair']['name']}" for entry in found[_KEYS]["keypairs"])


def comparable(answer: Any) -> Any:
    """Without what is expected to differ; lists in an order that does not depend on a database's."""
    if isinstance(answer, list):
        return sorted((comparable(one) for one in answer), key=repr)
    if not isinstance(answer, dict):
        return answer
    hidden = {*_HIDDEN}
    if answer.get("binary") == "nova-compute":
        hidden.add("updated_at")
    if answer.get("OS-EXT-SRV-ATTR:host", answer) is None:
        hidden.add("OS-EXT-SRV-ATTR:instance_name")
    return {key: comparable(value) for key, value in sorted(answer.items()) if key not in hidden}
