"""`moorage-manage agent`: keys and credentials in files that nobody else reads."""

from __future__ import annotations

import json
import stat
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from moorage.bus import key_file
from moorage.cli.errors import CommandError
from moorage.cli.manage.manage import commands

Manage = Callable[..., Result]


@pytest.fixture
def manage(tmp_path: Path) -> Manage:
    config = tmp_path / "moorage.conf"
    keys = tmp_path / "master.keys"
    config.write_text(
        f"[DEFAULT]\ntransport_url = rabbit://admin:secret@one:5671,admin:secret@two:5671/cloud\n"
        f"[bus]\nkeys_file = {keys}\n"
    )

    def run(*arguments: str) -> Result:
        return CliRunner().invoke(
            commands, ["--config-file", str(config), "agent", *arguments], catch_exceptions=False
        )

    return run


def told(result: Result) -> Any:
    assert result.exit_code == 0, result.output
    return json.loads(result.stdout)


def test_keys_are_added_and_dropped(tmp_path: Path, manage: Manage) -> None:
    path = tmp_path / "master.keys"
    assert told(manage("add-key", "--id", "one", "--json")) == {"file": str(path), "keys": ["one"]}
    assert told(manage("add-key", "--id", "two", "--json"))["keys"] == ["two", "one"]
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    path.chmod(0o640)
    assert "two" in manage("drop-key", "one").stdout
    assert list(key_file.read(path)) == ["two"]
    assert stat.S_IMODE(path.stat().st_mode) == 0o640
    with pytest.raises(CommandError, match="only one"):
        manage("drop-key", "two")
    with pytest.raises(CommandError, match="no key"):
        manage("drop-key", "three")
    with pytest.raises(CommandError, match="already"):
        manage("add-key", "--id", "two")


def test_a_host_gets_its_own_keys_and_user(tmp_path: Path, manage: Manage) -> None:
    manage("add-key", "--id", "one")
    made = told(manage("credentials", "host-1", "host-2", "--directory", str(tmp_path), "--json"))
    masters = key_file.read(tmp_path / "master.keys")
    assert [one["host"] for one in made["hosts"]] == ["host-1", "host-2"]
    for one in made["hosts"]:
        assert key_file.read(Path(one["keys"])) == key_file.host_keys(masters, one["host"])
        written = Path(one["configuration"]).read_text()
        assert f"{one['user']}:" in written
        assert "@two:5671/cloud" in written
        assert "secret" not in written
        assert masters["one"].hex() not in written
        for path in (one["keys"], one["configuration"]):
            assert stat.S_IMODE(Path(path).stat().st_mode) == 0o600
    definitions = json.loads(Path(made["definitions"]).read_text())
    assert {entry["vhost"] for entry in definitions["topic_permissions"]} == {"cloud"}


def test_new_keys_need_no_new_user(tmp_path: Path, manage: Manage) -> None:
    manage("add-key", "--id", "one")
    manage("credentials", "host-1", "--directory", str(tmp_path))
    before = (tmp_path / "host-1" / "agent.conf").read_text()
    manage("add-key", "--id", "two")
    made = told(manage("credentials", "host-1", "--directory", str(tmp_path), "--keys-only", "--json"))
    assert made["definitions"] is None
    assert made["hosts"][0]["key_ids"] == ["two", "one"]
    assert (tmp_path / "host-1" / "agent.conf").read_text() == before


def test_what_can_not_be_done_changes_nothing(tmp_path: Path, manage: Manage) -> None:
    with pytest.raises(Exception, match="can't read"):
        manage("credentials", "host-1", "--directory", str(tmp_path / "made"))
    manage("add-key")
    with pytest.raises(CommandError, match="can't be the name"):
        manage("credentials", "../host", "--directory", str(tmp_path / "made"))
    assert not (tmp_path / "made").exists()
