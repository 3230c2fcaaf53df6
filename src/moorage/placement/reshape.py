"""Reshapes: inventories of several providers, and what consumers hold of them, changed in one transaction."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from sqlalchemy.engine import Connection

from moorage.placement import claims
from moorage.placement.claims import Claim
from moorage.placement.errors import ConcurrentUpdate, NotFoundError, ProviderNotFound
from moorage.placement.store import inventories, providers
from moorage.placement.store.inventories import Inventory
from moorage.placement.store.providers import Provider
from moorage.placement.store.writable_trees import ANY_TREE, WritableTrees


class ReshapedProviderNotFound(NotFoundError):
    """A provider whose inventories shall change does not exist."""

    def __init__(self, uuid: str, error: ProviderNotFound) -> None:
        super().__init__(f"Resource provider {uuid} in inventories not found: {error}")


class ReshapedProviderChanged(ConcurrentUpdate):
    """A provider is not any more as who reshapes it has seen it."""

    def __init__(self, uuid: str, actual: int, given: int) -> None:
        super().__init__(
            f"resource provider generation conflict for provider {uuid}: actual: {actual}, given: {given}"
        )


@dataclass(frozen=True, slots=True)
class Reshaped:
    """What a provider shall have, if it is still at that generation."""

    generation: int
    inventories: Mapping[str, Inventory]


def reshape(
    connection: Connection,
    wanted: Mapping[str, Reshaped],
    request: Sequence[Claim],
    trees: WritableTrees = ANY_TREE,
) -> None:
    """First the union of old and new inventories, then the claims, then what shall be gone goes."""
    moved = []
    providers.lock_all(connection, wanted)
    for uuid, target in wanted.items():
        provider = _locked(connection, uuid, target.generation, trees)
        if target.inventories:
            inventories.merge(connection, provider, target.inventories)
        moved.append((provider, target.inventories))
    if request:
        trees.admit_claims(connection, request)
        claims.replace(connection, request)
    for provider, new in moved:
        provider.generation = providers.find(connection, provider.uuid).generation
        inventories.replace(connection, provider, new)


def _locked(connection: Connection, uuid: str, generation: int, trees: WritableTrees) -> Provider:
    try:
        provider = providers.lock(connection, uuid, trees)
    except ProviderNotFound as error:
        raise ReshapedProviderNotFound(uuid, error) from error
    if provider.generation != generation:
        raise ReshapedProviderChanged(uuid, provider.generation, generation)
    return provider
