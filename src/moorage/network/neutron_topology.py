"""The network that Neutron makes for a project which has none: its auto-allocated topology."""

from __future__ import annotations

import threading

from moorage.network.contract import NetworkError
from moorage.network.neutron_link import NeutronFault, NeutronLink

_TOPOLOGY = "auto-allocated-topology"
_IMPOSSIBLE = (404, 409)
"""This Neutron makes none; or it lacks a default external network or default subnet pools."""


def require_possible(link: NeutronLink, project_id: str) -> None:
    """Whether Neutron would make one; it makes nothing yet."""
    try:
        link.check(_TOPOLOGY, project_id)
    except NeutronFault as fault:
        if fault.status not in _IMPOSSIBLE:
            raise
        raise _impossible(project_id) from fault


class AutoTopology:
    """Made when the first server of a project needs it, and then the project's: it outlives the server.

    Late, it says only what the project asked for: Neutron gives the network that it made before.
    """

    def __init__(self, link: NeutronLink) -> None:
        self._link = link
        self._alone = threading.Lock()

    def network_of(self, project_id: str) -> str:
        try:
            with self._alone:  # asked for at once, Neutron builds several and takes all but one down again
                return str(self._link.show(_TOPOLOGY, project_id)["id"])
        except NeutronFault as fault:
            if fault.status not in _IMPOSSIBLE:
                raise
            raise _impossible(project_id) from fault


def _impossible(project_id: str) -> NetworkError:
    return NetworkError(f"Unable to automatically allocate a network for project {project_id}")
