"""Guests go from one libvirt host to another, in every way there is, and are never in two places."""

from __future__ import annotations

import ssl
from functools import partial
from pathlib import Path
from typing import Any

import msgspec
import pytest

from moorage.compute.consoles.tokens import ConsoleGrant
from moorage.consoles.links import ConsoleLinks
from moorage.consoles.settings import ConsoleSettings
from moorage.drivers.contract import RUNNING, SHUT_DOWN, DriverClosedError, DriverError, ServerSpec
from moorage.drivers.parts import (
    ConsoleType,
    Diagnosable,
    RemoteConsoles,
    ResizableInPlace,
    ResizeChecking,
    SharedStorage,
    require,
)
from tests.integration.libvirt.console_certificates import Certificates, have_tls, restart_with
from tests.integration.libvirt.moving import MovingStand, Two, carried, directory, goes_on, log, runs, two
from tests.lab.libvirt import tiny_guest
from tests.lab.libvirt.hosts import LibvirtLab


def move_cold(both: Two, here: MovingStand, spec: ServerSpec, **changes: Any) -> ServerSpec:
    parcel = carried(here.moves.hand_over(spec.uuid, spec.node_uuid))
    assert carried(here.moves.hand_over(spec.uuid, spec.node_uuid)) == parcel
    assert here.driver.power(spec.uuid, spec.node_uuid) == SHUT_DOWN
    there = both.spec(both.other(here), spec, **changes)
    for _ in range(2):
        assert both.other(here).moves.take_over(there, parcel) == RUNNING
    return there


@pytest.mark.parametrize("shared", [True, False], ids=["shared", "copied"])
def test_a_resize_can_be_reverted_and_confirmed(pair: LibvirtLab, tmp_path: Path, shared: bool) -> None:
    with two(pair, tmp_path, shared=shared) as both:
        one, other = both.one, both.two
        spec = one.spec(config_drive=True)
        one.driver.spawn(spec)
        runs(one, spec, 1)
        drive = (directory(one, spec) / "disk.config").read_bytes()

        larger = {**spec.flavor, "ram": 192, "vcpus": 2, "disk": 2, "swap": 1}
        parcel = carried(one.moves.hand_over(spec.uuid, spec.node_uuid))
        there = move_cold(both, one, spec, flavor=larger)
        runs(other, spec, 2)
        assert both.runs_on(spec) == ["h2"]
        facts = require(other.driver, Diagnosable).diagnostics(spec.uuid, there.node_uuid)
        assert facts["num_cpus"] == 2
        assert (directory(other, spec) / "disk.config").read_bytes() == drive
        if shared:
            with pytest.raises(DriverError, match=there.node_uuid):
                one.driver.start(spec.uuid, spec.node_uuid)

        other.driver.destroy(spec.uuid, there.node_uuid)
        assert tiny_guest.written(directory(one, spec) / "disk")[0] == 1, "as it was when it left"
        assert one.driver.start(spec.uuid, spec.node_uuid) == RUNNING
        runs(one, spec, 2)
        if shared:  # a destination that was frozen until now
            with pytest.raises(DriverError, match="any more"):
                other.moves.take_over(there, parcel)
        assert both.runs_on(spec) == ["h1"]

        there = move_cold(both, one, spec, flavor=larger)
        one.driver.destroy(spec.uuid, spec.node_uuid)
        runs(other, spec, 3)
        parcel = carried(other.moves.hand_over(spec.uuid, there.node_uuid))
        checking = require(other.driver, ResizeChecking)
        checking.check_resize(spec.uuid, there.node_uuid, larger)
        with pytest.raises(DriverError, match="resize disk down"):
            checking.check_resize(spec.uuid, there.node_uuid, spec.flavor)
        with pytest.raises(DriverError, match="resize disk down"):
            one.moves.take_over(both.spec(one, spec), parcel)
        assert other.driver.start(spec.uuid, there.node_uuid) == RUNNING
        other.driver.destroy(spec.uuid, there.node_uuid)
        assert one.leftovers() == other.leftovers() == []


