"""A move as its operation carries it: from where, to what, and what to go back to."""

from __future__ import annotations

from typing import Any

import msgspec

from moorage.compute.moves.migrations import Migration
from moorage.compute.servers.states import VmState

TASKS = "tasks"
"""In an operation's data: by host, the attempt of the last task that it was given."""


class MoveEnd(msgspec.Struct, frozen=True):
    """Where a server is, or comes from."""

    host: str
    node: str
    node_uuid: str
    zone: str | None = None

    def as_columns(self) -> dict[str, Any]:
        """As the server's row has them."""
        return {
            "host": self.host,
            "node": self.node,
            "node_uuid": self.node_uuid,
            "availability_zone": self.zone,
        }


class Move(msgspec.Struct, frozen=True):
    migration_id: int
    migration_uuid: str
    source: MoveEnd
    old_state: str
    """What the server was, and becomes again if the move fails."""
    old_flavor: dict[str, Any]
    flavor: dict[str, Any]
    """What it shall be from now on."""
    runs: bool = True
    """Whether it shall run at its destination."""
    target: str | None = None
    """The one host that it may go to."""
    reserved: dict[str, int] = {}
    """Quota that was taken in advance."""
    may_stay: bool = False
    """The node that it is on will do, too."""

    @classmethod
    def from_migration(
        cls,
        migration: Migration,
        *,
        zone: str | None = None,
        target: str | None = None,
        runs: bool | None = None,
        may_stay: bool = False,
    ) -> Move:
        """`zone` is the source's; unless it is said, a server `runs` if it did."""
        return cls(
            migration_id=migration.id,
            migration_uuid=migration.uuid,
            source=MoveEnd(migration.source_host, migration.source_node, migration.source_node_uuid, zone),
            old_state=migration.old_state,
            old_flavor=migration.old_flavor,
            flavor=migration.new_flavor,
            runs=migration.old_state == VmState.ACTIVE if runs is None else runs,
            target=target,
            reserved=migration.reserved,
            may_stay=may_stay,
        )

    def as_data(self) -> dict[str, Any]:
        """As an operation keeps it."""
        return {"move": msgspec.to_builtins(self)}

    def from_zone(self, zone: str | None) -> Move:
        """The same, now that the zone of its source is known."""
        return msgspec.structs.replace(self, source=msgspec.structs.replace(self.source, zone=zone))
