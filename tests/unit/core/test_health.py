"""Looks at what may be wrong: bounded in time, not repeated by every probe, and told in sentences."""

from __future__ import annotations

import threading
import time

from moorage.core.health import Health, HealthCheck, HealthFinding, Pulse
from moorage.http import health_pages


def test_what_is_wrong_is_told_and_only_what_is_vital_makes_a_process_unhealthy() -> None:
    def fail() -> str | None:
        raise OSError("connection refused")

    health = Health([HealthCheck("database", lambda: None, vital=True), HealthCheck("broker", fail)])
    assert health_pages.page(health, "/healthz") == ("200 OK", b"database: ok\n", "text/plain")
    ready = health_pages.page(health, "/readyz")
    assert ready.status == "503 Service Unavailable"
    assert ready.body == b"database: ok\nbroker: OSError: connection refused\n"


def test_many_probes_make_one_look() -> None:
    looks: list[float] = []

    def look() -> str | None:
        looks.append(time.monotonic())
        return None

    health = Health([HealthCheck("placement", look)], fresh_seconds=60)
    assert {tuple(health.findings()) for _ in range(50)} == {(HealthFinding("placement", None, False),)}
    assert len(looks) == 1


def test_a_look_that_hangs_keeps_nobody_waiting_and_has_no_second_beside_it() -> None:
    go_on, looks = threading.Event(), []

    def hang() -> str | None:
        looks.append(threading.current_thread())
        go_on.wait(30)
        return None

    health = Health(
        [HealthCheck("neutron", hang), HealthCheck("database", lambda: None)], 0.0, most_seconds=0.05
    )
    for _ in range(3):
        slow, quick = health.findings()
        assert slow.trouble is not None
        assert "no answer for" in slow.trouble
        assert quick.trouble is None
    assert len(looks) == 1
    go_on.set()
    looks[0].join()
    assert Health([HealthCheck("neutron", hang)]).findings()[0].trouble is None


def test_what_was_wrong_is_looked_at_again() -> None:
    troubles: list[str | None] = ["away", None]
    health = Health([HealthCheck("broker", lambda: troubles.pop(0))], fresh_seconds=0.0)
    assert [health.findings()[0].trouble for _ in range(2)] == ["away", None]


def test_a_pulse_that_stops_is_told() -> None:
    pulse = Pulse("leases were not renewed", longest=0.0)
    time.sleep(0.01)
    assert pulse.trouble() == "leases were not renewed for 0 s"
    assert Pulse("leases were not renewed", longest=60.0).trouble() is None
