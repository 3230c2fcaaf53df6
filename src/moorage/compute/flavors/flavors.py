"""Flavors: the sizes that servers come in."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from moorage.compute.errors import ComputeError, ConflictError, NotFoundError
from moorage.core import uuids
from moorage.db import revisions
from moorage.db.order import by_character
from moorage.db.pattern import Pattern, fits
from moorage.db.tables.compute import flavor_projects, flavors

SUBJECT = "flavors"
"""Its revision grows with every change of any flavor, and of who may use it."""


class FlavorNotFound(NotFoundError):
    def __init__(self, flavorid: str) -> None:
        super().__init__(f"Flavor {flavorid} could not be found.")


class FlavorNotPrivate(NotFoundError):
    """Everybody has access to a public flavor, so there is no list of who has."""

    def __init__(self) -> None:
        super().__init__("Access list not available for public flavors.")


@dataclass(frozen=True)
class Flavor:
    id: int
    flavorid: str
    name: str
    vcpus: int
    ram: int
    disk: int
    ephemeral: int
    swap: int
    rxtx_factor: float
    is_public: bool
    description: str | None
    extra_specs: dict[str, str]

    def as_booted(self) -> dict[str, Any]:
        """What a server remembers of its flavor, which may change or go later."""
        return {
            "id": self.flavorid,
            "name": self.name,
            "vcpus": self.vcpus,
            "ram": self.ram,
            "disk": self.disk,
            "ephemeral": self.ephemeral,
            "swap": self.swap,
            "extra_specs": self.extra_specs,
        }


_COLUMNS = tuple(flavors.c[field.name] for field in fields(Flavor))

SORTABLE: Mapping[str, sa.Column[Any]] = {
    "created_at": flavors.c.created_at,
    "description": flavors.c.description,
    "ephemeral_gb": flavors.c.ephemeral,
    "flavorid": flavors.c.flavorid,
    "id": flavors.c.id,
    "is_public": flavors.c.is_public,
    "memory_mb": flavors.c.ram,
    "name": flavors.c.name,
    "root_gb": flavors.c.disk,
    "rxtx_factor": flavors.c.rxtx_factor,
    "swap": flavors.c.swap,
    "vcpus": flavors.c.vcpus,
    "disabled": flavors.c.id,
    "updated_at": flavors.c.id,
    "vcpu_weight": flavors.c.id,
}
"""By the API's names; the last ones are the same for all flavors here."""


@dataclass(frozen=True)
class FlavorQuery:
    """Which flavors, in which order."""

    project_id: str | None
    """Private flavors that this project may use count as public ones."""
    is_public: bool | None = True
    """None for both kinds."""
    min_ram: int = 0
    min_disk: int = 0
    name: Pattern | None = None
    sort_key: str = "flavorid"
    descending: bool = False
    marker: str | None = None
    limit: int | None = None


_FIND = sa.select(*_COLUMNS).where(flavors.c.flavorid == sa.bindparam("flavorid"))


def find(connection: Connection, flavorid: str, *, visible_to: str | None = None) -> Flavor:
    """One flavor; with `visible_to`, a private one only if that project may use it."""
    query = _FIND if visible_to is None else _FIND.where(flavors.c.is_public | _usable_by(visible_to))
    row = connection.execute(query, {"flavorid": flavorid}).one_or_none()
    if row is None:
        raise FlavorNotFound(flavorid)
    return Flavor(*row)


def listed(connection: Connection, wanted: FlavorQuery) -> list[Flavor]:
    query = sa.select(*_COLUMNS).where(flavors.c.ram >= wanted.min_ram, flavors.c.disk >= wanted.min_disk)
    if wanted.is_public:
        usable = flavors.c.is_public
        query = query.where(usable | _usable_by(wanted.project_id) if wanted.project_id else usable)
    elif wanted.is_public is not None:
        query = query.where(~flavors.c.is_public)
    if wanted.name is not None:
        query = query.where(fits(connection, flavors.c.name, wanted.name))
    column = by_character(SORTABLE[wanted.sort_key])
    order = (column.desc(), flavors.c.id.desc()) if wanted.descending else (column.asc(), flavors.c.id.asc())
    found = [Flavor(*row) for row in connection.execute(query.order_by(*order))]
    if wanted.marker is not None:
        found = _after(found, wanted.marker)
    return found[: wanted.limit] if wanted.limit else found