def test_a_resize_in_place_can_be_undone_and_kept(pair: LibvirtLab, tmp_path: Path) -> None:
    """The disks are what they were, whatever the guest did to them meanwhile."""
    with two(pair, tmp_path, shared=False) as both:
        one = both.one
        spec = one.spec()
        identity = (spec.uuid, spec.node_uuid)
        one.driver.spawn(spec)
        runs(one, spec, 1)
        resizing = require(one.driver, ResizableInPlace)
        larger = {**spec.flavor, "ram": 192, "vcpus": 2, "disk": 2, "swap": 1, "ephemeral": 1}
        for work in ("7-1", "8-1"):
            one.moves.hand_over(*identity)
            asked = msgspec.structs.replace(spec, flavor=larger, work=work)
            assert resizing.resize_in_place(asked) == RUNNING
            runs(one, spec, 2)
            assert require(one.driver, Diagnosable).diagnostics(*identity)["num_cpus"] == 2
            made = {path.name for path in directory(one, spec).iterdir()}
            assert {"disk.swap", "disk.eph0", "before"} <= made
            if work == "7-1":
                resizing.undo_resize(*identity)
                assert tiny_guest.written(directory(one, spec) / "disk")[0] == 1, "as it was before"
                made = {path.name for path in directory(one, spec).iterdir()}
                assert not {"disk.swap", "disk.eph0", "before"} & made
        resizing.keep_resize(*identity)
        assert not (directory(one, spec) / "before").exists()
        assert one.driver.power(*identity) == RUNNING
        one.driver.destroy(*identity)
        assert one.leftovers() == []


def test_a_resize_in_place_is_not_undone_under_a_guest_of_another_host(
    pair: LibvirtLab, tmp_path: Path
) -> None:
    """Its host was frozen meanwhile, and the server evacuated from it, to one that shares the directory."""
    with two(pair, tmp_path, shared=True) as both:
        one, other = both.one, both.two
        spec = one.spec()
        one.driver.spawn(spec)
        runs(one, spec, 1)
        one.moves.hand_over(spec.uuid, spec.node_uuid)
        resizing = require(one.driver, ResizableInPlace)
        larger = {**spec.flavor, "vcpus": 2}
        resizing.resize_in_place(msgspec.structs.replace(spec, flavor=larger, work="7-1"))
        runs(one, spec, 2)
        one.driver.stop(spec.uuid, spec.node_uuid)
        there = both.spec(other, spec, keep_disk=True)
        assert other.driver.spawn(there) == RUNNING
        runs(other, spec, 3)
        with pytest.raises(DriverError, match=there.node_uuid):
            resizing.undo_resize(spec.uuid, spec.node_uuid)
        assert both.runs_on(spec) == ["h2"]
        goes_on(other, spec)
        assert tiny_guest.written(directory(other, spec) / "disk")[0] == 3
        other.driver.destroy(spec.uuid, there.node_uuid)
        one.driver.destroy(spec.uuid, spec.node_uuid)
        assert one.leftovers() == other.leftovers() == []


def move_live(both: Two, here: MovingStand, spec: ServerSpec, boots: int = 1) -> ServerSpec:
    there = both.spec(both.other(here), spec)
    expected = carried(both.other(here).moves.expect(there))
    before = tiny_guest.tick(log(here, spec))
    parcel = carried(here.moves.live_migrate(spec.uuid, spec.node_uuid, expected))
    assert both.runs_on(spec) == [both.other(here).host.name]
    assert parcel == here.moves.live_migrate(spec.uuid, spec.node_uuid, expected), "asked again"
    for _ in range(2):
        assert both.other(here).moves.take_over(there, parcel) == RUNNING
    with pytest.raises(DriverError):
        here.driver.start(spec.uuid, spec.node_uuid)
    for _ in range(2):
        here.driver.destroy(spec.uuid, spec.node_uuid)
    goes_on(both.other(here), spec, before)
    assert tiny_guest.boots(log(both.other(here), spec)) == boots, "it has never stopped"
    return there


