"""Switches that don't exist, inside the Neutron process: a mechanism driver that connects bare metal.

It does what those for real switches do: a port that Ironic says is at a port of a known switch is bound to
the network's VLAN there, and is up as soon as the switch was told, for nobody else says so. Of a switch that
it does not know it binds nothing.
"""

from __future__ import annotations

from typing import Any

from neutron_lib import constants
from neutron_lib.api.definitions import portbindings
from neutron_lib.plugins.ml2 import api

KNOWN = "02:00:00:00:00:"
"""How the `switch_id` of a switch begins that this driver can configure."""


class SimulatedSwitches(api.MechanismDriver):  # type: ignore[misc]
    def initialize(self) -> None:
        pass

    def bind_port(self, context: Any) -> None:
        port = context.current
        if port[portbindings.VNIC_TYPE] != portbindings.VNIC_BAREMETAL:
            return
        links = (port[portbindings.PROFILE] or {}).get("local_link_information") or []
        if not links or not all(str(link.get("switch_id", "")).startswith(KNOWN) for link in links):
            return
        for segment in context.segments_to_bind:
            if segment[api.NETWORK_TYPE] in (constants.TYPE_FLAT, constants.TYPE_VLAN):
                context.set_binding(
                    segment[api.ID], portbindings.VIF_TYPE_OTHER, {}, constants.PORT_STATUS_ACTIVE
                )
                return
