"""Asking a cloud for an audit, and what it has to find."""

from __future__ import annotations

from typing import Any, Protocol

from falcon import testing

from moorage.compute.audits.audit import CheckName
from tests.support.processes import wait_until


class Auditable(Protocol):
    @property
    def api(self) -> testing.TestClient: ...

    def get(self, path: str) -> Any: ...


def audit(cloud: Auditable, *only: CheckName, repair: str = "nothing") -> tuple[list[Any], dict[str, str]]:
    """What is left, and which checks could not be made."""
    asked = {"only": [name.value for name in only], "repair": repair}
    reply = cloud.api.simulate_post("/v2.1/moorage-audits", json={"audit": asked})
    assert reply.status_code == 202, reply.text
    path = f"/v2.1/moorage-audits/{reply.json['audit']['id']}"
    wait_until(lambda: cloud.get(path)["audit"]["stage"] == "done", "the audit", 60)
    shown = cloud.get(path)
    return [one for one in shown["findings"] if not one["repaired"]], shown["audit"]["failures"]


def check(cloud: Auditable, name: CheckName, part: str, *, safe: bool = True) -> None:
    """It is named, by this check and no other; a repair mends it; a second look is clean."""
    found, failures = audit(cloud)
    assert failures == {}
    assert [(one["check"], part in one["sentence"], one["safe"]) for one in found] == [
        (name.value, True, safe)
    ], found
    left, _ = audit(cloud, repair="safe" if safe else "all")
    assert left == []
    assert audit(cloud) == ([], {})
