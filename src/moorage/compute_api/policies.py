"""The policy rules: the reference's personas, and a rule for each line of the table of routes."""

from __future__ import annotations

from collections.abc import Iterable

from oslo_policy import policy

from moorage.compute_api.service import ComputeService
from moorage.http.route import Route
from moorage.http.rules import merged, of_routes

PERSONAS: tuple[policy.RuleDefault, ...] = (
    policy.RuleDefault("context_is_admin", "role:admin", "An administrator."),
    policy.RuleDefault(
        "project_member_api",
        "role:member and project_id:%(project_id)s",
        "Somebody who works in the project.",
    ),
    policy.RuleDefault(
        "project_reader_api",
        "role:reader and project_id:%(project_id)s",
        "Somebody who may see what the project has.",
    ),
    policy.RuleDefault(
        "project_manager_api",
        "role:manager and project_id:%(project_id)s",
        "Somebody who looks after the project.",
    ),
    policy.RuleDefault("service_api", "role:service", "Another service of the cloud."),
    policy.RuleDefault(
        "project_member_or_admin", "rule:project_member_api or rule:context_is_admin", "Changes in a project."
    ),
    policy.RuleDefault(
        "project_reader_or_admin", "rule:project_reader_api or rule:context_is_admin", "Reads in a project."
    ),
    policy.RuleDefault(
        "project_manager_or_admin",
        "rule:project_manager_api or rule:context_is_admin",
        "What a project's members may not all do.",
    ),
    policy.RuleDefault(
        "service_or_admin", "rule:service_api or rule:context_is_admin", "What services tell each other."
    ),
    policy.RuleDefault("admin_api", "rule:context_is_admin", "The older name, for policy files that use it."),
    policy.RuleDefault(
        "admin_or_owner",
        "rule:context_is_admin or project_id:%(project_id)s",
        "The older persona, for policy files that use it.",
    ),
)


def rules(
    routes: tuple[Route[ComputeService], ...], further: Iterable[policy.DocumentedRuleDefault] = ()
) -> list[policy.RuleDefault]:
    """`further` are those that handlers ask about by themselves, after they know more."""
    return [*PERSONAS, *merged([*of_routes(routes), *further])]
