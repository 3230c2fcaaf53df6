"""The nodes that an administrator asked for: Placement then answers with those trees, or with nothing."""

from __future__ import annotations

from dataclasses import dataclass, replace

from moorage.scheduler.errors import NoHostAllowedError
from moorage.scheduler.request import Request, TargetNodes


@dataclass(frozen=True, slots=True)
class OnlyTargets:
    asked_for: str | None
    """The host or node, by name; None if any will do."""
    nodes: TargetNodes

    def narrow(self, request: Request) -> Request:
        if self.asked_for is None:
            return request
        if not self.nodes:
            raise NoHostAllowedError(f"Host '{self.asked_for}' has no nodes.")
        narrowed = replace(request, targets=self.nodes)
        if narrowed.only_nodes() == frozenset():
            raise NoHostAllowedError(
                f"Host '{self.asked_for}' is not where the server's group or its hints have to have it."
            )
        return narrowed
