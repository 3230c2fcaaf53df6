"""`/resource_providers`: the providers themselves."""

from __future__ import annotations

from typing import Any

from moorage.core import uuids
from moorage.core.clock import from_timestamp, utcnow
from moorage.core.microversions import Version
from moorage.http.call import Call
from moorage.http.errors import HttpError
from moorage.http.reply import Reply, no_content
from moorage.placement.api.queries import parsing
from moorage.placement.api.refusals import CANNOT_DELETE_PARENT, DUPLICATE_NAME, PROVIDER_IN_USE, refusing
from moorage.placement.api.writers import writable_trees
from moorage.placement.errors import (
    ParentRefused,
    ProviderExists,
    ProviderHasChildren,
    ProviderInUse,
    ProviderNotFound,
)
from moorage.placement.microversions import Microversion
from moorage.placement.search import parse
from moorage.placement.search.providers import find_providers
from moorage.placement.service import PlacementService
from moorage.placement.store import providers
from moorage.placement.store.providers import Provider
from moorage.placement.store.writable_trees import WritableTrees

_LINKS: tuple[tuple[Version, str], ...] = (
    (Microversion.FIRST, "inventories"),
    (Microversion.FIRST, "usages"),
    (Microversion.AGGREGATES, "aggregates"),
    (Microversion.TRAITS, "traits"),
    (Microversion.LINKS_TO_ALLOCATIONS, "allocations"),
)


def index(service: PlacementService, call: Call) -> Reply:
    """List resource providers."""
    call.checked_query()
    with parsing('Invalid trait(s) in "required" parameter: {error}'):
        filters = parse.provider_filters(call.query.pairs, call.version)
        with service.picture() as (fleet, _):
            slots = find_providers(fleet, filters)
            rows = []
            for slot in slots:
                parent = fleet.parent_of(slot)
                rows.append(
                    _body(
                        call,
                        fleet.uuids[slot],
                        fleet.provider_names[slot],
                        fleet.generations[slot],
                        None if parent is None else fleet.uuids[parent],
                        fleet.uuids[fleet.root_of(slot)],
                    )
                )
            newest = max((fleet.updated_at[slot] for slot in slots), default=None)
    return Reply(
        body={"resource_providers": rows},
        last_modified=utcnow() if newest is None else from_timestamp(newest),
    )


def create(service: PlacementService, call: Call) -> Reply:
    """Create a resource provider."""
    data = call.json()
    trees = writable_trees(service, call)
    uuid = uuids.normal(data["uuid"]) if data.get("uuid") else uuids.generate()
    refused = f'Unable to create resource provider "{_plain(data["name"])}", {uuid}: '
    with (
        _duplicates(),
        refusing({ParentRefused: (400, refused + "Object action create failed because: {error}")}),
    ):
        if not data["name"]:
            raise ParentRefused("name is required")
        provider = service.database.transact(
            lambda connection: providers.create(
                connection, uuid, data["name"], data.get("parent_provider_uuid"), trees
            )
        )
    headers = call.location(f"/resource_providers/{uuid}")
    if call.version < Microversion.CREATED_PROVIDER_RETURNED:
        return Reply(201, headers=headers)
    return Reply(200, _provider_body(call, provider), provider.updated_at, headers)


def show(service: PlacementService, call: Call) -> Reply:
    """Show a resource provider."""
    with service.database.read() as connection:
        provider = providers.find(connection, call.params["uuid"])
    return Reply(body=_provider_body(call, provider), last_modified=provider.updated_at)


def update(service: PlacementService, call: Call) -> Reply:
    """Rename a resource provider, or give it another parent."""
    uuid = call.params["uuid"]
    with service.database.read() as connection:
        providers.find(connection, uuid)
    data = call.json()
    trees = writable_trees(service, call)
    refused = f"Unable to save resource provider {uuid}: Object action update failed because: "
    with _duplicates(), refusing({ParentRefused: (400, refused + "{error}")}):
        provider = service.database.transact(
            lambda connection: _save(connection, uuid, data, call.version, trees)
        )
    return Reply(body=_provider_body(call, provider), last_modified=provider.updated_at)


def _save(
    connection: Any, uuid: str, data: dict[str, Any], version: Version, trees: WritableTrees
) -> Provider:
    """A parent that is refused (400) is told before a name that is taken (409), as the reference does."""
    provider = providers.lock(connection, uuid, trees)
    if "parent_provider_uuid" in data:
        providers.set_parent(
            connection,
            provider,
            data["parent_provider_uuid"],
            reparenting=version >= Microversion.PARENT_CHANGED,
            trees=trees,
        )
    providers.rename(connection, provider, data["name"])
    return providers.find(connection, uuid)


def delete(service: PlacementService, call: Call) -> Reply:
    """Delete a resource provider."""
    uuid = call.params["uuid"]
    trees = writable_trees(service, call)
    try:
        service.database.transact(lambda connection: providers.delete(connection, uuid, trees))
    except ProviderNotFound as error:
        raise HttpError(404, f"No resource provider with uuid {uuid} found for delete") from error
    except ProviderInUse as error:
        detail = f"Unable to delete resource provider {uuid}: {error}"
        raise HttpError(409, detail, code=PROVIDER_IN_USE) from error
    except ProviderHasChildren as error:
        raise HttpError(409, str(error), code=CANNOT_DELETE_PARENT) from error
    return no_content()


class _duplicates:  # noqa: N801  (reads as a statement)
    """A name or UUID that is taken: 409 with a code of its own."""

    def __enter__(self) -> None:
        pass

    def __exit__(self, _kind: object, error: BaseException | None, _trace: object) -> None:
        if isinstance(error, ProviderExists):
            raise HttpError(409, str(error), code=DUPLICATE_NAME) from error


def _plain(text: str) -> str:
    return text.replace("{", "{{").replace("}", "}}")


def _provider_body(call: Call, provider: Provider) -> dict[str, Any]:
    return _body(
        call,
        provider.uuid,
        provider.name,
        provider.generation,
        provider.parent_uuid,
        provider.root_uuid,
    )


def _body(
    call: Call, uuid: str, name: str, generation: int, parent_uuid: str | None, root_uuid: str
) -> dict[str, Any]:
    url = call.url(f"/resource_providers/{uuid}")
    links = [{"rel": "self", "href": url}]
    links += [{"rel": rel, "href": f"{url}/{rel}"} for since, rel in _LINKS if call.version >= since]
    body = {"uuid": uuid, "name": name, "generation": generation, "links": links}
    if call.version >= Microversion.TREES:
        body["parent_provider_uuid"] = parent_uuid
        body["root_provider_uuid"] = root_uuid
    return body
