"""Mend: what an audit found wrong about a server is put right, if it still is."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from moorage.compute.audits.findings import MEND, Suspect
from moorage.conductor.engine.work import Work
from moorage.conductor.operations.kind import OperationKind
from moorage.ledger.declared import Step, refused
from moorage.network.contract import NetworkError
from moorage.placement.client.contract import PlacementRefusedError


class MendState(msgspec.Struct):
    check: str
    suspect: Suspect


class Mend(OperationKind):
    name = MEND
    state = MendState
    steps = (Step("begin", cancel=refused("it puts right what an audit has found")),)

    def begin(self, batch: Sequence[Work[MendState]]) -> None:
        """Judged once more; each check makes harmless what is done after our lease has ended."""
        for work in batch:
            check = self._tools.checks[work.state.check]
            drift = check.judge(work.state.suspect)
            try:
                if drift is not None and work.holds():
                    check.repair(drift)
            except (PlacementRefusedError, NetworkError, LookupError) as error:
                work.fail(str(error))
            else:
                work.finish()

    def give_up(self, work: Work[MendState], error: str) -> None:
        work.fail(error)
