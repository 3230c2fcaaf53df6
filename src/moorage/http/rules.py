"""Policy rules, made from the table of routes so that none is forgotten."""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache
from typing import Any

from oslo_policy import policy

from moorage.http.route import Route

_SCOPES = ["project"]
"""As the reference has it for each of its rules: a token for the whole system is of no use here."""


def documented(name: str, check: str, description: str, *operations: str) -> policy.DocumentedRuleDefault:
    """A rule that protects `operations`, each a method and a path."""
    pairs = [operation.split(" ", 1) for operation in operations]
    return policy.DocumentedRuleDefault(
        name=name,
        check_str=check,
        description=description,
        operations=[policy.Operation(method=method, path=path) for method, path in pairs],
        scope_types=_SCOPES,
    )


@lru_cache(maxsize=16)
def of_routes(routes: tuple[Route[Any], ...]) -> tuple[policy.DocumentedRuleDefault, ...]:
    """One rule for each name in the table, with all the operations that it protects; made once for a table,
    since oslo.policy takes its time to parse them."""
    return tuple(
        merged(
            documented(endpoint.policy, endpoint.check, endpoint.summary, f"{method} {route.path}")
            for route in routes
            for method, endpoint in route.methods.items()
            if endpoint.policy is not None
        )
    )


def merged(rules: Iterable[policy.DocumentedRuleDefault]) -> list[policy.DocumentedRuleDefault]:
    """Rules of the same name are one rule, which protects the operations of all of them."""
    by_name: dict[str, list[policy.DocumentedRuleDefault]] = {}
    for rule in rules:
        by_name.setdefault(rule.name, []).append(rule)
    return [_one(same) for same in by_name.values()]


def _one(same: list[policy.DocumentedRuleDefault]) -> policy.DocumentedRuleDefault:
    first = same[0]
    if len(same) == 1:
        return first
    return policy.DocumentedRuleDefault(
        name=first.name,
        check_str=first.check_str,
        description=first.description,
        operations=[operation for rule in same for operation in rule.operations],
        scope_types=first.scope_types,
    )
