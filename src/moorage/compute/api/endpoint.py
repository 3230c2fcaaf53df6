"""What most lines of the Compute API's table of routes have in common."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from moorage.compute.service import ComputeService
from moorage.http.call import Call
from moorage.http.route import Endpoint, Route

RULE = "os_compute_api:"
ADMIN = "rule:context_is_admin"
MEMBER = "rule:project_member_or_admin"
READER = "rule:project_reader_or_admin"
MANAGER = "rule:project_manager_or_admin"
SERVICE = "rule:service_or_admin"
ANYBODY = "@"

R = Route[ComputeService]
Target = Mapping[str, str | None]


def own_project(call: Call) -> Target:
    """The caller's own project: for what a rule protects before anything was looked up."""
    return {"project_id": call.caller.project_id, "user_id": call.caller.user_id}


def is_admin(call: Call) -> bool:
    return call.allows("context_is_admin", {})


@dataclass(frozen=True)
class E(Endpoint[ComputeService]):
    """Only administrators, unless the line says otherwise."""

    check: str = ADMIN
    target: Callable[[Call], Target] = own_project
