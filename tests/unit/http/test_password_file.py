"""The password file of basic authentication."""

from __future__ import annotations

from pathlib import Path

import pytest

from moorage.core.config import ConfigError
from moorage.http.auth import hash_password, read_password_file


def test_comments_and_empty_lines_are_passed_over(tmp_path: Path) -> None:
    file = tmp_path / "htpasswd"
    file.write_text(f"# ours: all of them\n\nadmin:{hash_password('secret')}\n")
    assert read_password_file(file).keys() == {"admin"}


@pytest.mark.parametrize("stored", ["$apr1$r31.....$HqJZimcKQFAMYayBlzkrA/", "plain", ""])
def test_a_password_that_is_not_hashed_with_bcrypt_is_told_at_the_start(tmp_path: Path, stored: str) -> None:
    """`htpasswd` without -B writes such; found at a login, it would be an error 500."""
    file = tmp_path / "htpasswd"
    file.write_text(f"admin:{stored}\n")
    with pytest.raises(ConfigError, match="admin is not a bcrypt hash"):
        read_password_file(file)
