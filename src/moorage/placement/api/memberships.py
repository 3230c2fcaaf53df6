"""`/moorage/v1/aggregates`: our extension for those who keep the aggregates of a whole fleet."""

from __future__ import annotations

from typing import Annotated, TypeVar

import msgspec
from msgspec import Meta

from moorage.http.call import Call
from moorage.http.errors import HttpError
from moorage.http.reply import Reply
from moorage.placement.api.refusals import status_of
from moorage.placement.api.writers import writable_trees
from moorage.placement.service import PlacementService
from moorage.placement.store import memberships
from moorage.placement.store.memberships import Membership

T = TypeVar("T")
_Uuid = Annotated[str, Meta(pattern="^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}\\Z")]
_MOST = 20_000
"""Providers in one request."""


class _Question(msgspec.Struct, forbid_unknown_fields=True):
    aggregates: Annotated[list[_Uuid], Meta(max_length=_MOST)] = []
    providers: Annotated[list[_Uuid], Meta(max_length=_MOST)] = []


class _Provider(msgspec.Struct, forbid_unknown_fields=True):
    uuid: _Uuid
    generation: int
    aggregates: list[_Uuid]


class _Change(msgspec.Struct, forbid_unknown_fields=True):
    providers: Annotated[list[_Provider], Meta(max_length=_MOST)]


class _Refusal(msgspec.Struct):
    status: int
    detail: str


def members(service: PlacementService, call: Call) -> Reply:
    """List the resource providers in each of many aggregates."""
    asked = _decoded(call, _Question).aggregates
    with service.database.read() as connection:
        return Reply(body={"members": memberships.members(connection, asked)})


def of_providers(service: PlacementService, call: Call) -> Reply:
    """List the aggregates of many resource providers."""
    asked = _decoded(call, _Question).providers
    with service.database.snapshot() as connection:
        found = memberships.of_providers(connection, asked)
    shown = [_Provider(uuid, generation, list(held)) for uuid, (generation, held) in found.items()]
    return Reply(body={"providers": shown})


def replace(service: PlacementService, call: Call) -> Reply:
    """Set the aggregates of many resource providers, each of them at the generation that is given."""
    asked = _decoded(call, _Change).providers
    wanted = {
        provider.uuid: Membership(provider.generation, frozenset(provider.aggregates)) for provider in asked
    }
    if len(wanted) != len(asked):
        raise HttpError(400, "a provider is named twice")
    trees = writable_trees(service, call)
    refused = service.database.transact(lambda connection: memberships.replace(connection, wanted, trees))
    shown = {uuid: _Refusal(status_of(error), str(error)) for uuid, error in refused.items()}
    return Reply(body={"refused": shown})


def _decoded(call: Call, kind: type[T]) -> T:
    try:
        return msgspec.json.decode(call.body(), type=kind)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise HttpError(400, f"Malformed request: {error}") from error
