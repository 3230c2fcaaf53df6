"""Files of keys: read again when they change, refused when they make no sense."""

from __future__ import annotations

import logging
import os
from pathlib import Path

import pytest

from moorage.bus import key_file
from moorage.bus.key_file import KeyFile
from moorage.core.config import ConfigError

ONE, TWO = "1" * 64, "2" * 64


def write(path: Path, text: str, mode: int = 0o600) -> Path:
    new = path.with_name("new")
    new.write_text(text)
    new.chmod(mode)
    return new.replace(path)


def test_the_newest_key_comes_first_and_comments_are_left_out(tmp_path: Path) -> None:
    path = write(tmp_path / "keys", f"# ours\n\nb {TWO}\na {ONE}\n")
    assert list(key_file.read(path)) == ["b", "a"]
    assert key_file.parse(key_file.text(key_file.read(path)), "again") == key_file.read(path)


@pytest.mark.parametrize(
    "text", ["", "a 12\n", f"a {ONE}\na {TWO}\n", f"{ONE}\n", f"a {ONE} more\n", "a b c\n"]
)
def test_what_makes_no_sense_is_told_without_the_key(tmp_path: Path, text: str) -> None:
    with pytest.raises(ConfigError) as refused:
        key_file.read(write(tmp_path / "keys", text))
    assert ONE not in str(refused.value)


def test_a_file_that_everybody_can_read_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="everybody"):
        key_file.read(write(tmp_path / "keys", f"a {ONE}\n", 0o644))
    assert key_file.read(write(tmp_path / "keys", f"a {ONE}\n", 0o640))
    with pytest.raises(ConfigError, match="can't read"):
        key_file.read(tmp_path / "absent")


def test_a_file_that_changed_is_read_again(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    now = 0.0
    path = write(tmp_path / "keys", f"a {ONE}\n")
    file = KeyFile(path, lambda: now)
    write(path, f"b {TWO}\na {ONE}\n")
    assert list(file.keys()) == ["a"]
    now = 1.0
    assert list(file.keys()) == ["b", "a"]
    write(path, "nonsense\n")
    now = 2.0
    assert list(file.keys()) == ["b", "a"]
    os.unlink(path)
    now = 3.0
    assert list(file.keys()) == ["b", "a"]
    assert [record.levelno for record in caplog.records] == [logging.ERROR, logging.ERROR]
    write(path, f"b {TWO}\n")
    now = 4.0
    assert list(file.keys()) == ["b"]


def test_a_file_that_gets_its_owner_afterwards_is_read_then(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Who brings it does so as root; the services have an account of their own."""
    now = 0.0
    path = write(tmp_path / "keys", f"a {ONE}\n")
    file = KeyFile(path, lambda: now)
    write(path, f"b {TWO}\n")
    with monkeypatch.context() as roots:
        roots.setattr(Path, "read_text", _not_ours)
        now = 1.0
        assert list(file.keys()) == ["a"]
    seen, now = path.stat().st_ctime_ns, 2.0
    while path.stat().st_ctime_ns == seen:  # the kernel's clock has coarse steps
        os.chown(path, os.getuid(), os.getgid())
    assert list(file.keys()) == ["b"]


def _not_ours(path: Path) -> str:
    raise PermissionError(f"{path} is root's")


def test_hosts_have_keys_of_their_own(tmp_path: Path) -> None:
    masters = key_file.read(write(tmp_path / "keys", f"a {ONE}\n"))
    one, two = key_file.host_keys(masters, "host-1"), key_file.host_keys(masters, "host-2")
    assert one.keys() == two.keys() == masters.keys()
    assert len({one["a"], two["a"], masters["a"]}) == 3
