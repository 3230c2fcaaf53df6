"""Every path and method of the Compute API; each area has its own part of the table."""

from __future__ import annotations

from oslo_policy import policy

from moorage.compute.api.endpoint import R

ROUTES: tuple[R, ...] = ()

FURTHER_RULES: tuple[policy.RuleDefault, ...] = ()
