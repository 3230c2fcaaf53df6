"""One request for an action on a server, as the action sees it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from sqlalchemy.engine import Connection

from moorage.compute.quotas.quotas import Limits
from moorage.compute.servers.actions import Origin
from moorage.compute.servers.server import Server
from moorage.compute_api.service import ComputeService
from moorage.http.call import Call


@dataclass(frozen=True)
class ActionRequest:
    """Inside the transaction that holds the server."""

    service: ComputeService
    connection: Connection
    call: Call
    server: Server
    origin: Origin
    argument: Any
    found: Any = None
    """What was looked up elsewhere before the transaction began."""

    def limits(self) -> Limits:
        """Those of the server's project."""
        project, _ = self.service.limits.in_force(
            self.connection, self.server.project_id, self.server.user_id
        )
        return project
