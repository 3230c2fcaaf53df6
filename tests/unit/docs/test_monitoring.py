"""Alert rules and dashboard: what they ask for is counted; each alert has its lines in the run book."""

from __future__ import annotations

import json
import re

from tests.unit.docs.pages import ROOT
from tests.unit.docs.test_names import metrics

ALERTS = ROOT / "monitoring" / "alerts.yaml"
DASHBOARD = ROOT / "monitoring" / "dashboard.json"
_NAME = re.compile(r"\bmoorage_[a-z_]+")
_SERIES = re.compile(r"_(?:bucket|count|sum)$")


def test_what_alerts_and_panels_ask_for_is_counted() -> None:
    known = metrics()
    for text in (ALERTS.read_text(), DASHBOARD.read_text()):
        named = set(_NAME.findall(text))
        assert len(named) > 15
        assert {name for name in named if not {name, _SERIES.sub("", name)} & known} == set()


def test_each_alert_has_its_lines_in_the_run_book_and_leads_there() -> None:
    text = ALERTS.read_text()
    names = re.findall(r"- alert: (\w+)", text)
    page = (ROOT / "docs" / "operate" / "alerts.md").read_text()
    assert re.findall(r"^## (\w+)$", page, re.MULTILINE) == names
    assert re.findall(r"runbook: docs/operate/alerts.md#(\w+)", text) == [name.lower() for name in names]
    for section in page.split("\n## ")[1:]:
        assert "**Look:**" in section, section
        assert "**Do:**" in section, section


def test_every_panel_asks_for_something_and_lies_beside_the_others() -> None:
    panels = json.loads(DASHBOARD.read_text())["panels"]
    places = {(panel["gridPos"]["x"], panel["gridPos"]["y"]) for panel in panels}
    assert len(places) == len(panels) > 10
    assert all(target["expr"] for panel in panels for target in panel["targets"])
    assert all(panel["targets"] for panel in panels)
