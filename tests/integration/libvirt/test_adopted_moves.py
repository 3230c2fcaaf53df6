"""A guest adopted from Nova goes where guests of our own go, and stays the machine that Nova has made."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import msgspec
import pytest

from moorage.drivers.contract import RUNNING, SHUT_DOWN, DriverError, Parcel, ServerSpec, UnchangedError
from tests.integration.libvirt.moving import MovingStand, Two, carried, directory, goes_on, runs, two
from tests.integration.libvirt.nova_guest import NovaGuest
from tests.lab.libvirt import tiny_guest
from tests.lab.libvirt.hosts import LibvirtLab

if TYPE_CHECKING:
    from moorage.drivers.libvirt.driver import LibvirtDriver

FLAVOR = {"name": "m1.tiny", "vcpus": 1, "ram": 128, "disk": 1, "swap": 1, "ephemeral": 1, "extra_specs": {}}
LARGER = {**FLAVOR, "vcpus": 2, "ram": 192, "disk": 2, "ephemeral": 2, "swap": 0}
STORAGE = pytest.mark.parametrize("shared", [True, False], ids=["shared", "copied"])


@dataclass
class Adopted:
    both: Two
    spec: ServerSpec
    """As conductors know it."""

    def driver(self, stand: MovingStand) -> LibvirtDriver:
        return cast("LibvirtDriver", stand.driver)

    def definition(self, stand: MovingStand) -> str:
        return stand.host.run("virsh", "dumpxml", "--inactive", self.spec.uuid)

    def is_the_same(self, stand: MovingStand) -> None:
        """To the guest; and what it has written to its ephemeral disk is there."""
        xml = self.definition(stand)
        assert "OpenStack Foundation" in xml
        assert "slot='0x11'" in xml, "where its card is"
        assert "slot='0x12'" in xml, "where its disk is"
        with (directory(stand, self.spec) / "disk.eph0").open("rb") as written:
            assert written.read(1 << 16) == b"\xab" * (1 << 16)
        assert f"file='{directory(stand, self.spec)}/disk.eph0'" in xml

    def identity(self, stand: MovingStand) -> tuple[str, str]:
        return self.spec.uuid, stand.driver.nodes()[0].uuid


@contextmanager
def adopted(lab: LibvirtLab, path: Path, *, shared: bool) -> Iterator[Adopted]:
    """On the first of two hosts, where it has counted."""
    from moorage.drivers.libvirt.adoption import adopting

    with two(lab, path, shared=shared) as both:
        one, port = both.one, both.one.port()
        guest = NovaGuest(
            host=one.host,
            instances=one.settings.instances_path,
            image_id=one.image_id,
            port=port,
            content=path / "tiny.raw",
            has_further_disks=True,
        )
        backend = cast("LibvirtDriver", one.driver).backend
        found = adopting.adopt_all(
            backend.domains.connection, guest.instances, one.directory / "state", dry_run=False
        )
        assert [one.refusal for one in found] == [""]
        spec = one.spec(network=[dict(port)], flavor=FLAVOR, instance_name="instance-0000002a")
        spec = msgspec.structs.replace(spec, uuid=guest.uuid, flavor=FLAVOR)
        runs(one, spec, 1)
        yield Adopted(both, spec)
        guest.clear_up()
        assert one.leftovers() == both.two.leftovers() == []


def move_cold(here: Adopted, stand: MovingStand, **changes: Any) -> tuple[ServerSpec, Parcel]:
    there = here.both.spec(here.both.other(stand), here.spec, **changes)
    parcel = carried(stand.moves.hand_over(*here.identity(stand)))
    assert carried(stand.moves.hand_over(*here.identity(stand))) == parcel
    for _ in range(2):
        assert here.both.other(stand).moves.take_over(there, parcel) == RUNNING
    return there, parcel


@STORAGE
def test_it_is_resized_reverted_and_moved_to_and_fro(pair: LibvirtLab, tmp_path: Path, shared: bool) -> None:
    with adopted(pair, tmp_path, shared=shared) as guest:
        one, other, spec = guest.both.one, guest.both.two, guest.spec
        guest.driver(one).check_resize(*guest.identity(one), LARGER)
        move_cold(guest, one, flavor=LARGER)
        runs(other, spec, 2)
        guest.is_the_same(other)
        facts = guest.driver(other).diagnostics(*guest.identity(other))
        assert facts["num_cpus"] == 2
        assert "disk.swap" not in guest.definition(other), "its flavor has none"
        assert (directory(other, spec) / "disk.eph0").stat().st_size == 2 << 30

        other.driver.destroy(*guest.identity(other))
        assert tiny_guest.written(directory(one, spec) / "disk")[0] == 1, "as it was when it left"
        assert one.driver.start(*guest.identity(one)) == RUNNING
        runs(one, spec, 2)
        guest.is_the_same(one)
        assert "disk.swap" in guest.definition(one)

        move_cold(guest, one)
        one.driver.destroy(*guest.identity(one))
        runs(other, spec, 3)
        assert other.driver.reboot(*guest.identity(other), hard=True) == RUNNING
        runs(other, spec, 4)
        move_cold(guest, other)
        other.driver.destroy(*guest.identity(other))
        runs(one, spec, 5)
        guest.is_the_same(one)
        assert guest.both.runs_on(spec) == ["h1"]
        assert one.taps.plugged()
        assert not other.taps.plugged()
        one.driver.destroy(*guest.identity(one))


@STORAGE
def test_it_counts_on_while_it_moves(pair: LibvirtLab, tmp_path: Path, shared: bool) -> None:
    with adopted(pair, tmp_path, shared=shared) as guest:
        spec = guest.spec
        for here in (guest.both.one, guest.both.two):
            there = guest.both.other(here)
            expecting = guest.both.spec(there, spec)
            before = tiny_guest.tick(directory(here, spec) / "console.log")
            expected = carried(there.moves.expect(expecting))
            parcel = carried(here.moves.live_migrate(*guest.identity(here), expected))
            for _ in range(2):
                assert there.moves.take_over(expecting, parcel) == RUNNING
            here.driver.destroy(*guest.identity(here))
            there.moves.take_over(expecting, parcel)
            goes_on(there, spec, before)
            assert tiny_guest.boots(directory(there, spec) / "console.log") == 1, "it has never stopped"
            there.restart()
        one = guest.both.one
        assert one.driver.stop(*guest.identity(one)) == SHUT_DOWN
        assert tiny_guest.written(directory(one, spec) / "disk")[0] == 1
        assert one.driver.start(*guest.identity(one)) == RUNNING
        runs(one, spec, 2)
        move_cold(guest, one)
        one.driver.destroy(*guest.identity(one))
        other = guest.both.two
        runs(other, spec, 3)
        guest.is_the_same(other)
        other.driver.destroy(*guest.identity(other))


def test_it_gets_another_flavor_where_it_is(pair: LibvirtLab, tmp_path: Path) -> None:
    with adopted(pair, tmp_path, shared=False) as guest:
        one, spec = guest.both.one, guest.spec
        driver, identity = guest.driver(one), guest.identity(one)
        for work, boots in (("7-1", 2), ("8-1", 3)):
            larger = msgspec.structs.replace(spec, flavor=LARGER, work=work)
            for _ in range(2):
                assert driver.resize_in_place(larger) == RUNNING
            runs(one, spec, boots)
            guest.is_the_same(one)
            assert driver.diagnostics(*identity)["num_cpus"] == 2
            if work == "7-1":
                driver.undo_resize(*identity)
                assert driver.start(*identity) == RUNNING
                runs(one, spec, 2)
                guest.is_the_same(one)
                assert driver.diagnostics(*identity)["num_cpus"] == 1
                assert "disk.swap" in guest.definition(one)
        driver.keep_resize(*identity)
        driver.destroy(*identity)


def test_it_is_rescued_and_comes_back_as_it_was(pair: LibvirtLab, tmp_path: Path) -> None:
    with adopted(pair, tmp_path, shared=False) as guest:
        one, identity = guest.both.one, guest.identity(guest.both.one)
        driver = guest.driver(one)
        assert driver.rescue(one.rescue_spec(guest.spec)) == RUNNING
        assert "OpenStack Foundation" not in guest.definition(one)
        assert "disk.rescue" in guest.definition(one)
        one.restart()
        driver = guest.driver(one)
        assert driver.unrescue(*identity) == RUNNING
        guest.is_the_same(one)
        runs(one, guest.spec, 2)
        driver.destroy(*identity)


def test_it_comes_back_elsewhere_when_its_host_is_dead(pair: LibvirtLab, tmp_path: Path) -> None:
    with adopted(pair, tmp_path, shared=True) as guest:
        one, other, spec = guest.both.one, guest.both.two, guest.spec
        guest.both.kill_guest(spec)
        there = guest.both.spec(other, spec, keep_disk=True)
        assert other.driver.spawn(there) == RUNNING
        runs(other, spec, 2)
        guest.is_the_same(other)
        other.driver.destroy(*guest.identity(other))
        one.driver.destroy(*guest.identity(one))


def test_what_cuts_it_off_does_no_harm(
    pair: LibvirtLab, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its disks are made anew, and the agent dies before it is written down that they are, or right after."""
    from moorage.drivers.libvirt.adoption import definition, own_disks

    with adopted(pair, tmp_path, shared=False) as guest:
        one, spec, identity = guest.both.one, guest.spec, guest.identity(guest.both.one)
        path = directory(one, spec) / "disk.eph0"
        for boots, (where, what) in enumerate(((definition, "settled"), (own_disks, "put_in_place")), 2):
            with monkeypatch.context() as patched:
                patched.setattr(where, what, _dies)
                with pytest.raises(Dead):
                    one.moves.hand_over(*identity)
            assert list(path.parent.glob("disk.eph0.own-*"))
            one.restart()
            assert one.driver.start(*identity) == RUNNING
            runs(one, spec, boots)
        guest.is_the_same(one)
        assert not list(path.parent.glob("disk.eph0.own-*"))
        one.driver.destroy(*identity)


