"""Dropping what a server holds in Placement, of a server that may get a place again later.

A conductor whose lease has ended may drop late. So what it drops is named by its generation, and whoever
claims for the server next goes on from a higher one: see `Placer`.
"""

from __future__ import annotations

from typing import Any

from moorage.conductor.engine.work import Work
from moorage.placement.client.contract import ConsumerClaim, PlacementClient


def drop(placement: PlacementClient, work: Work[Any], at_least: int = 0) -> int | None:
    """The highest generation at which a claim of the server was dropped; None if our lease has ended."""
    server = work.server
    held, generation = placement.allocations(server.uuid)
    if not work.holds():
        return None
    if held:
        nothing = ConsumerClaim(
            server.uuid, {}, server.project_id, server.user_id, consumer_generation=generation
        )
        refusal = placement.claim_together([nothing])
        if refusal is not None:
            raise refusal
    return max(at_least, generation or 0)
