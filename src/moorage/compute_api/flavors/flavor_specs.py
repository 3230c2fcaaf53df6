"""`/flavors/{flavor_id}/os-extra_specs`: what a flavor asks for beyond its size."""

from __future__ import annotations

from typing import Any

from moorage.compute.flavors import extra_specs, flavors
from moorage.compute_api.flavors.flavors import changing, visible_to
from moorage.compute_api.microversions import Microversion
from moorage.compute_api.service import ComputeService
from moorage.http.call import Call
from moorage.http.errors import HttpError
from moorage.http.reply import Reply, empty

_MAX_LENGTH = 255


def index(service: ComputeService, call: Call) -> Reply:
    """List the extra specs of a flavor."""
    with service.database.read() as connection:
        flavor = flavors.find(connection, call.params["flavor_id"], visible_to=visible_to(call))
    return Reply(body={"extra_specs": flavor.extra_specs})


def show(service: ComputeService, call: Call) -> Reply:
    """Show one extra spec of a flavor."""
    with service.database.read() as connection:
        flavor = flavors.find(connection, call.params["flavor_id"], visible_to=visible_to(call))
    key = call.params["key"]
    return Reply(body={key: flavors.spec(flavor, key)})


def create(service: ComputeService, call: Call) -> Reply:
    """Add extra specs to a flavor, or change them."""
    specs = _checked(call, call.json()["extra_specs"])
    _add(service, call, specs)
    return Reply(body={"extra_specs": specs})


def update(service: ComputeService, call: Call) -> Reply:
    """Change one extra spec of a flavor."""
    specs = _checked(call, call.json())
    if call.params["key"] not in specs:
        raise HttpError(400, "Request body and URI mismatch")
    _add(service, call, specs)
    return Reply(body=specs)


def delete(service: ComputeService, call: Call) -> Reply:
    """Take an extra spec from a flavor."""
    key = call.params["key"]
    service.database.transact(
        changing(call, lambda connection, flavorid: flavors.remove_spec(connection, flavorid, key))
    )
    return empty(200)


def _add(service: ComputeService, call: Call, specs: dict[str, str]) -> None:
    service.database.transact(
        changing(call, lambda connection, flavorid: flavors.add_specs(connection, flavorid, specs))
    )


def _checked(call: Call, asked: dict[str, Any]) -> dict[str, str]:
    specs = {key: str(value) for key, value in asked.items()}
    for key, value in specs.items():
        if len(value) > _MAX_LENGTH:
            raise HttpError(400, f"extra_specs value has {len(value)} characters, more than {_MAX_LENGTH}.")
        if call.version >= Microversion.EXTRA_SPECS_CHECKED:
            extra_specs.check(key, value)
    return specs
