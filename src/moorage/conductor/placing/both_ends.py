"""The allocations of both ends of a move.

From the moment that a destination is found until the move is over, the migration holds what the server held
at its source, and the server holds what it needs at its destination. Each change of that is one request to
Placement, so there is no moment at which another server can claim what either host has for this one.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from moorage.compute.servers.server import Server
from moorage.conductor.engine.work import Work
from moorage.deciding.subject import Subject
from moorage.placement.client.contract import ConsumerClaim, PlacementClient, PlacementRefusedError

Consumer = Server | Subject
Allocations = Mapping[str, Mapping[str, int]]
_MIGRATION = "MIGRATION"


class BothEnds:
    def __init__(self, placement: PlacementClient) -> None:
        self._placement = placement

    def take(
        self,
        server: Consumer,
        migration_uuid: str,
        wanted: Allocations,
        held: Allocations,
        generation: int | None,
    ) -> PlacementRefusedError | None:
        """Hand the source's allocations to the migration, and claim the destination's for the server.

        `held` and `generation` are what the server was seen to have at its source.
        """
        claims = [_claim(server, server.uuid, wanted, generation)]
        if held:
            claims.append(_claim(server, migration_uuid, held, None, _MIGRATION))
        return self._placement.claim_together(claims)

    def give_back(self, work: Work[Any], migration_uuid: str) -> bool:
        """The server stays where it was; nothing happens if the migration holds nothing.

        False if our lease has ended. Only who holds it after the look may act on what was seen: what the next
        holder does later has another generation, and is safe from us.
        """
        server = work.server
        held, generation = self._placement.allocations(migration_uuid)
        _, of_server = self._placement.allocations(server.uuid) if held else ({}, None)
        if not work.holds():
            return False
        if held:
            refusal = self._placement.claim_together(
                [
                    _claim(server, migration_uuid, {}, generation, _MIGRATION),
                    _claim(server, server.uuid, held, of_server),
                ]
            )
            if refusal is not None:
                raise refusal
        return True

    def release_source(self, migration_uuid: str) -> None:
        """The server has left its source for good."""
        self._placement.release([migration_uuid])


def _claim(
    server: Consumer,
    consumer_uuid: str,
    allocations: Allocations,
    generation: int | None,
    consumer_type: str = "INSTANCE",
) -> ConsumerClaim:
    return ConsumerClaim(
        consumer_uuid=consumer_uuid,
        allocations={uuid: dict(amounts) for uuid, amounts in allocations.items()},
        project_id=server.project_id,
        user_id=server.user_id,
        consumer_type=consumer_type,
        consumer_generation=generation,
    )
