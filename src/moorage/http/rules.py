"""Policy rules, made from the table of routes so that none is forgotten."""

from __future__ import annotations

from collections.abc import Iterable

from oslo_policy import policy

from moorage.http.route import Route, S


def of_routes(routes: Iterable[Route[S]]) -> list[policy.RuleDefault]:
    """One rule for each name in the table, with all the operations that it protects."""
    by_name: dict[str, policy.DocumentedRuleDefault] = {}
    for route in routes:
        for method, endpoint in route.methods.items():
            if endpoint.policy is None:
                continue
            operation = policy.Operation(method=method, path=route.path)
            known = by_name.get(endpoint.policy)
            if known is not None:
                known.operations.append(operation)
                continue
            by_name[endpoint.policy] = policy.DocumentedRuleDefault(
                name=endpoint.policy,
                check_str=endpoint.check,
                description=endpoint.summary,
                operations=[operation],
                scope_types=["project"],
            )
    return list(by_name.values())
