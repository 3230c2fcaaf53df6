"""The nodes that an administrator asked for: Placement then answers with those trees, or with nothing."""

from __future__ import annotations

from dataclasses import dataclass, replace

from moorage.scheduler.errors import NoHostAllowedError
from moorage.scheduler.request import Request


@dataclass(frozen=True, slots=True)
class TargetNodes:
    asked_for: str | None
    """The host or node, by name; None if any will do."""
    node_uuids: tuple[str, ...]

    def narrow(self, request: Request) -> Request:
        if self.asked_for is None:
            return request
        if not self.node_uuids:
            raise NoHostAllowedError(f"Host '{self.asked_for}' has no nodes.")
        narrowed = replace(request, targets=self.node_uuids)
        if not narrowed.only_nodes():
            raise NoHostAllowedError(
                f"Host '{self.asked_for}' is not where the server's group or its hints have to have it."
            )
        return narrowed
