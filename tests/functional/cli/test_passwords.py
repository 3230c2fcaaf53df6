"""`moorage-manage auth set-password`: the password file, made without anybody else's program."""

from __future__ import annotations

import io
import stat
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import bcrypt
import pytest

from moorage.cli.manage import manage
from moorage.http.auth import read_password_file


@dataclass(frozen=True)
class Outcome:
    code: int
    told: str


SetPassword = Callable[..., Outcome]


@pytest.fixture
def set_password(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> SetPassword:
    """Runs the command here: a process of its own takes a hundred times as long."""

    def run(user: str, password: str, *, file: Path | None = None, config: Path | None = None) -> Outcome:
        before = ["--config-file", str(config)] if config else []
        after = ["--file", str(file)] if file else []
        monkeypatch.setattr(
            "sys.argv", ["moorage-manage", *before, "auth", "set-password", user, "--stdin", *after]
        )
        monkeypatch.setattr("sys.stdin", io.StringIO(f"{password}\n"))
        with pytest.raises(SystemExit) as left:
            manage.main()
        printed = capsys.readouterr()
        return Outcome(int(left.value.code or 0), printed.out + printed.err)

    return run


def knows(path: Path, user: str, password: str) -> bool:
    return bcrypt.checkpw(password.encode(), read_password_file(path)[user])


def test_users_are_added_and_get_other_passwords(tmp_path: Path, set_password: SetPassword) -> None:
    path = tmp_path / "htpasswd"
    assert "admin added" in set_password("admin", "one", file=path).told
    assert "eve added" in set_password("eve", "two", file=path).told
    assert "admin has another password" in set_password("admin", "three: ü", file=path).told
    assert knows(path, "admin", "three: ü")
    assert knows(path, "eve", "two")
    assert len(read_password_file(path)) == 2


def test_what_else_is_in_the_file_stays(tmp_path: Path, set_password: SetPassword) -> None:
    path = tmp_path / "htpasswd"
    set_password("eve", "two", file=path)
    path.write_text("# who may what\n" + path.read_text())
    before = path.read_text()
    set_password("admin", "one", file=path)
    assert path.read_text().startswith(before)


def test_the_file_is_private_and_keeps_the_mode_that_it_is_given(
    tmp_path: Path, set_password: SetPassword
) -> None:
    path = tmp_path / "htpasswd"
    set_password("admin", "one", file=path)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    path.chmod(0o640)
    set_password("admin", "two", file=path)
    assert stat.S_IMODE(path.stat().st_mode) == 0o640


def test_the_configuration_says_where_it_is(tmp_path: Path, set_password: SetPassword) -> None:
    config, path = tmp_path / "moorage.conf", tmp_path / "elsewhere"
    config.write_text(f"[auth]\nstrategy = basic\nbasic_auth_file = {path}\n")
    assert set_password("admin", "one", config=config).code == 0
    assert knows(path, "admin", "one")


@pytest.mark.parametrize(
    ("user", "password", "reason"),
    [("ad:min", "x", "colon"), ("#admin", "x", "#"), ("", "x", "name"), ("admin", "", "empty")],
)
def test_what_makes_no_sense_is_refused_and_changes_nothing(
    tmp_path: Path, set_password: SetPassword, user: str, password: str, reason: str
) -> None:
    path = tmp_path / "htpasswd"
    refused = set_password(user, password, file=path)
    assert (refused.code, path.exists()) == (1, False)
    assert reason in refused.told


def test_a_directory_that_is_not_there_is_told(tmp_path: Path, set_password: SetPassword) -> None:
    refused = set_password("admin", "one", file=tmp_path / "nowhere" / "htpasswd")
    assert refused.code == 1
    assert "can't write" in refused.told