@pytest.mark.parametrize("shared", [True, False], ids=["shared", "copied"])
def test_a_guest_counts_on_while_it_moves(pair: LibvirtLab, tmp_path: Path, shared: bool) -> None:
    with two(pair, tmp_path, shared=shared) as both:
        one, other = both.one, both.two
        spec = one.spec(config_drive=True, network=[one.port()], flavor={"swap": 1})
        one.driver.spawn(spec)
        runs(one, spec, 1)
        there = move_live(both, one, spec)
        back = move_live(both, other, there)
        assert one.driver.servers() == {spec.uuid: RUNNING}
        counted = tiny_guest.tick(log(one, spec))
        one.driver.stop(spec.uuid, back.node_uuid)
        assert tiny_guest.written(directory(one, spec) / "disk") >= (1, counted)
        one.driver.destroy(spec.uuid, back.node_uuid)
        assert one.leftovers() == other.leftovers() == []


def test_a_guest_speaks_the_tls_of_the_host_that_it_comes_to(pair: LibvirtLab, tmp_path: Path) -> None:
    """Its consoles do, and those of the host that it left did not."""
    with two(pair, tmp_path, shared=True, serial_listen="127.0.0.1") as both:
        one, other = both.one, both.two
        certificates = Certificates(tmp_path / "pki", other.host.name)
        before = have_tls(other.host, certificates, tmp_path / "installed")
        spec = one.spec()
        one.driver.spawn(spec)
        runs(one, spec, 1)
        consoles = require(one.driver, RemoteConsoles)
        assert not consoles.console(spec.uuid, spec.node_uuid, ConsoleType.SERIAL).tls
        there = move_live(both, one, spec)
        links = ConsoleLinks(ConsoleSettings(guest_tls=certificates.tls()))
        consoles = require(other.driver, RemoteConsoles)
        for kind, words in ((ConsoleType.SERIAL, b""), (ConsoleType.NOVNC, b"\x01")):
            address = consoles.console(spec.uuid, there.node_uuid, kind)
            grant = ConsoleGrant(1, spec.uuid, other.host.name, there.node_uuid, kind, address, "")
            with other.host.network.call(partial(links.open, grant)).socket as inside:
                assert isinstance(inside, ssl.SSLSocket)
                inside.sendall(words)
                assert inside.recv(1)
        other.driver.destroy(spec.uuid, there.node_uuid)
        assert one.leftovers() == other.leftovers() == []
        restart_with(other.host, before)


def test_a_dead_host_s_server_goes_on_with_its_disk_where_that_is_seen(
    pair: LibvirtLab, tmp_path: Path
) -> None:
    with two(pair, tmp_path, shared=True) as both:
        one, other = both.one, both.two
        spec = one.spec()
        one.driver.spawn(spec)
        runs(one, spec, 1)
        there = both.spec(other, spec, keep_disk=True)

        with pytest.raises(DriverError, match="lock"):
            other.driver.spawn(there)  # its host is not dead at all
        assert both.runs_on(spec) == ["h1"]
        assert one.driver.reboot(spec.uuid, spec.node_uuid, hard=True) == RUNNING
        runs(one, spec, 2)

        both.kill_guest(spec)
        for _ in range(2):
            assert other.driver.spawn(there) == RUNNING
        runs(other, spec, 3)
        other.driver.destroy(spec.uuid, there.node_uuid)  # the evacuation failed after all
        assert tiny_guest.written(directory(one, spec) / "disk")[0] == 3
        other.driver.spawn(there)
        with pytest.raises(DriverError, match=there.node_uuid):
            one.driver.start(spec.uuid, spec.node_uuid)
        other.settle()  # an hour later
        one.driver.destroy(spec.uuid, spec.node_uuid)  # the old host is back, and is told
        assert both.runs_on(spec) == ["h2"]
        runs(other, spec, 4)
        other.driver.destroy(spec.uuid, there.node_uuid)
        assert one.leftovers() == other.leftovers() == []


