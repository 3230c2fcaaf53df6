"""oslo.policy's own commands, run as an operator runs them, know every rule that we ask about."""

from __future__ import annotations

import itertools
import re
import subprocess
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path

import pytest
from oslo_policy import policy

from moorage.compute_api import policies as compute
from moorage.compute_api.routes import FURTHER_RULES
from moorage.compute_api.routes import ROUTES as COMPUTE_ROUTES
from moorage.core import config
from moorage.http.caller import Caller
from moorage.http.options import OPTIONS
from moorage.http.policy import Authorizer
from moorage.images.api import policies as images
from moorage.placement.api import policies as placement
from moorage.placement.api.routes import ROUTES as PLACEMENT_ROUTES

PROGRAMS = Path(sys.executable).parent
SERVICES: dict[str, Sequence[policy.RuleDefault]] = {
    "compute": compute.rules(COMPUTE_ROUTES, FURTHER_RULES),
    "placement": placement.rules(PLACEMENT_ROUTES),
    "image": images.rules(),
}
PERSONAS = {persona.name for persona in (*compute.PERSONAS, *placement.PERSONAS)}
RULE = re.compile(r'^#("(?P<name>[^"]+)": "(?P<check>[^"]*)")$', re.MULTILINE)


def run(program: str, *arguments: object) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [str(PROGRAMS / program), "--namespace", "moorage", *map(str, arguments)],
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.fixture(scope="module")
def sample() -> str:
    ran = run("oslopolicy-sample-generator")
    assert ran.returncode == 0, ran.stderr
    return ran.stdout


def configured(directory: Path, rules: str) -> Path:
    (directory / "policy.yaml").write_text(rules)
    path = directory / "moorage.conf"
    path.write_text(f"[oslo_policy]\npolicy_file = {directory / 'policy.yaml'}\n")
    return path


def test_the_sample_has_each_rule_that_is_asked_about_and_no_other(sample: str) -> None:
    """That handlers ask about all rules of the Compute API is seen by a walk through its table of routes."""
    names = [found["name"] for found in RULE.finditer(sample)]
    assert len(names) == len(set(names))
    assert set(names) == {rule.name for rules in SERVICES.values() for rule in rules}


def test_the_sample_says_what_a_rule_is_for(sample: str) -> None:
    for block in sample.split("\n\n"):
        found = RULE.search(block)
        if found is None or found["name"] in PERSONAS:
            continue
        before = block[: found.start()].splitlines()
        assert len(before[0]) > len("# a word"), found["name"]
        assert any(re.match(r"# (GET|POST|PUT|PATCH|DELETE)  /", line) for line in before), found["name"]
        assert before[-1] == "# Intended scope(s): project", found["name"]


CALLERS = {
    "administrator": Caller("root", "cloud", ("admin", "manager", "member", "reader")),
    "administrator alone": Caller("root", "cloud", ("admin",)),
    "manager": Caller("mary", "red", ("manager", "member", "reader")),
    "member": Caller("alice", "red", ("member", "reader")),
    "reader": Caller("rita", "red", ("reader",)),
    "service": Caller("neutron", "service", ("service",)),
    "nobody": Caller("nemo", "red", ()),
    "system": Caller("root", None, ("admin", "member", "reader"), system_scope="all"),
    "domain": Caller("root", None, ("admin", "member", "reader"), domain_id="default"),
}
TARGETS: tuple[dict[str, str], ...] = (
    {},
    {"project_id": "red", "user_id": "alice"},
    {"project_id": "red", "user_id": "anna"},
    {"project_id": "blue", "user_id": "bob"},
    {"user_id": "alice"},
    {"project_id": "red"},
)


def decisions(
    files: list[str], rules: Sequence[policy.RuleDefault], callers: Iterable[str] = CALLERS
) -> dict[tuple[str, str, str], bool]:
    authorizer = Authorizer(config.read(files, (OPTIONS,)), rules)
    return {
        (rule.name, who, str(target)): authorizer.allows(rule.name, CALLERS[who], target)
        for rule, who, target in itertools.product(rules, callers, TARGETS)
    }


@pytest.mark.parametrize("service", SERVICES)
def test_a_sample_that_is_commented_in_changes_nothing(tmp_path: Path, sample: str, service: str) -> None:
    path = configured(tmp_path, RULE.sub(lambda found: found[1], sample))
    usual = decisions([], SERVICES[service])
    assert decisions([str(path)], SERVICES[service]) == usual
    assert set(usual.values()) == ({True, False})


@pytest.mark.parametrize("who", ["system", "domain"])
def test_a_token_of_no_project_opens_nothing(who: str) -> None:
    """As in the reference, which has only rules for tokens of projects."""
    for rules in SERVICES.values():
        allowed = decisions([], rules, [who])
        assert not [rule for (rule, _, _), yes in allowed.items() if yes and rule not in PERSONAS]


def test_rules_that_only_repeat_a_default_are_found(tmp_path: Path, sample: str) -> None:
    rules = '"os_compute_api:limits": "@"\n"os_compute_api:servers:delete": "role:admin"\n'
    ran = run("oslopolicy-list-redundant", "--config-file", configured(tmp_path, rules))
    assert ran.stdout == '"os_compute_api:limits": "@"\n'


def test_a_policy_file_is_validated(tmp_path: Path) -> None:
    right = '"os_compute_api:servers:delete": "role:admin or user_id:%(user_id)s"\n'
    path = configured(tmp_path, right)
    assert run("oslopolicy-validator", "--config-file", path).returncode == 0
    configured(tmp_path, '"os_compute_api:servers:delte": "role:admin"\n')
    ran = run("oslopolicy-validator", "--config-file", path)
    assert ran.returncode == 1
    assert "os_compute_api:servers:delte" in ran.stdout