def _after(found: list[Flavor], marker: str) -> list[Flavor]:
    for index, flavor in enumerate(found):
        if flavor.flavorid == marker:
            return found[index + 1 :]
    raise ComputeError(f"marker [{marker}] not found")


def _usable_by(project_id: str) -> sa.ColumnElement[bool]:
    allowed = sa.select(flavor_projects.c.flavor_id).where(flavor_projects.c.project_id == project_id)
    return flavors.c.id.in_(allowed)


def create(connection: Connection, *, flavorid: str | None, name: str, **values: Any) -> Flavor:
    flavorid = uuids.generate() if flavorid in (None, "auto") else flavorid
    taken = sa.select(flavors.c.name).where((flavors.c.name == name) | (flavors.c.flavorid == flavorid))
    for (known,) in connection.execute(taken):
        same = f"name {name}" if known == name else f"ID {flavorid}"
        raise ConflictError(f"Flavor with {same} already exists.")
    revisions.grow(connection, SUBJECT)
    connection.execute(sa.insert(flavors).values(flavorid=flavorid, name=name, **values))
    return find(connection, str(flavorid))


def describe(connection: Connection, flavorid: str, description: str | None) -> Flavor:
    revisions.grow(connection, SUBJECT)
    connection.execute(
        sa.update(flavors).where(flavors.c.flavorid == flavorid).values(description=description)
    )
    return find(connection, flavorid)


def delete(connection: Connection, flavorid: str) -> None:
    revisions.grow(connection, SUBJECT)
    gone = sa.delete(flavors).where(flavors.c.flavorid == flavorid).returning(flavors.c.id)
    if connection.execute(gone).one_or_none() is None:
        raise FlavorNotFound(flavorid)


def add_specs(connection: Connection, flavorid: str, specs: Mapping[str, str]) -> None:
    flavor = _locked(connection, flavorid)
    _save_specs(connection, flavor, {**flavor.extra_specs, **specs})


def remove_spec(connection: Connection, flavorid: str, key: str) -> None:
    flavor = _locked(connection, flavorid)
    spec(flavor, key)
    _save_specs(
        connection, flavor, {name: value for name, value in flavor.extra_specs.items() if name != key}
    )


def spec(flavor: Flavor, key: str) -> str:
    """The value of one extra spec."""
    if key not in flavor.extra_specs:
        raise NotFoundError(f"Flavor {flavor.flavorid} has no extra specs with key {key}.")
    return flavor.extra_specs[key]


def _locked(connection: Connection, flavorid: str) -> Flavor:
    query = sa.select(*_COLUMNS).where(flavors.c.flavorid == flavorid).with_for_update()
    row = connection.execute(query).one_or_none()
    if row is None:
        raise FlavorNotFound(flavorid)
    return Flavor(*row)


def _save_specs(connection: Connection, flavor: Flavor, specs: dict[str, str]) -> None:
    revisions.grow(connection, SUBJECT)
    connection.execute(sa.update(flavors).where(flavors.c.id == flavor.id).values(extra_specs=specs))


def projects(connection: Connection, flavor: Flavor) -> list[str]:
    """Who may use a private flavor."""
    query = sa.select(flavor_projects.c.project_id).where(flavor_projects.c.flavor_id == flavor.id)
    return list(connection.execute(query.order_by(by_character(flavor_projects.c.project_id))).scalars())


def allow(connection: Connection, flavor: Flavor, project_id: str) -> None:
    if project_id in projects(connection, flavor):
        raise ConflictError(
            f"Flavor access already exists for flavor {flavor.flavorid} and project {project_id} combination."
        )
    revisions.grow(connection, SUBJECT)
    connection.execute(sa.insert(flavor_projects).values(flavor_id=flavor.id, project_id=project_id))


def disallow(connection: Connection, flavor: Flavor, project_id: str) -> None:
    revisions.grow(connection, SUBJECT)
    gone = (
        sa.delete(flavor_projects)
        .where(flavor_projects.c.flavor_id == flavor.id, flavor_projects.c.project_id == project_id)
        .returning(flavor_projects.c.project_id)
    )
    if connection.execute(gone).one_or_none() is None:
        raise NotFoundError(f"Flavor access not found for {flavor.flavorid} / {project_id} combination.")
