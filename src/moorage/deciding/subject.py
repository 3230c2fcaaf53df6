"""Subject: the server that a decision is about, or one that nobody has asked for yet."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from moorage.compute.servers.server import Server


@dataclass(frozen=True, slots=True)
class Subject:
    uuid: str
    project_id: str
    user_id: str
    flavor: Mapping[str, Any]
    request: Mapping[str, Any]
    """What its user asked for, as the server keeps it."""
    requested_zone: str | None = None

    @classmethod
    def of(cls, server: Server) -> Subject:
        return cls(
            server.uuid,
            server.project_id,
            server.user_id,
            server.flavor,
            server.request,
            server.requested_zone,
        )

    @classmethod
    def of_row(cls, row: Mapping[str, Any]) -> Subject:
        """Of a server that is not there: the row that it would have."""
        return cls(
            row["uuid"],
            row["project_id"],
            row["user_id"],
            row["flavor"],
            row["request"],
            row["requested_zone"],
        )
