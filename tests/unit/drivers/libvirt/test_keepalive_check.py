"""What is said of libvirtd's patience with clients that stand still is held against its configuration."""

from __future__ import annotations

from pathlib import Path

import pytest

from moorage.core import config
from moorage.drivers.host_check import CheckOutcome
from moorage.drivers.libvirt import host_checks
from moorage.drivers.libvirt.options import OPTIONS


@pytest.mark.parametrize(
    ("written", "outcome", "words"),
    [
        ("", CheckOutcome.OK, "after 30 s"),
        ("#keepalive_interval = 50\n", CheckOutcome.OK, "after 30 s"),
        ("keepalive_interval = 1\nkeepalive_count = 4\n", CheckOutcome.OK, "after 5 s"),
        ("keepalive_interval = 10\n", CheckOutcome.FAILED, "60 s, not 30"),
        ("keepalive_interval = -1\n", CheckOutcome.FAILED, "inf s"),
    ],
)
def test_libvirtd_must_not_wait_longer_than_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, written: str, outcome: CheckOutcome, words: str
) -> None:
    path = tmp_path / "libvirtd.conf"
    path.write_text(written)
    monkeypatch.setattr(host_checks, "_DAEMON_CONFS", (tmp_path / "virtqemud.conf", path))
    (found,) = host_checks._client_timeout(config.read([], [OPTIONS]))
    assert found.outcome == outcome
    assert words in found.found
