"""The password file of basic authentication."""

from __future__ import annotations

import base64
from pathlib import Path
from typing import Any

import pytest

from moorage.core.config import ConfigError
from moorage.http.auth import BasicAuth, hash_password, read_password_file, read_roles
from moorage.http.errors import GuidelineStyle


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


def test_who_has_roles_is_no_administrator(tmp_path: Path) -> None:
    file = tmp_path / "htpasswd"
    hashed = hash_password("secret")
    file.write_text(f"admin:{hashed}\nhost-1:{hashed}:moorage-agent\nboth:{hashed}:a,b\n")
    assert read_password_file(file).keys() == {"admin", "host-1", "both"}
    assert read_roles(file) == {"host-1": "moorage-agent", "both": "a,b"}
    seen: list[str] = []

    def inner(environ: dict[str, Any], _start: Any) -> list[bytes]:
        seen.append(environ["HTTP_X_ROLES"])
        return []

    stack = BasicAuth(inner, read_password_file(file), GuidelineStyle("x", (1, 0)), read_roles(file))
    for user in ("admin", "host-1", "both"):
        token = base64.b64encode(f"{user}:secret".encode()).decode()
        stack({"HTTP_AUTHORIZATION": f"Basic {token}", "HTTP_X_ROLES": "admin"}, lambda *_: None)
    assert seen == ["admin", "moorage-agent", "a,b"]


@pytest.mark.parametrize("roles", ["", "a b", "a,,b", "a:b"])
def test_roles_that_can_not_be_read_are_refused(tmp_path: Path, roles: str) -> None:
    """Not taken for an administrator's."""
    file = tmp_path / "htpasswd"
    file.write_text(f"host-1:{hash_password('secret')}:{roles}\n")
    with pytest.raises(ConfigError, match="roles"):
        read_roles(file)
