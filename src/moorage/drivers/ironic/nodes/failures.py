"""What failed on which machine, until a conductor has heard of it; and what conductors know of it."""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection
from uuid import UUID, uuid5

from moorage.drivers.contract import ServerSpec
from moorage.drivers.ironic.api.record import (
    AVAILABLE,
    CLEAN_FAILED,
    CLEANING_STATES,
    MANAGED_STATES,
    NodeRecord,
)
from moorage.drivers.ironic.nodes.known_nodes import KnownNodes, Records
from moorage.drivers.ironic.settings import IronicSettings
from moorage.drivers.machine_failures import AvoidedMachines, FailedStep, MachineFailure, QuarantinePolicy

_NAMESPACE = UUID("0f1f6c9a-5b0b-4b63-8c59-3b7f2f1f5a27")
_LONGEST = 2_000
"""Characters of a reason: Ironic's `last_error` may be a page of a log."""


class FailureLog:
    def __init__(
        self, fleet: KnownNodes, settings: IronicSettings, examine: Callable[[str], NodeRecord | None]
    ) -> None:
        self._fleet = fleet
        self._policy = QuarantinePolicy(settings.quarantine_after, settings.quarantine_window)
        self._examine = examine
        self._lock = threading.Lock()
        self._untold: dict[str, MachineFailure] = {}
        self._unclean: set[str] = set()
        """Machines whose failed cleaning was noted, as long as they are in that state."""
        self._kept_out: Records = {}
        """Machines in quarantine, as they were at the last look."""
        self._handed_back: frozenset[str] = frozenset()
        """Such that an operator had in their hands between two looks, until they are released."""
        self.avoided = AvoidedMachines()

    def policy(self) -> QuarantinePolicy:
        return self._policy

    def failures(self) -> list[MachineFailure]:
        with self._lock:
            return list(self._untold.values())

    def told(self, failures: Collection[MachineFailure]) -> None:
        with self._lock:
            for failure in failures:
                self._untold.pop(failure.uuid, None)

    def mended(self) -> set[str]:
        return {uuid for uuid, one in self._quarantined().items() if is_in_hands(one)} | self._handed_back

    def avoid(self, machines: AvoidedMachines) -> None:
        with self._lock:
            self.avoided = machines
            self._handed_back &= machines.quarantined
        self._fleet.quarantine(machines.quarantined)

    def note_deployment(self, spec: ServerSpec, reason: str) -> None:
        self._note(spec.node_uuid, FailedStep.DEPLOY, spec.work, reason, spec.uuid)

    def look(self, records: Records) -> None:
        """Note which of these could not be cleaned; Ironic is asked why, once for each."""
        self._look_for_hands()
        unclean = {uuid for uuid, record in records.items() if record.state == CLEAN_FAILED}
        self._unclean &= unclean
        for uuid in sorted(unclean - self._unclean):
            record = self._examine(uuid)
            if record is not None and record.state == CLEAN_FAILED:
                # The time names it: another host, or this one after a restart, tells the same.
                since, why = record.provision_updated_at or "", record.last_error
                self._note(uuid, FailedStep.CLEAN, since, why or "Ironic does not say why")
                self._unclean.add(uuid)

    def _look_for_hands(self) -> None:
        """Only what two looks say counts: what was known before a machine got into quarantine is older."""
        with self._lock:
            before, self._kept_out = self._kept_out, self._quarantined()
            handled = {
                uuid
                for uuid, now in self._kept_out.items()
                if uuid in before and has_been_in_hands(before[uuid], now)
            }
            self._handed_back |= handled

    def _quarantined(self) -> Records:
        listed = self._fleet.listed()
        return {uuid: listed[uuid] for uuid in self.avoided.quarantined & listed.keys()}

    def _note(
        self, machine_uuid: str, step: FailedStep, occasion: str, reason: str, server_uuid: str = ""
    ) -> None:
        known = str(uuid5(_NAMESPACE, f"{machine_uuid} {step} {occasion}"))
        failure = MachineFailure(known, machine_uuid, step.value, reason[:_LONGEST], server_uuid)
        with self._lock:
            self._untold[known] = failure


def is_in_hands(record: NodeRecord) -> bool:
    """Whether an operator has a machine in their hands: they took it out of use, or put it into maintenance.
    Ironic does the latter by itself, too, and then says for what fault."""
    return record.state in MANAGED_STATES or (record.maintenance and not record.fault)


def has_been_in_hands(before: NodeRecord, now: NodeRecord) -> bool:
    """Whether a machine that no server comes to got from one state to the other by an operator only: out of
    a failed cleaning, or into another one."""
    if before.state == CLEAN_FAILED:
        return now.state != CLEAN_FAILED
    free = before.state == AVAILABLE and before.instance_uuid is None
    return free and now.state in CLEANING_STATES
