"""Authorisation by oslo.policy, whose decisions are remembered for a moment: asking it is slow."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence

from oslo_config import cfg
from oslo_policy import opts as policy_opts
from oslo_policy import policy

from moorage.http.caller import Caller
from moorage.http.errors import HttpError

_REMEMBER_SECONDS = 5.0
"""A changed policy file takes effect within this time."""


class Authorizer:
    def __init__(self, conf: cfg.ConfigOpts, rules: Sequence[policy.RuleDefault]) -> None:
        policy_opts.set_defaults(conf, "policy.yaml")
        self._enforcer = policy.Enforcer(conf)
        self._enforcer.suppress_default_change_warnings = True
        self._enforcer.suppress_deprecation_warnings = True
        self._enforcer.register_defaults(rules)
        self._enforcer.load_rules()
        self._remembered: dict[tuple[object, ...], bool] = {}
        self._forget_at = 0.0

    def check(self, rule: str, caller: Caller, target: Mapping[str, str | None]) -> None:
        """Raise a 403 unless `caller` may do what `rule` names to `target`."""
        if not self.allows(rule, caller, target):
            raise HttpError(403, f"Policy does not allow {rule} to be performed.")

    def allows(self, rule: str, caller: Caller, target: Mapping[str, str | None]) -> bool:
        now = time.monotonic()
        if now > self._forget_at or len(self._remembered) > 10_000:
            self._remembered = {}
            self._forget_at = now + _REMEMBER_SECONDS
        key = (rule, caller, *target.items())
        known = self._remembered.get(key)
        if known is None:
            known = self._remembered[key] = self._ask(rule, caller, target)
        return known

    def _ask(self, rule: str, caller: Caller, target: Mapping[str, str | None]) -> bool:
        try:
            return bool(self._enforcer.authorize(rule, dict(target), caller.credentials()))
        except policy.InvalidScope:
            return False