@pytest.mark.parametrize("has_domain", [True, False], ids=["as it was", "without its domains"])
def test_an_evacuated_server_that_is_deleted_leaves_nothing_for_its_dead_host(
    pair: LibvirtLab, tmp_path: Path, has_domain: bool
) -> None:
    with two(pair, tmp_path, shared=True) as both:
        one, other = both.one, both.two
        spec = one.spec(network=[one.port()])
        one.driver.spawn(spec)
        both.kill_guest(spec)
        there = both.spec(other, spec, keep_disk=True)
        assert other.driver.spawn(there) == RUNNING
        require(other.driver, SharedStorage).forsake(spec.uuid)
        other.driver.destroy(spec.uuid, there.node_uuid)
        assert not directory(one, spec).exists()
        assert one.taps.plugged()
        if has_domain:
            one.driver.destroy(spec.uuid, spec.node_uuid)  # it was not so dead after all, and is told
        else:
            one.host.run("virsh", "undefine", spec.uuid)
            one.tidy_up()
        assert one.leftovers() == other.leftovers() == []


def test_a_dead_host_s_server_starts_anew_where_its_disk_is_not_seen(
    pair: LibvirtLab, tmp_path: Path
) -> None:
    with two(pair, tmp_path, shared=False) as both:
        one, other = both.one, both.two
        spec = one.spec()
        one.driver.spawn(spec)
        runs(one, spec, 1)
        one.driver.reboot(spec.uuid, spec.node_uuid, hard=True)
        runs(one, spec, 2)
        both.kill_guest(spec)
        there = both.spec(other, spec, keep_disk=True)
        other.driver.spawn(there)
        runs(other, spec, 1)
        one.driver.destroy(spec.uuid, spec.node_uuid)
        other.driver.destroy(spec.uuid, there.node_uuid)
        assert one.leftovers() == other.leftovers() == []


def test_servers_outlive_their_image(pair: LibvirtLab, tmp_path: Path) -> None:
    """All of the disk is copied then, and so is the base of one that is shut down."""
    with two(pair, tmp_path, shared=False) as both:
        one, other = both.one, both.two
        spec = one.spec()
        one.driver.spawn(spec)
        runs(one, spec, 1)
        one.images.images.clear()
        there = move_cold(both, one, spec)
        one.driver.destroy(spec.uuid, spec.node_uuid)
        runs(other, spec, 2)
        assert (directory(other, spec) / "disk.base").exists()
        back = move_live(both, other, there, boots=2)
        assert not (directory(one, spec) / "disk.base").exists()
        counted = tiny_guest.tick(log(one, spec))
        last = move_cold(both, one, back)
        assert tiny_guest.written(directory(one, spec) / "disk") >= (2, counted)
        runs(other, spec, 3)
        one.driver.destroy(spec.uuid, back.node_uuid)
        other.driver.destroy(spec.uuid, last.node_uuid)
        assert one.leftovers() == other.leftovers() == []


def test_a_destination_that_ends_in_the_middle_goes_on(pair: LibvirtLab, tmp_path: Path) -> None:
    with two(pair, tmp_path, shared=False) as both:
        one, other = both.one, both.two
        spec = one.spec()
        one.driver.spawn(spec)
        runs(one, spec, 1)
        parcel = carried(one.moves.hand_over(spec.uuid, spec.node_uuid))
        there = both.spec(other, spec)
        one.images.hold = other.driver.close
        with pytest.raises(DriverClosedError):
            other.moves.take_over(there, parcel)
        one.images.hold = lambda: None
        other.restart()
        assert other.moves.take_over(there, parcel) == RUNNING
        runs(other, spec, 2)
        one.driver.destroy(spec.uuid, spec.node_uuid)
        other.driver.destroy(spec.uuid, there.node_uuid)
        assert one.leftovers() == other.leftovers() == []
