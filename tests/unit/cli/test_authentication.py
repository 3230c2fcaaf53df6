from __future__ import annotations

from pathlib import Path

import pytest

from moorage.cli import authentication, settings
from moorage.core.config import ConfigError


def check(directory: Path, text: str, listen: str) -> None:
    path = directory / "moorage.conf"
    path.write_text(text)
    authentication.check(settings.read([path]), listen)


def test_no_authentication_is_fine_on_loopback(tmp_path: Path) -> None:
    check(tmp_path, "[auth]\nstrategy = none\n", "127.0.0.1")


@pytest.mark.parametrize("listen", ["0.0.0.0", "::", "192.0.2.1"])
def test_no_authentication_is_refused_on_any_other_address(tmp_path: Path, listen: str) -> None:
    with pytest.raises(ConfigError, match="loopback"):
        check(tmp_path, "[auth]\nstrategy = none\n", listen)


def test_a_password_file_will_do_anywhere(tmp_path: Path) -> None:
    check(tmp_path, "[auth]\nstrategy = basic\n", "0.0.0.0")


def test_keystone_is_refused_until_it_is_configured(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="keystone_authtoken"):
        check(tmp_path, "[auth]\nstrategy = keystone\n", "127.0.0.1")
    configured = "[auth]\nstrategy = keystone\n[keystone_authtoken]\nauth_type = password\n"
    check(tmp_path, configured, "0.0.0.0")
