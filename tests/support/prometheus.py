"""A real Prometheus, with our alert rules."""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import requests

from tests.support import debian
from tests.support.processes import free_port, start_service

ROOT = Path(__file__).parents[2]
RULES = ROOT / "monitoring" / "alerts.yaml"
_PROGRAM = debian.program("prometheus")
_TOOL = _PROGRAM.with_name("promtool")


def promtool(*words: str | Path) -> subprocess.CompletedProcess[str]:
    """`debian.Unavailable` if it is neither there nor can be."""
    debian.install("prometheus")
    return subprocess.run([_TOOL, *words], capture_output=True, text=True, check=False)


class Prometheus:
    def __init__(self, url: str) -> None:
        self._url = url

    def firing(self) -> set[str]:
        return {alert["labels"]["alertname"] for alert in self._alerts() if alert["state"] == "firing"}

    def _alerts(self) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = self._get("/api/v1/alerts")["alerts"]
        return found

    def seen(self) -> set[str]:
        """The addresses that it could ask."""
        targets = self._get("/api/v1/targets")["activeTargets"]
        return {target["labels"]["instance"] for target in targets if target["health"] == "up"}

    def _get(self, path: str) -> Any:
        answer = requests.get(self._url + path, timeout=30)
        assert answer.status_code == 200, answer.text
        return answer.json()["data"]


@contextmanager
def watching(directory: Path, targets: Sequence[str]) -> Iterator[Prometheus]:
    """It looks every second, and does not wait to see whether something passes by itself."""
    debian.install("prometheus")
    rules = directory / "alerts.yaml"
    rules.write_text(re.sub(r"\bfor: \d+m", "for: 0s", RULES.read_text()))
    config = directory / "prometheus.yml"
    config.write_text(
        json.dumps(
            {
                "global": {"scrape_interval": "1s", "evaluation_interval": "1s"},
                "rule_files": [str(rules)],
                "scrape_configs": [{"job_name": "moorage", "static_configs": [{"targets": list(targets)}]}],
            }
        )
    )
    port = free_port()
    command: list[str | Path] = [
        _PROGRAM,
        f"--config.file={config}",
        f"--storage.tsdb.path={directory / 'series'}",
        f"--web.listen-address=127.0.0.1:{port}",
    ]
    url = f"http://127.0.0.1:{port}"
    with start_service(command, port, directory / "prometheus.log", ready=lambda: _is_ready(url)) as service:
        yield Prometheus(service.url)


def _is_ready(url: str) -> bool:
    with suppress(requests.ConnectionError):
        return requests.get(f"{url}/-/ready", timeout=10).status_code == 200
    return False
