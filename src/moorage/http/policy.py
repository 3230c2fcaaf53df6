"""Authorisation by oslo.policy, whose decisions are remembered for a moment: asking it is slow."""

from __future__ import annotations

import copy
import time
from collections.abc import Mapping, Sequence

from oslo_config import cfg
from oslo_policy import opts as policy_opts
from oslo_policy import policy

from moorage.http import rule_scope
from moorage.http.caller import Caller
from moorage.http.errors import HttpError
from moorage.http.rule_scope import RuleScope

Target = Mapping[str, str | None]
"""Whose thing it is: what `%(project_id)s` and `%(user_id)s` stand for in a rule."""

_REMEMBER_SECONDS = 5.0
"""A changed policy file takes effect within this time."""
_NOBODYS: Target = {}
_ABSENT = object()


class _Enforcer(policy.Enforcer):
    def register_default(self, default: policy.RuleDefault) -> None:
        """As the library does, but for a deep copy, which takes a fifth of the time to build an API: what it
        changes of a rule are attributes of the rule itself."""
        if default.name in self.registered_rules:
            raise policy.DuplicatePolicyError(default.name)
        self.registered_rules[default.name] = copy.copy(default)


def enforcer(conf: cfg.ConfigOpts, rules: Sequence[policy.RuleDefault]) -> policy.Enforcer:
    """oslo.policy's, with these defaults and what the operator's file says instead."""
    policy_opts.set_defaults(conf, "policy.yaml")
    made = _Enforcer(conf)
    made.suppress_default_change_warnings = True
    made.suppress_deprecation_warnings = True
    made.register_defaults(rules)
    made.load_rules()
    return made


class Authorizer:
    def __init__(self, conf: cfg.ConfigOpts, rules: Sequence[policy.RuleDefault]) -> None:
        self._enforcer = enforcer(conf, rules)
        self._remembered: dict[tuple[object, ...], bool] = {}
        self._reaches: dict[str, RuleScope] = {}
        self._forget_at = 0.0

    def check(self, rule: str, caller: Caller, target: Target) -> None:
        """Raise a 403 unless `caller` may do what `rule` names to `target`."""
        if not self.allows(rule, caller, target):
            raise HttpError(403, f"Policy does not allow {rule} to be performed.")

    def allows(self, rule: str, caller: Caller, target: Target) -> bool:
        if time.monotonic() > self._forget_at or len(self._remembered) > 10_000:
            self._forget()
        reached = self._reaches.get(rule)
        if reached is None:
            reached = self._reaches[rule] = rule_scope.of(rule, self._enforcer.rules)
        passes = reached.only_opens and self._recall(reached, rule, caller, _NOBODYS)
        passes = passes or self._recall(reached, rule, caller, target)
        if self._reaches.get(rule) is not reached:  # the rules changed just now, and with them what counts
            return self._ask(rule, caller, target)
        return passes

    def _forget(self) -> None:
        self._remembered, self._reaches = {}, {}
        self._forget_at = time.monotonic() + _REMEMBER_SECONDS

    def _recall(self, reached: RuleScope, rule: str, caller: Caller, target: Target) -> bool:
        """One answer for all targets that this rule can't tell apart: a list has servers of many owners."""
        if reached.fields is None:
            key = (rule, caller, *target.items())
        else:
            key = (rule, caller, *((name, target.get(name, _ABSENT)) for name in reached.fields))
        known = self._remembered.get(key)
        if known is None:
            known = self._ask(rule, caller, target)
            if rule_scope.of(rule, self._enforcer.rules) == reached:
                self._remembered[key] = known
            else:
                self._forget()
        return known

    def _ask(self, rule: str, caller: Caller, target: Target) -> bool:
        try:
            return bool(self._enforcer.authorize(rule, dict(target), caller.credentials()))
        except policy.InvalidScope:
            return False
