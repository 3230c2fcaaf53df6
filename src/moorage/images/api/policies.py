"""The policy rules of the built-in Image API: one for each line of its table of routes, and some more."""

from __future__ import annotations

from oslo_policy import policy

from moorage.http.rules import merged, of_routes
from moorage.images.api.access import FURTHER_RULES
from moorage.images.api.routes import ROUTES


def rules() -> list[policy.DocumentedRuleDefault]:
    return merged([*of_routes(ROUTES), *FURTHER_RULES])
