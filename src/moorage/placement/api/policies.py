"""The policy rules: the personas, and a rule for each line of the table of routes."""

from __future__ import annotations

from oslo_policy import policy

from moorage.http.caller import AGENT_ROLE
from moorage.http.route import Route
from moorage.http.rules import of_routes
from moorage.placement.service import PlacementService

_SINCE = "0.1"
_REASON = (
    "Placement's rules have distinguished the roles admin, service and reader since the reference's 6.0."
)
_EVERYTHING_FOR_ADMIN = policy.DeprecatedRule(
    name="rule:admin_api", check_str="role:admin", deprecated_reason=_REASON, deprecated_since=_SINCE
)

PERSONAS: tuple[policy.RuleDefault, ...] = (
    policy.RuleDefault(
        "context_is_admin", "role:admin", "An administrator, as the Compute API calls one: for a shared file."
    ),
    policy.RuleDefault("admin_api", "role:admin", "An administrator.", scope_types=["project"]),
    policy.RuleDefault(
        "service_api",
        "role:service",
        "Another service of the cloud.",
        scope_types=["project"],
        deprecated_rule=_EVERYTHING_FOR_ADMIN,
    ),
    policy.RuleDefault(
        "admin_or_service_api",
        "role:admin or role:service",
        "An administrator or another service: most of the API.",
        scope_types=["project"],
        deprecated_rule=_EVERYTHING_FOR_ADMIN,
    ),
    policy.RuleDefault("agent_api", f"role:{AGENT_ROLE}", "The agent of a host.", scope_types=["project"]),
    policy.RuleDefault(
        "service_or_agent_api",
        f"role:service or role:{AGENT_ROLE}",
        "Who may change the shape of a host's tree: no administrator.",
        scope_types=["project"],
        deprecated_rule=_EVERYTHING_FOR_ADMIN,
    ),
    policy.RuleDefault(
        "admin_or_service_or_agent_api",
        f"role:admin or role:service or role:{AGENT_ROLE}",
        "Whoever tells of hosts.",
        scope_types=["project"],
        deprecated_rule=_EVERYTHING_FOR_ADMIN,
    ),
    policy.RuleDefault(
        "project_reader_api",
        "role:reader and project_id:%(project_id)s",
        "Somebody who may see what a project has.",
        deprecated_rule=_EVERYTHING_FOR_ADMIN,
    ),
    policy.RuleDefault(
        "admin_or_project_reader_or_service_api",
        "role:admin or rule:project_reader_api or role:service",
        "All of the above.",
        scope_types=["project"],
        deprecated_rule=_EVERYTHING_FOR_ADMIN,
    ),
)


def rules(routes: tuple[Route[PlacementService], ...]) -> list[policy.RuleDefault]:
    return [*PERSONAS, *of_routes(routes)]
