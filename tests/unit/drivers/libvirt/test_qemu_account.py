"""What is known of QEMU's account before it runs."""

from __future__ import annotations

import os
import pwd
from pathlib import Path

import pytest

from moorage.drivers.libvirt import qemu_account


@pytest.mark.parametrize("said", ['user = "{name}"', 'user = "{uid}"', '#user = "x"\n user="+{uid}"\n'])
def test_the_account_is_the_one_that_libvirts_settings_name(said: str, tmp_path: Path) -> None:
    mine = pwd.getpwuid(os.geteuid())
    settings = tmp_path / "qemu.conf"
    settings.write_text(said.format(name=mine.pw_name, uid=mine.pw_uid))
    found = qemu_account.find(settings)
    assert found is not None
    assert found.pw_uid == mine.pw_uid


def test_an_account_that_is_not_there_is_nobodys(tmp_path: Path) -> None:
    settings = tmp_path / "qemu.conf"
    settings.write_text('user = "no-such-account"\n')
    assert qemu_account.find(settings) is None
