"""What `moorage audit` tells: a line for each difference, and an exit code for scripts."""

from __future__ import annotations

from datetime import timedelta

from moorage.cli.commands.audit import ShownAudit, ShownFinding, ShownFindings, told
from moorage.compute.audits.audit import Stage
from moorage.core.clock import utcnow


def shown(*findings: ShownFinding, **failures: str) -> ShownFindings:
    return ShownFindings(ShownAudit("a", Stage.DONE, "", 0, 0, failures), list(findings))


def finding(remedy: str = "count again", *, repaired: bool = False, error: str = "") -> ShownFinding:
    since = utcnow() - timedelta(hours=3, minutes=1)
    return ShownFinding("quotas", "project p counts wrongly", since, remedy, repaired, error)


def test_what_differs_since_when_and_what_a_repair_would_do() -> None:
    found = shown(finding())
    line = "quotas: project p counts wrongly; since 3 h; a repair would: count again"
    assert list(told(found)) == [line, "1 differences."]
    assert found.code() == 7


def test_what_was_repaired_and_what_could_not_be() -> None:
    found = shown(finding(repaired=True), finding(error="no room"), finding(remedy=""))
    assert [line.split("; ")[-1] for line in told(found)] == [
        "repaired: count again",
        "the repair (count again) failed: no room",
        "no repair: judge for yourself",
        "2 differences, 1 repaired.",
    ]
    assert shown(finding(repaired=True)).code() == 0


def test_a_check_that_could_not_be_made_is_told() -> None:
    found = shown(ports="Neutron is away")
    assert list(told(found)) == ["ports: could not be checked: Neutron is away", "0 differences."]
    assert found.code() == 3
