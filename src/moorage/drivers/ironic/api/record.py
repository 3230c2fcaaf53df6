"""What Ironic says of one of its nodes, as far as we look at it."""

from __future__ import annotations

from typing import Any

import msgspec

AVAILABLE = "available"
ACTIVE = "active"
DEPLOYING = "deploying"
WAITING = "wait call-back"
DEPLOY_FAILED = "deploy failed"
DELETING = "deleting"
ERROR = "error"
REBUILD = "rebuild"
RESCUE = "rescue"
RESCUING = "rescuing"
RESCUE_WAIT = "rescue wait"
RESCUE_FAILED = "rescue failed"
UNRESCUE = "unrescue"
UNRESCUING = "unrescuing"
UNRESCUE_FAILED = "unrescue failed"
POWER_ON = "power on"
POWER_OFF = "power off"

CLEAN_FAILED = "clean failed"
CLEANING_STATES = frozenset({"cleaning", "clean wait", "clean hold"})
MANAGED_STATES = frozenset({"enroll", "verifying", "manageable", "inspecting", "inspect wait"})
"""In these an operator works on a node."""
UNUSED_STATES = CLEANING_STATES | {AVAILABLE, "enroll", "verifying", "manageable", CLEAN_FAILED}
"""In these a node has no server, even if it still says whose it was."""

DEPLOYED_STATES = frozenset({ACTIVE, DEPLOYING, WAITING, DEPLOY_FAILED})
"""In these a node was told to deploy something."""

RESCUED_STATES = frozenset({RESCUE, RESCUE_FAILED, UNRESCUE_FAILED})
"""In these a node does not run from its own disk, and can be told to."""
RESCUE_CHANGES = frozenset({RESCUING, RESCUE_WAIT, UNRESCUING})
"""In these it is on its way there or back."""


class NodeRecord(msgspec.Struct, frozen=True, gc=False):
    """One of very many, none of which refers back to itself: the garbage collector need not look at them."""

    uuid: str
    name: str | None = None
    resource_class: str | None = None
    traits: list[str] = []
    provision_state: str | None = None
    power_state: str | None = None
    maintenance: bool = False
    retired: bool = False
    instance_uuid: str | None = None
    conductor_group: str = ""
    shard: str | None = None
    properties: dict[str, Any] = {}
    fault: str | None = None
    """Why Ironic has put it into maintenance by itself."""
    quarantined: bool = False
    """Not from Ironic: conductors say so, and it is written here so that it is part of what is compared."""
    target_power_state: str | None = None
    """This and what follows are asked for only of single nodes."""
    last_error: str | None = None
    maintenance_reason: str | None = None
    retired_reason: str | None = None
    reservation: str | None = None
    """Who is at work on the node: as long as somebody is, its states say little."""
    instance_info: dict[str, Any] = {}
    provision_updated_at: str | None = None
    """When its provision state last became another: two looks that find the same saw nothing happen."""
    extra: dict[str, Any] = {}
    protected: bool = False
    protected_reason: str | None = None
    rescue_interface: str | None = None
    driver_internal_info: dict[str, Any] = {}

    def as_listed(self) -> NodeRecord:
        """Without what a listing does not ask for: what two listings say can be compared."""
        return msgspec.structs.replace(
            self,
            target_power_state=None,
            last_error=None,
            maintenance_reason=None,
            retired_reason=None,
            reservation=None,
            instance_info={},
            provision_updated_at=None,
            extra={},
            protected=False,
            protected_reason=None,
            rescue_interface=None,
            driver_internal_info={},
        )

    @property
    def state(self) -> str:
        """Old nodes say nothing where new ones say that they are available."""
        return self.provision_state or AVAILABLE


FIELDS = {
    "uuid": (1, 1),
    "name": (1, 5),
    "resource_class": (1, 21),
    "traits": (1, 37),
    "provision_state": (1, 1),
    "power_state": (1, 1),
    "maintenance": (1, 1),
    "retired": (1, 61),
    "instance_uuid": (1, 1),
    "conductor_group": (1, 46),
    "shard": (1, 82),
    "properties": (1, 1),
    "fault": (1, 42),
}
"""What is asked for in a listing, each with the version that knows it."""

REPORT_FIELDS = {"last_error": (1, 1), "maintenance_reason": (1, 1), "retired_reason": (1, 61)}
"""What is asked for besides in a listing for operators."""

PROTECTION = (1, 48)
"""The version from which nodes can be protected."""
RESCUES = (1, 38)
"""The version from which nodes can be rescued."""

MORE_FIELDS = {
    "target_power_state": (1, 1),
    "last_error": (1, 1),
    "reservation": (1, 1),
    "instance_info": (1, 1),
    "provision_updated_at": (1, 1),
    "extra": (1, 1),
    "protected": PROTECTION,
    "protected_reason": PROTECTION,
    "rescue_interface": RESCUES,
    "driver_internal_info": (1, 3),
}
"""What is asked for besides of single nodes."""

ALLOCATING = "allocating"
"""What Ironic says of a reservation until it is decided; one that got no node is in `ERROR` then."""


class ReservationRecord(msgspec.Struct, frozen=True):
    """What Ironic calls an allocation: a node that is set aside; its UUID is that of the server."""

    uuid: str
    state: str = ALLOCATING
    node_uuid: str | None = None
    resource_class: str | None = None
    last_error: str | None = None
    extra: dict[str, Any] = {}


RESERVATION_FIELDS = ("uuid", "state", "node_uuid", "resource_class", "last_error", "extra")


_VIF = "tenant_vif_port_id"
"""Where Ironic keeps which port of Neutron's is attached."""


class MachinePort(msgspec.Struct, frozen=True):
    """A network card of a machine."""

    uuid: str
    address: str
    portgroup_uuid: str | None = None
    internal_info: dict[str, Any] = {}

    @property
    def vif(self) -> str | None:
        return self.internal_info.get(_VIF)


class MachinePortGroup(msgspec.Struct, frozen=True):
    """Several network cards of a machine that are one link."""

    uuid: str
    address: str | None = None
    mode: str | None = None
    properties: dict[str, Any] = {}
    internal_info: dict[str, Any] = {}

    @property
    def vif(self) -> str | None:
        return self.internal_info.get(_VIF)


PORT_FIELDS = ("uuid", "address", "portgroup_uuid", "internal_info")
PORT_GROUP_FIELDS = ("uuid", "address", "mode", "properties", "internal_info")
