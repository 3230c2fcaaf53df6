"""What of a target a policy rule looks at, and that remembering by it never changes an answer."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from oslo_policy import policy

from moorage.core import config
from moorage.http import rule_scope
from moorage.http.caller import Caller
from moorage.http.options import OPTIONS
from moorage.http.policy import Authorizer
from moorage.http.rule_scope import EVERYTHING, RuleScope

RULES = {"admin": "role:admin", "owner": "user_id:%(user_id)s", "loop": "rule:loop or role:x"}


def reach_of(check: str) -> RuleScope:
    parsed = policy.Rules.from_dict({"asked": check, **RULES})
    return rule_scope.of("asked", parsed)


@pytest.mark.parametrize(
    ("check", "fields", "only_opens"),
    [
        ("@", set(), True),
        ("!", set(), True),
        ("", set(), True),
        ("role:admin or role:reader", set(), True),
        ("project_id:0123abcd", set(), True),
        ("rule:admin or rule:owner", {"user_id"}, True),
        ("rule:owner and (role:member or project_id:%(project_id)s)", {"user_id", "project_id"}, True),
        ("not rule:owner", {"user_id"}, False),
        ("rule:loop", set(), True),
    ],
)
def test_how_far_a_rule_reaches(check: str, fields: set[str], only_opens: bool) -> None:
    assert reach_of(check) == RuleScope(frozenset(fields), only_opens)


@pytest.mark.parametrize(
    "check", ["http://decide/%(project_id)s", "'yes':%(shared)s", "is_admin:True", "rule:unknown"]
)
def test_what_is_not_understood_may_look_at_everything(check: str) -> None:
    assert reach_of(check) == EVERYTHING


PARTS = st.sampled_from(
    ["role:admin", "role:member", "user_id:%(user_id)s", "project_id:%(project_id)s", "@", "!", "rule:owner"]
)
CHECKS = st.recursive(
    PARTS,
    lambda inner: st.one_of(
        st.tuples(inner, inner).map(lambda pair: f"({pair[0]} and {pair[1]})"),
        st.tuples(inner, inner).map(lambda pair: f"({pair[0]} or {pair[1]})"),
        inner.map(lambda check: f"not {check}" if check[0] == "(" else f"not ({check})"),
    ),
    max_leaves=6,
)
IDS = st.sampled_from([None, "a", "b"])
CALLERS = st.builds(Caller, IDS, IDS, st.sampled_from([(), ("admin",), ("member",)]))
TARGETS = st.dictionaries(st.sampled_from(["user_id", "project_id", "more"]), IDS)


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(check=CHECKS, questions=st.lists(st.tuples(CALLERS, TARGETS), min_size=1, max_size=12))
def test_a_remembered_answer_is_the_answer(
    check: str, questions: list[tuple[Caller, dict[str, str]]]
) -> None:
    defaults = [policy.RuleDefault("asked", check), policy.RuleDefault("owner", RULES["owner"])]
    authorizer = Authorizer(config.read([], (OPTIONS,)), defaults)
    enforcer = policy.Enforcer(config.read([], (OPTIONS,)))
    enforcer.register_defaults(defaults)
    for caller, target in questions:
        expected = bool(enforcer.authorize("asked", dict(target), caller.credentials()))
        assert authorizer.allows("asked", caller, target) is expected


def test_a_changed_file_is_noticed(tmp_path: Path) -> None:
    """With what a rule looks at: who was not asked about before is judged by owners at once."""
    path = tmp_path / "policy.yaml"
    path.write_text('"asked": "role:member"')
    (tmp_path / "moorage.conf").write_text(f"[oslo_policy]\npolicy_file = {path}\n")
    conf = config.read([str(tmp_path / "moorage.conf")], (OPTIONS,))
    authorizer = Authorizer(conf, [policy.RuleDefault("asked", "!")])
    alice, anna = (Caller(name, "red", ("member",)) for name in ("alice", "anna"))
    assert authorizer.allows("asked", alice, {"user_id": "anna"})
    path.write_text('"asked": "role:member and not user_id:%(user_id)s"')
    os.utime(path, (2**31, 2**31))  # by its age it is known to have changed
    assert not authorizer.allows("asked", anna, {"user_id": "anna"})
    assert authorizer.allows("asked", anna, {"user_id": "alice"})
    assert not authorizer.allows("asked", alice, {"user_id": "alice"})
