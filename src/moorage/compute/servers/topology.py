"""What servers ask of where on a host they are put, checked before anything is written down."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from moorage.compute.errors import ComputeError
from moorage.topology.errors import BadTopologyError
from moorage.topology.parse import parse_topology
from moorage.topology.request import TopologyRequest


def require_topology(
    flavor: Mapping[str, Any], image_properties: Mapping[str, Any], aliases: Collection[str]
) -> None:
    """Refuse a flavor, as it is booted, that makes no sense with this image; `aliases` are of PCI devices."""
    for device in _parsed(flavor, image_properties).devices:
        if device.alias not in aliases:
            raise ComputeError(f"PCI alias {device.alias} is not defined")


def require_same_topology(
    flavor: Mapping[str, Any], before: Mapping[str, Any], after: Mapping[str, Any]
) -> None:
    """Refuse an image that asks for another place on the host: a rebuilt server stays where it is."""
    if _parsed(flavor, after) != _parsed(flavor, before):
        raise ComputeError("An instance's NUMA topology cannot be changed as part of a rebuild.")


def _parsed(flavor: Mapping[str, Any], image_properties: Mapping[str, Any]) -> TopologyRequest:
    try:
        return parse_topology(flavor, image_properties)
    except BadTopologyError as error:
        raise ComputeError(str(error)) from error