def test_a_frozen_host_that_makes_its_disks_anew_late_does_no_harm(
    pair: LibvirtLab, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It has gone on elsewhere meanwhile, on the same storage, and has written there."""
    with adopted(pair, tmp_path, shared=True) as guest:
        one, other, spec = guest.both.one, guest.both.two, guest.spec
        path = directory(other, spec) / "disk.eph0"
        with freezing(monkeypatch, lambda: one.moves.hand_over(*guest.identity(one))):
            assert other.driver.spawn(guest.both.spec(other, spec, keep_disk=True)) == RUNNING
            runs(other, spec, 2)
            assert other.driver.stop(*guest.identity(other)) == SHUT_DOWN
            with path.open("r+b") as written:
                written.seek(1 << 20)
                written.write(b"\xcd" * 512)
        assert other.driver.start(*guest.identity(other)) == RUNNING
        runs(other, spec, 3)
        guest.is_the_same(other)
        with path.open("rb") as written:
            written.seek(1 << 20)
            assert written.read(512) == b"\xcd" * 512
        other.driver.destroy(*guest.identity(other))
        one.driver.destroy(*guest.identity(one))


@contextmanager
def freezing(patched: pytest.MonkeyPatch, act: Callable[[], object]) -> Iterator[None]:
    """In a thread, from when it has made the first of its disks anew until the end."""
    from moorage.drivers.libvirt.storage import qemu_img

    convert, frozen, thawed = qemu_img.convert, threading.Event(), threading.Event()

    def late(*words: Any) -> None:
        convert(*words)
        if threading.current_thread() is thread:
            frozen.set()
            thawed.wait(300)

    def work() -> None:
        with contextlib.suppress(DriverError):
            act()

    thread = threading.Thread(target=work)
    patched.setattr(qemu_img, "convert", late)
    thread.start()
    try:
        assert frozen.wait(60)
        yield
    finally:
        thawed.set()
        thread.join()


class Dead(Exception):
    pass


def _dies(*_: object) -> None:
    raise Dead


def test_a_host_of_an_older_release_does_not_get_it(pair: LibvirtLab, tmp_path: Path) -> None:
    from moorage.drivers.libvirt.moves import parcel as parcels

    with adopted(pair, tmp_path, shared=False) as guest:
        one, other, spec = guest.both.one, guest.both.two, guest.spec
        there = guest.both.spec(other, spec)
        expected = carried(other.moves.expect(there))
        del expected["takes_adopted"]
        with pytest.raises(UnchangedError, match="upgrade it first"):
            one.moves.live_migrate(*guest.identity(one), expected)
        other.driver.destroy(*guest.identity(other))
        assert guest.both.runs_on(spec) == ["h1"]
        parcel = carried(one.moves.hand_over(*guest.identity(one)))
        with pytest.raises(DriverError, match="another version"):
            parcels.unpack(parcel, parcels.HandedOver)
        one.driver.destroy(*guest.identity(one))


def test_what_nobody_here_can_carry_is_told_before_it_is_stopped(pair: LibvirtLab, tmp_path: Path) -> None:
    with adopted(pair, tmp_path, shared=False) as guest:
        one, identity = guest.both.one, guest.identity(guest.both.one)
        driver, path = guest.driver(one), directory(one, guest.spec)
        one.driver.stop(*identity)
        (path / "disk.swap").rename(path / "disk.eph1")
        xml = guest.definition(one).replace("disk.swap", "disk.eph1")
        (tmp_path / "changed.xml").write_text(xml)
        one.host.run("virsh", "define", tmp_path / "changed.xml")
        one.driver.start(*identity)
        runs(one, guest.spec, 2)
        refused: list[Callable[[], object]] = [
            lambda: driver.hand_over(*identity),
            lambda: driver.resize_in_place(msgspec.structs.replace(guest.spec, work="7-1")),
            lambda: driver.rescue(one.rescue_spec(guest.spec)),
        ]
        for ask in refused:
            with pytest.raises(UnchangedError, match=r"disk\.eph1"):
                ask()
        assert guest.both.runs_on(guest.spec) == ["h1"]
        assert tiny_guest.boots(path / "console.log") == 2
        driver.destroy(*identity)
