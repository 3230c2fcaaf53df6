"""A server's directory, which hosts may share."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from moorage.drivers.contract import DriverError, ServerSpec
from moorage.drivers.libvirt.moves import keeping
from moorage.drivers.libvirt.storage import server_directory
from moorage.drivers.libvirt.storage.server_directory import ServerDirectory, ServerRecord
from moorage.drivers.libvirt.vifs.contract import Vif

SPEC = ServerSpec("server-1", "web", "project-1", "user-1", "a", {})


def at(instances: Path, node: str) -> ServerDirectory:
    return ServerDirectory(instances, SPEC.uuid, node)


def made(instances: Path, node: str, **record: str) -> ServerDirectory:
    directory = at(instances, node)
    directory.make()
    directory.write(msgspec.convert({"spec": msgspec.to_builtins(SPEC), **record}, ServerRecord))
    return directory


def test_who_leaves_last_removes_what_hosts_share(tmp_path: Path) -> None:
    one, other = made(tmp_path, "a"), made(tmp_path, "b")
    one.disk.write_text("data")
    assert one.others() == ["b"]
    one.remove()
    one.remove()
    assert other.disk.read_text() == "data"
    assert one.read() is None
    other.remove()
    assert not other.path.exists()


def test_what_a_killed_agent_did_not_finish_goes_when_it_is_started_again(tmp_path: Path) -> None:
    one, other = made(tmp_path, "a"), made(tmp_path, "b")
    left, another_host_s = one.temporary("disk"), other.temporary("disk")
    for path in (left, another_host_s, one.disk):
        path.touch()
    one.temporary("snapshot-").mkdir()
    server_directory.remove_interrupted(tmp_path, "a")
    assert not left.exists()
    assert another_host_s.exists()
    assert one.disk.exists()
    assert one.read() is not None


def test_who_was_there_before_gets_its_disk_back_as_it_was(tmp_path: Path) -> None:
    source, destination = made(tmp_path, "a"), made(tmp_path, "b", origin="a", built="7")
    destination.own("b")
    destination.disk.write_text("written there")
    destination.before.mkdir()
    (destination.before / "disk").write_text("as it was")
    destination.remove()
    assert source.disk.read_text() == "as it was"
    assert source.owner() == "a"
    assert not source.before.exists()


def test_what_was_not_kept_whole_is_not_given_back(tmp_path: Path) -> None:
    """The destination died while it made its copies, and had changed nothing yet."""
    source, destination = made(tmp_path, "a"), made(tmp_path, "b", origin="a")
    destination.own("b")
    source.disk.write_text("as it was")
    destination.before.mkdir()
    (destination.before / "disk").write_text("as")
    destination.remove()
    assert source.disk.read_text() == "as it was"


def test_who_has_given_it_away_gives_nothing_back(tmp_path: Path) -> None:
    """Also if it once came from the host that it goes to now."""
    source, destination = made(tmp_path, "a", origin="b", built="7"), made(tmp_path, "b", origin="a")
    destination.own("b")
    source.disk.write_text("written there")
    source.before.mkdir()
    (source.before / "disk").write_text("as it was")
    source.remove()
    assert destination.disk.read_text() == "written there"
    assert destination.owner() == "b"
    assert not destination.before.exists()


def test_a_host_that_did_not_get_it_after_all_lets_go_of_it(tmp_path: Path) -> None:
    made(tmp_path, "a").own("a")
    evacuated_to = made(tmp_path, "b")
    evacuated_to.own("b")
    evacuated_to.remove()
    assert at(tmp_path, "a").owner() == ""


def test_a_server_that_was_destroyed_does_not_come_back(tmp_path: Path) -> None:
    directory = made(tmp_path, "a")
    directory.remove()
    with pytest.raises(DriverError):
        directory.write(ServerRecord(SPEC))
    assert not directory.path.exists()


def test_a_host_that_was_forgotten_still_knows_what_it_had_plugged(tmp_path: Path) -> None:
    vif = Vif("port-1", "fa:16:3e:00:00:01", "tap1")
    dead, heir = made(tmp_path, "a"), made(tmp_path, "b")
    dead.write(msgspec.structs.replace(dead.require(), vifs=[vif]))
    heir.forget_others()
    assert heir.others() == []
    assert dead.read() is None
    heir.remove()
    assert not heir.path.exists()
    assert dead.plugged() == [vif]
    dead.remove()
    assert dead.plugged() == []
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("is_resized", [True, False], ids=["resized", "killed before it was"])
def test_nothing_is_left_of_a_resize_that_is_over(tmp_path: Path, is_resized: bool) -> None:
    one = made(tmp_path, "a")
    keeping.keep(one, lambda: None)
    if is_resized:
        one.write(msgspec.structs.replace(one.require(), earlier=one.require()))
    assert keeping.forget(one).earlier is None
    assert not one.before.exists()


def test_copies_of_a_move_are_not_those_of_a_resize(tmp_path: Path) -> None:
    source, destination = made(tmp_path, "a"), made(tmp_path, "b", origin="a")
    keeping.keep(destination, lambda: None)
    for one in (source, destination):
        keeping.forget(one)
        assert one.before.exists()
