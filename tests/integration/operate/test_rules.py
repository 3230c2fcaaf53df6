"""The alert rules by themselves: Prometheus' own tool reads them, and each fires when it should."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from tests.integration.operate.cases import CASES, UP, Case
from tests.support import debian
from tests.support.prometheus import RULES, promtool


def _test(case: Case, series: dict[str, str], *, fires: bool) -> dict[str, object]:
    told = {**({} if case.alert == "MoorageNoConductor" else UP), **series}
    return {
        "interval": "1m",
        "input_series": [{"series": name, "values": values} for name, values in told.items()],
        "alert_rule_test": [
            {
                "eval_time": "40m",
                "alertname": case.alert,
                "exp_alerts": [{"exp_labels": case.labels}] if fires else [],
            }
        ],
    }


def test_each_alert_fires_when_it_should_and_only_then(tmp_path: Path) -> None:
    rules = RULES.read_text()
    assert [case.alert for case in CASES] == re.findall(r"- alert: (\w+)", rules)
    # promtool compares what alerts say, too: that is left out here
    bare = re.sub(r"^ +annotations:\n +summary: .*\n +runbook: .*\n", "", rules, flags=re.MULTILINE)
    (tmp_path / "rules.yaml").write_text(re.sub(r"labels: {.*}", "labels: {}", bare))
    tests = [
        _test(case, series, fires=fires)
        for case in CASES
        for series, fires in ((case.firing, True), (case.quiet, False))
    ]
    path = tmp_path / "tests.yaml"
    path.write_text(json.dumps({"rule_files": ["rules.yaml"], "evaluation_interval": "1m", "tests": tests}))
    try:
        checked, found = promtool("check", "rules", RULES), promtool("test", "rules", path)
    except debian.Unavailable as error:
        pytest.skip(str(error))
    assert checked.returncode == 0, checked.stderr
    assert found.returncode == 0, found.stdout + found.stderr
