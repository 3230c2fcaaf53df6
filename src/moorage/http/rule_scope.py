"""What of a target a policy rule looks at, so that decisions can be remembered for more than one target."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

_RULE = re.compile(r"\brule:([^\s()]+)")
_FIELD = re.compile(r"%\(([^)]*)\)s")
_NOT = re.compile(r"\bnot\b")
_PLAIN = re.compile(
    r"(?:[()@!\s]|\band\b|\bor\b|\bnot\b"
    r"|\b(?:rule|role|user_id|project_id|roles|system_scope|domain_id):(?:%\([^)]*\)s|[^\s()])+)*"
)
"""Rules of roles, other rules and the caller's ids only; a check of another kind may look at anything."""


@dataclass(frozen=True)
class RuleScope:
    fields: frozenset[str] | None
    """The target's fields that decide; None for all of them."""
    only_opens: bool
    """Whoever passes without a target passes with every one: nothing in it can keep anybody out."""


EVERYTHING = RuleScope(None, False)


def of(name: str, rules: Mapping[str, object]) -> RuleScope:
    """How far the rule `name` reaches, with all the rules that it is made of."""
    fields: set[str] = set()
    only_opens = True
    seen: set[str] = set()
    ahead = [name]
    while ahead:
        name = ahead.pop()
        if name in seen:
            continue
        seen.add(name)
        if name not in rules:
            return EVERYTHING
        text = str(rules[name])
        if not _PLAIN.fullmatch(text):
            return EVERYTHING
        fields.update(_FIELD.findall(text))
        only_opens = only_opens and not _NOT.search(text)
        ahead += _RULE.findall(text)
    return RuleScope(frozenset(fields), only_opens)
