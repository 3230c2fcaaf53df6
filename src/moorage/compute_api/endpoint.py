"""What most lines of the Compute API's table of routes have in common."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from moorage.compute_api.microversions import Microversion
from moorage.compute_api.service import ComputeService
from moorage.core.microversions import Version
from moorage.http.call import Call
from moorage.http.policy import Target
from moorage.http.route import Endpoint, Route

RULE = "os_compute_api:"
ADMIN = "rule:context_is_admin"
MEMBER = "rule:project_member_or_admin"
READER = "rule:project_reader_or_admin"
MANAGER = "rule:project_manager_or_admin"
SERVICE = "rule:service_or_admin"
ANYBODY = "@"

R = Route[ComputeService]


class HasOwner(Protocol):
    @property
    def project_id(self) -> str: ...
    @property
    def user_id(self) -> str: ...


def owner_of(thing: HasOwner) -> Target:
    """What rules compare the caller's ids with: those of whoever made the thing."""
    return {"project_id": thing.project_id, "user_id": thing.user_id}


def own_project(call: Call) -> Target:
    """The caller's own: for lists of the project's things, and for what shall be made in it."""
    return {"project_id": call.caller.project_id, "user_id": call.caller.user_id}


def is_admin(call: Call) -> bool:
    return call.allows("context_is_admin", own_project(call))


def visible_project(call: Call) -> str | None:
    """The one project whose things the caller may know of; None for all."""
    return None if is_admin(call) else call.caller.project_id or ""


@dataclass(frozen=True)
class AdminEndpoint(Endpoint[ComputeService]):
    """What is the cloud's: only for administrators, unless the line says otherwise."""

    check: str = ADMIN
    every_value: bool = True
    no_query_since: Version | None = Microversion.QUERIES_CHECKED


@dataclass(frozen=True)
class Own(AdminEndpoint):
    """What the caller's project has, or shall have."""

    target: Callable[[Call], Target] | None = own_project


@dataclass(frozen=True)
class Owned(AdminEndpoint):
    """Something that exists, and has an owner: the handler's look-up tells whose it is."""

    target: Callable[[Call], Target] | None = None
