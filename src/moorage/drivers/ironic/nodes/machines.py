"""The nodes of an Ironic as its operators see them: one state each, and why. Pure, but for the listing."""

from __future__ import annotations

from collections.abc import Iterator

from oslo_config import cfg

from moorage.core.config import ConfigError
from moorage.drivers.ironic.api.client import IronicError, connect
from moorage.drivers.ironic.api.record import (
    AVAILABLE,
    CLEAN_FAILED,
    CLEANING_STATES,
    DELETING,
    DEPLOY_FAILED,
    DEPLOYED_STATES,
    DEPLOYING,
    ERROR,
    MANAGED_STATES,
    REPORT_FIELDS,
    WAITING,
    NodeRecord,
)
from moorage.drivers.machines import ListedMachine, MachineState

_CLEANING = CLEANING_STATES | {DELETING}
_DEPLOYING = frozenset({DEPLOYING, WAITING})


def listed(conf: cfg.ConfigOpts) -> Iterator[ListedMachine]:
    """All of them, whatever partition this host serves; ConfigError if Ironic can't be asked."""
    try:
        for page in connect(conf).pages({}, REPORT_FIELDS):
            yield from map(describe, page)
    except IronicError as error:
        raise ConfigError(f"[ironic]: {error}") from error


def describe(record: NodeRecord) -> ListedMachine:
    found = state(record)
    return ListedMachine(
        uuid=record.uuid,
        name=record.name or "",
        state=found,
        reason=_reason(record, found),
        group=record.conductor_group,
        shard=record.shard or "",
        resource_class=record.resource_class or "",
        traits=sorted(record.traits),
        server_uuid=record.instance_uuid or "",
    )


def state(record: NodeRecord) -> MachineState:
    """What an operator has to know first of it."""
    now, used = record.state, record.instance_uuid is not None
    checks = (
        (now == CLEAN_FAILED, MachineState.CLEAN_FAILED),
        (record.maintenance, MachineState.MAINTENANCE),
        (record.retired, MachineState.RETIRED),
        (now in (DEPLOY_FAILED, ERROR), MachineState.DEPLOY_FAILED),
        (now in DEPLOYED_STATES and not used, MachineState.STRAY),
        (now in _DEPLOYING, MachineState.DEPLOYING),
        (now in _CLEANING, MachineState.CLEANING),
        (now in MANAGED_STATES, MachineState.MANAGED),
        (used and now == AVAILABLE, MachineState.RESERVED),
        (used, MachineState.IN_USE),
        (now != AVAILABLE, MachineState.UNKNOWN),
        (not record.resource_class, MachineState.NO_CLASS),
        (record.power_state in (None, "error"), MachineState.NO_POWER),
        (record.quarantined, MachineState.QUARANTINE),
    )
    return next((found for applies, found in checks if applies), MachineState.FREE)


def _reason(record: NodeRecord, found: MachineState) -> str:
    if found is MachineState.MAINTENANCE:
        return record.maintenance_reason or record.fault or ""
    if found is MachineState.RETIRED:
        return record.retired_reason or ""
    if found in (MachineState.CLEAN_FAILED, MachineState.DEPLOY_FAILED, MachineState.NO_POWER):
        return record.last_error or ""
    return record.state if found is MachineState.UNKNOWN else ""
