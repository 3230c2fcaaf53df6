"""`/traits` and `/resource_providers/{uuid}/traits`: what a provider is like."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sqlalchemy.engine import Connection

from moorage.core.clock import utcnow
from moorage.http.call import Call
from moorage.http.errors import HttpError
from moorage.http.reply import NO_CONTENT, Reply, no_content
from moorage.placement.api import schemas
from moorage.placement.api.refusals import refusing
from moorage.placement.api.writers import writable_trees
from moorage.placement.errors import ProviderGenerationConflict, StandardName
from moorage.placement.service import PlacementService
from moorage.placement.store import names, providers, traits
from moorage.placement.store.names import Name
from moorage.placement.store.providers import Provider


def index(service: PlacementService, call: Call) -> Reply:
    """List traits."""
    call.checked_query()
    filters: dict[str, Any] = _name_filter(call.query.get("name"))
    associated = call.query.get("associated")
    if associated is not None:
        if associated.lower() not in ("true", "false"):
            raise HttpError(400, 'The query parameter "associated" only accepts "true" or "false"')
        filters["associated"] = associated.lower() == "true"
    with service.database.read() as connection:
        found = names.list_traits(connection, **filters)
    return Reply(body={"traits": [trait.name for trait in found]}, last_modified=_newest(found))


def _name_filter(value: str | None) -> dict[str, Any]:
    if value is None:
        return {}
    operator, colon, operand = value.partition(":")
    if not colon:
        raise HttpError(
            400,
            "Badly formatted name parameter. Expected name query string parameter in form: "
            f'?name=[in|startswith]:[name1,name2|prefix]. Got: "{value}"',
        )
    if operator == "in":
        return {"names": operand.split(",")}
    return {"prefix": operand} if operator == "startswith" else {}


def show(service: PlacementService, call: Call) -> Reply:
    """Tell whether a trait exists."""
    with service.database.read() as connection:
        found = names.find_trait(connection, call.params["name"])
    return Reply(NO_CONTENT, last_modified=found.changed_at)


def create(service: PlacementService, call: Call) -> Reply:
    """Create a custom trait, if it does not exist yet."""
    name = call.params["name"]
    if schemas.CUSTOM_TRAIT.problem(name) is not None:
        raise HttpError(
            400,
            "The trait is invalid. A valid trait must be no longer than 255 characters, start with the "
            'prefix "CUSTOM_" and use following characters: "A"-"Z", "0"-"9" and "_"',
        )

    def ensure(connection: Connection) -> tuple[bool, Name]:
        made = names.ensure_trait(connection, name)
        return made, names.find_trait(connection, name)

    made, found = service.database.transact(ensure)
    location = call.location(f"/traits/{name}")
    return Reply(201 if made else NO_CONTENT, last_modified=found.changed_at, headers=location)


def delete(service: PlacementService, call: Call) -> Reply:
    """Delete a custom trait."""
    with refusing({StandardName: (400, "{error}")}):
        service.database.transact(lambda connection: names.delete_trait(connection, call.params["name"]))
    return no_content()


def of_provider(service: PlacementService, call: Call) -> Reply:
    """List the traits of a resource provider."""
    with service.database.snapshot() as connection:
        provider = providers.find(connection, call.params["uuid"])
        found = traits.of_provider(connection, provider.id)
    return _reply(provider, found)


def replace(service: PlacementService, call: Call) -> Reply:
    """Set the traits of a resource provider."""
    data = call.json()
    trees = writable_trees(service, call)

    def set_all(connection: Connection) -> tuple[Provider, list[Name]]:
        provider = providers.lock(connection, call.params["uuid"], trees)
        provider.expect_generation(data["resource_provider_generation"])
        found = names.list_traits(connection, names=data["traits"])
        unknown = sorted(set(data["traits"]) - {trait.name for trait in found})
        if unknown:
            raise HttpError(400, f"No such trait {', '.join(unknown)}")
        traits.replace(connection, provider, found)
        return provider, found

    changed = "Resource provider's generation already changed. Please update the generation and try again."
    with refusing({ProviderGenerationConflict: (409, changed)}):
        provider, found = service.database.transact(set_all)
    return _reply(provider, found)


def clear(service: PlacementService, call: Call) -> Reply:
    """Take all traits from a resource provider."""
    trees = writable_trees(service, call)

    def remove_all(connection: Connection) -> None:
        traits.replace(connection, providers.lock(connection, call.params["uuid"], trees), [])

    service.database.transact(remove_all)
    return no_content()


def _reply(provider: Provider, found: Sequence[Name]) -> Reply:
    body = {"traits": [trait.name for trait in found], "resource_provider_generation": provider.generation}
    return Reply(body=body, last_modified=_newest(found))


def _newest(found: Sequence[Name]) -> Any:
    return max((trait.changed_at for trait in found), default=utcnow())
