"""The machines that a hint names: the server is on one of them, or nowhere."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from moorage.scheduler.errors import NoHostAllowedError
from moorage.scheduler.request import Request


@dataclass(frozen=True, slots=True)
class OnlyMachines:
    names: Sequence[str]
    """As the hint has them; none if any machine will do."""
    nodes: frozenset[str]

    def narrow(self, request: Request) -> Request:
        if not self.names:
            return request
        listed = ", ".join(self.names)
        if not self.nodes:
            raise NoHostAllowedError(f"There is no machine {listed}.")
        narrowed = replace(request, machines=self.nodes)
        if narrowed.only_nodes() == frozenset():
            raise NoHostAllowedError(
                f"The machine {listed} is not where its host, its group or its other hints have to have it."
            )
        return narrowed
