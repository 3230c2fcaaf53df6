"""`/healthz` and `/readyz`: what is wrong with a process, a line for each thing that was looked at."""

from __future__ import annotations

from typing import NamedTuple

from moorage.core.health import Health

HEALTH, READINESS = "/healthz", "/readyz"
PATHS = (HEALTH, READINESS)


class HealthPage(NamedTuple):
    status: str
    body: bytes
    content_type: str = "text/plain"


ENDING = HealthPage(
    "503 Service Unavailable", b"ending: this process ends soon, and takes no more requests then\n"
)
"""What `/readyz` is from SIGTERM on."""


def page(health: Health, path: str) -> HealthPage:
    """`/healthz` has only what the process can't do without; 503 if something is wrong."""
    findings = health.findings(only_vital=path == HEALTH)
    wrong = any(finding.trouble is not None for finding in findings)
    lines = [f"{finding.name}: {finding.trouble or finding.remark or 'ok'}\n" for finding in findings] or [
        "ok\n"
    ]
    return HealthPage("503 Service Unavailable" if wrong else "200 OK", "".join(lines).encode())
