"""Every path and method of the Compute API; each area has its own part of the table."""

from __future__ import annotations

from oslo_policy import policy

from moorage.compute_api import cloud_routes
from moorage.compute_api.consoles import console_routes
from moorage.compute_api.endpoint import R
from moorage.compute_api.operations import operation_routes
from moorage.compute_api.servers import server_routes

ROUTES: tuple[R, ...] = (
    *cloud_routes.CLOUD,
    *server_routes.ROUTES,
    *console_routes.ROUTES,
    *operation_routes.ROUTES,
)

FURTHER_RULES: tuple[policy.DocumentedRuleDefault, ...] = (
    *cloud_routes.CLOUD_RULES,
    *server_routes.RULES,
    *console_routes.RULES,
)
