"""The one node that an administrator asked for: Placement then answers with that tree, or with nothing."""

from __future__ import annotations

from dataclasses import dataclass

from moorage.scheduler.request import Request


@dataclass(frozen=True, slots=True)
class OneNode:
    node_uuid: str | None

    def narrow(self, request: Request) -> Request:
        uuid = self.node_uuid
        return request if uuid is None else request.narrowed(lambda group: group.within(uuid))
