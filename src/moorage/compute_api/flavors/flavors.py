"""`/flavors`: the flavors themselves."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from sqlalchemy.engine import Connection

from moorage.compute.flavors import flavors
from moorage.compute.flavors.flavors import Flavor, FlavorQuery
from moorage.compute_api import links
from moorage.compute_api.endpoint import RULE, is_admin, own_project
from moorage.compute_api.microversions import Microversion
from moorage.compute_api.schema_types import MAX_INT, as_boolean
from moorage.compute_api.service import ComputeService
from moorage.core.numbers import bounded
from moorage.db import pattern
from moorage.db.pattern import Pattern, PatternError
from moorage.http.call import Call
from moorage.http.errors import HttpError
from moorage.http.reply import Reply, empty

T = TypeVar("T")
SEES_SPECS = f"{RULE}os-flavor-extra-specs:index"
_EVERY_KIND = {"none"}
_YES = {"1", "t", "true", "on", "y", "yes"}
_NO = {"0", "f", "false", "off", "n", "no"}


def index(service: ComputeService, call: Call) -> Reply:
    """List flavors."""
    return _list(service, call, "flavors", lambda flavor: _brief(call, flavor))


def detail(service: ComputeService, call: Call) -> Reply:
    """List flavors with all that is known of them."""
    with_specs = _shows_specs(call)
    return _list(service, call, "flavors/detail", lambda flavor: _full(call, flavor, with_specs))


def _list(service: ComputeService, call: Call, collection: str, view: Any) -> Reply:
    query = call.checked_query()
    page = links.page(call, service.settings.max_limit)
    wanted = FlavorQuery(
        project_id=call.caller.project_id,
        is_public=_which(query.get("is_public")) if is_admin(call) else True,
        min_ram=_least(query.get("minRam"), "minRam"),
        min_disk=_least(query.get("minDisk"), "minDisk"),
        name=_named(query.get("name")) if call.version >= Microversion.QUERIES_CHECKED else None,
        sort_key=query.get("sort_key") or "flavorid",
        descending=query.get("sort_dir") == "desc",
        marker=page.marker,
        limit=page.limit,
    )
    with service.database.read() as connection:
        found = flavors.listed(connection, wanted)
    body: dict[str, Any] = {"flavors": [view(flavor) for flavor in found]}
    more = links.next_page(call, collection, [flavor.flavorid for flavor in found], page.limit)
    if more:
        body["flavors_links"] = more
    return Reply(body=body)


def _named(asked: str | None) -> Pattern | None:
    try:
        return None if asked is None else pattern.parse(asked)
    except PatternError as error:
        raise HttpError(400, f"Invalid name filter [{asked}]: {error}") from error


def visible_to(call: Call) -> str | None:
    """The project that must be allowed to use a private flavor; None for who sees all."""
    return None if is_admin(call) else call.caller.project_id or ""


def changing(call: Call, change: Callable[[Connection, str], T]) -> Callable[[Connection], T]:
    """Of the flavor that the path names; whatever a policy opens, what one can't see is not there."""
    flavorid, project_id = call.params["flavor_id"], visible_to(call)

    def work(connection: Connection) -> T:
        if project_id is not None:
            flavors.find(connection, flavorid, visible_to=project_id)
        return change(connection, flavorid)

    return work


def _which(asked: str | None) -> bool | None:
    text = ("true" if asked is None else asked).strip().lower()
    if text in _EVERY_KIND:
        return None
    if text not in _YES | _NO:
        raise HttpError(400, f"Invalid is_public filter [{asked}]")
    return text in _YES


def _least(asked: str | None, name: str) -> int:
    try:
        return bounded(int("0" if asked is None else asked))
    except ValueError as error:
        raise HttpError(400, f"Invalid {name} filter [{asked}]") from error


def show(service: ComputeService, call: Call) -> Reply:
    """Show a flavor."""
    with service.database.read() as connection:
        flavor = flavors.find(connection, call.params["flavor_id"], visible_to=visible_to(call))
    return _answer(call, flavor)


def create(service: ComputeService, call: Call) -> Reply:
    """Create a flavor."""
    asked = call.json()["flavor"]
    values = {
        "vcpus": _amount(asked, "vcpus"),
        "ram": _amount(asked, "ram"),
        "disk": _amount(asked, "disk"),
        "ephemeral": _amount(asked, "OS-FLV-EXT-DATA:ephemeral"),
        "swap": _amount(asked, "swap"),
        "rxtx_factor": _factor(asked),
        "is_public": as_boolean(asked.get("os-flavor-access:is_public", True)),
        "description": asked.get("description"),
    }
    given = asked.get("id")
    flavorid = None if given is None else str(given)
    flavor = service.database.transact(
        lambda connection: flavors.create(connection, flavorid=flavorid, name=asked["name"], **values)
    )
    return _answer(call, flavor)


def _amount(asked: dict[str, Any], name: str) -> int:
    """A schema sees no bound in a number that is written as text."""
    amount = int(asked.get(name, 0))
    if amount > MAX_INT:
        raise HttpError(
            400, f"Invalid input for field/attribute {name}. Value: {amount}. {amount} is too large"
        )
    return amount


def _factor(asked: dict[str, Any]) -> float:
    factor = float(asked.get("rxtx_factor", 1.0))
    if not 0 < factor <= 3.40282e38:
        raise HttpError(400, f"Invalid input for field/attribute rxtx_factor. Value: {factor}.")
    return factor


def update(service: ComputeService, call: Call) -> Reply:
    """Describe a flavor in other words."""
    description = call.json()["flavor"]["description"]
    describe = changing(
        call, lambda connection, flavorid: flavors.describe(connection, flavorid, description)
    )
    return _answer(call, service.database.transact(describe))


def delete(service: ComputeService, call: Call) -> Reply:
    """Delete a flavor; servers keep what they were booted with."""
    service.database.transact(changing(call, flavors.delete))
    return empty(202)


def _answer(call: Call, flavor: Flavor) -> Reply:
    return Reply(body={"flavor": _full(call, flavor, _shows_specs(call))})


def _shows_specs(call: Call) -> bool:
    return call.version >= Microversion.EXTRA_SPECS_IN_FLAVOR and call.allows(SEES_SPECS, own_project(call))


def _brief(call: Call, flavor: Flavor) -> dict[str, Any]:
    body: dict[str, Any] = {
        "id": flavor.flavorid,
        "name": flavor.name,
        "links": links.of(call, "flavors", flavor.flavorid),
    }
    if call.version >= Microversion.FLAVOR_DESCRIPTIONS:
        body["description"] = flavor.description
    return body


def _full(call: Call, flavor: Flavor, with_specs: bool) -> dict[str, Any]:
    no_swap = 0 if call.version >= Microversion.CONSISTENT_ANSWERS else ""
    body = {
        **_brief(call, flavor),
        "ram": flavor.ram,
        "disk": flavor.disk,
        "swap": flavor.swap or no_swap,
        "OS-FLV-EXT-DATA:ephemeral": flavor.ephemeral,
        "vcpus": flavor.vcpus,
        "os-flavor-access:is_public": flavor.is_public,
    }
    if call.version < Microversion.QUERIES_CHECKED:
        body |= {"OS-FLV-DISABLED:disabled": False, "rxtx_factor": flavor.rxtx_factor}
    if with_specs:
        body["extra_specs"] = flavor.extra_specs
    return body
