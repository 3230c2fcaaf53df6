"""Of the log of a machine, a server's user sees what was printed since the machine is the server's."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from moorage.drivers.contract import DriverError
from moorage.drivers.ironic.api.record import NodeRecord
from moorage.drivers.ironic.servers.console_log import ConsoleLog
from moorage.drivers.parts import MissingPartError

NODE = NodeRecord("node-uuid", "rack-7")


def given(log: ConsoleLog, node: NodeRecord = NODE) -> NodeRecord:
    """The node, once it is the server's."""
    return msgspec.structs.replace(node, instance_info=log.begin(node, "server"))


def test_what_others_have_printed_is_not_shown(tmp_path: Path) -> None:
    file, log = tmp_path / "rack-7.log", ConsoleLog(str(tmp_path / "{name}.log"))
    file.write_text("the secret of the first\n")
    node = given(log)
    assert log.read(node, "server", None) == ""
    with file.open("a") as more:
        more.write("one\ntwo\n")
    assert log.read(node, "server", None) == "one\ntwo\n"
    assert log.read(node, "server", 1) == "two\n"
    assert log.read(node, "server", 0) == ""


def test_a_log_that_was_begun_anew_is_the_server_s(tmp_path: Path) -> None:
    file, log = tmp_path / "node-uuid", ConsoleLog(str(tmp_path / "{node}"))
    node = given(log)
    file.write_text("first\n")
    assert log.read(node, "server", None) == "first\n", "there was none before"
    node = given(log)
    file.rename(tmp_path / "rotated")
    file.write_text("a longer line than before\n")
    assert log.read(node, "server", None) == "a longer line than before\n"
    node = given(log)
    file.write_text("short\n")
    assert log.read(node, "server", None) == "short\n", "it was cut"


def test_only_the_end_of_a_long_log_is_read(tmp_path: Path) -> None:
    log = ConsoleLog(str(tmp_path / "{server}"))
    (tmp_path / "server").write_bytes(b"x" * 300_000 + "ä\xff".encode("latin-1"))
    read = log.read(given(log), "server", None)
    assert len(read) <= 100 * 1024
    assert read.endswith("x\ufffd\ufffd")


def test_what_is_not_known_is_not_shown(tmp_path: Path) -> None:
    log = ConsoleLog(str(tmp_path / "{name}"))
    with pytest.raises(DriverError, match="can't be read"):
        log.read(given(log), "server", None)
    (tmp_path / "rack-7").write_text("whose?")
    with pytest.raises(DriverError, match="not known"):
        log.read(NODE, "server", None)
    with pytest.raises(MissingPartError):
        ConsoleLog("").read(NODE, "server", None)
    assert ConsoleLog("").begin(NODE, "server") == {}
