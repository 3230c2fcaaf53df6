"""What every driver has to hold, as tests."""

from __future__ import annotations

import threading
import time
import uuid
from collections.abc import Callable

import msgspec
import pytest

from moorage.drivers.contract import (
    RUNNING,
    SHUT_DOWN,
    Driver,
    DriverClosedError,
    DriverError,
    Parcel,
    ServerSpec,
)
from moorage.drivers.parts import (
    ConsoleLogging,
    LiveMovable,
    Movable,
    Pausable,
    Pluggable,
    Rebuildable,
    Rescuable,
    ResizableInPlace,
    Suspendable,
)
from moorage.drivers.shared_nodes import SharedNodes
from moorage.drivers.testing.guest_contract import GuestContract
from moorage.drivers.testing.stand import DriverStand, part_of

_PATIENCE = 60.0


class DriverContract(GuestContract):
    @pytest.fixture
    def stand(self) -> DriverStand:
        raise NotImplementedError("a derived class says what stands for the driver")

    # ------------------------------------------------------------ nodes

    def test_nodes_can_be_told_and_stay_the_same(self, stand: DriverStand) -> None:
        before = stand.driver.nodes()
        assert before
        assert len({node.uuid for node in before}) == len(before)
        for node in before:
            assert str(uuid.UUID(node.uuid)) == node.uuid
            assert node.name
            assert node.hypervisor_type
            assert any(inventory.total > 0 for inventory in node.inventories.values())
            assert msgspec.json.decode(msgspec.json.encode(node.facts)) == node.facts
            for machine, hypervisor, mode in node.facts["supported_instances"]:
                assert "" not in (machine, hypervisor, mode), "images may ask for it"
        stand.restart()
        assert {node.uuid for node in stand.driver.nodes()} == {node.uuid for node in before}

    def test_a_node_that_is_not_this_host_s_is_refused_and_another_host_may_do(
        self, stand: DriverStand
    ) -> None:
        elsewhere = msgspec.structs.replace(stand.spec(), node_uuid=str(uuid.uuid4()))
        with pytest.raises(DriverError) as refused:
            stand.driver.spawn(elsewhere)
        assert refused.value.retry_elsewhere
        assert elsewhere.uuid not in stand.driver.servers()

    # ------------------------------------------------------------ the life of a server

    def test_a_server_lives_through_its_power_states_and_a_restart(self, stand: DriverStand) -> None:
        """Whatever is asked may be asked again: its answer may have got lost."""
        spec = stand.spec()
        identity = (spec.uuid, spec.node_uuid)
        for _ in range(2):
            assert stand.driver.spawn(spec) == RUNNING
        assert stand.driver.servers()[spec.uuid] == RUNNING
        for _ in range(2):
            assert stand.driver.stop(*identity) == SHUT_DOWN
        assert stand.driver.power(*identity) == SHUT_DOWN
        stand.restart()
        assert stand.driver.servers()[spec.uuid] == SHUT_DOWN
        for _ in range(2):
            assert stand.driver.start(*identity) == RUNNING
        for hard in (False, True):
            assert stand.driver.reboot(*identity, hard=hard) == RUNNING
        assert stand.driver.power(*identity) == RUNNING
        assert stand.driver.progress().get(spec.uuid) is None, "nothing is at work"
        for _ in range(2):
            stand.driver.destroy(*identity)
        assert spec.uuid not in stand.driver.servers()
        stand.forget(spec)

    def test_a_server_that_shall_not_run_does_not(self, stand: DriverStand) -> None:
        spec = msgspec.structs.replace(stand.spec(), power_on=False)
        assert stand.driver.spawn(spec) == SHUT_DOWN
        assert stand.driver.power(spec.uuid, spec.node_uuid) == SHUT_DOWN
        stand.forget(spec)

    def test_of_a_server_that_is_not_here_nothing_is_done(self, stand: DriverStand) -> None:
        driver, spec = stand.driver, stand.spec()
        stranger, node = spec.uuid, spec.node_uuid
        asked: list[Callable[[], object]] = [
            lambda: driver.start(stranger, node),
            lambda: driver.stop(stranger, node),
            lambda: driver.reboot(stranger, node, hard=True),
            lambda: driver.power(stranger, node),
        ]
        if isinstance(driver, Rebuildable):
            asked.append(lambda: driver.rebuild(spec))
        if isinstance(driver, Movable):
            asked.append(lambda: driver.hand_over(stranger, node))
        if isinstance(driver, LiveMovable):
            asked.append(lambda: driver.live_migrate(stranger, node, {}))
        if isinstance(driver, Pluggable):
            asked.append(lambda: driver.attach_interface(stranger, node, stand.port()))
        if isinstance(driver, Pausable):
            asked += [lambda: driver.pause(stranger, node), lambda: driver.unpause(stranger, node)]
        if isinstance(driver, Suspendable):
            asked += [lambda: driver.suspend(stranger, node), lambda: driver.resume(stranger, node)]
        if isinstance(driver, Rescuable):
            asked += [lambda: driver.rescue(spec), lambda: driver.unrescue(stranger, node)]
        if isinstance(driver, ConsoleLogging):
            asked.append(lambda: driver.console_log(stranger, node, None))
        for ask in asked:
            with pytest.raises(DriverError):
                ask()
        driver.interrupt(stranger)
        driver.destroy(stranger, node)
        assert stranger not in driver.servers()

    # ------------------------------------------------------------ calls that are cut short

    def test_a_destroy_wins_over_a_spawn_that_is_at_work(self, stand: DriverStand) -> None:
        spec, spawning = _spawning(stand)
        stand.driver.destroy(spec.uuid, spec.node_uuid)
        assert isinstance(spawning.outcome(), DriverError)
        assert spec.uuid not in stand.driver.servers()
        stand.forget(spec)

    def test_what_is_interrupted_changes_nothing_any_more(self, stand: DriverStand) -> None:
        spec, spawning = _spawning(stand)
        stand.driver.interrupt(spec.uuid)
        assert isinstance(spawning.outcome(), DriverError)
        stand.forget(spec)

    def test_a_call_ends_with_its_driver_and_comes_again(self, stand: DriverStand) -> None:
        """That is no failure: the agent calls again after its restart."""
        spec, spawning = _spawning(stand)
        stand.driver.close()
        assert isinstance(spawning.outcome(), DriverClosedError)
        with pytest.raises(DriverClosedError):
            stand.driver.start(spec.uuid, spec.node_uuid)
        stand.restart()
        stand.forget(spec)
        assert spec.uuid not in stand.driver.servers()

    # ------------------------------------------------------------ rebuild

    def test_a_server_is_rebuilt_where_it_is(self, stand: DriverStand) -> None:
        spec, rebuildable = stand.spec(), part_of(stand.driver, Rebuildable)
        stand.driver.spawn(spec)
        asked = msgspec.structs.replace(spec, work="7-1")
        for _ in range(2):
            assert rebuildable.rebuild(asked) == RUNNING
        off = msgspec.structs.replace(spec, work="8-1", power_on=False)
        assert rebuildable.rebuild(off) == SHUT_DOWN
        assert stand.driver.power(spec.uuid, spec.node_uuid) == SHUT_DOWN
        stand.forget(spec)

    # ------------------------------------------------------------ migrate

    def test_a_server_that_is_handed_over_waits_until_it_has_arrived(self, stand: DriverStand) -> None:
        movable = part_of(stand.driver, Movable)
        other, spec = stand.other(), stand.spec()
        stand.driver.spawn(spec)
        parcel = _carried(movable.hand_over(spec.uuid, spec.node_uuid))
        assert _carried(movable.hand_over(spec.uuid, spec.node_uuid)) == parcel
        assert stand.driver.servers()[spec.uuid] == SHUT_DOWN
        there = msgspec.structs.replace(stand.spec(other), uuid=spec.uuid)
        for _ in range(2):
            assert part_of(other, Movable).take_over(there, parcel) == RUNNING
        stand.forget(spec)
        assert other.servers()[spec.uuid] == RUNNING, "it has left its old host only"
        other.destroy(there.uuid, there.node_uuid)

    def test_a_server_that_could_not_leave_goes_on(self, stand: DriverStand) -> None:
        movable, spec = part_of(stand.driver, Movable), stand.spec()
        stand.driver.spawn(spec)
        movable.hand_over(spec.uuid, spec.node_uuid)
        assert stand.driver.start(spec.uuid, spec.node_uuid) == RUNNING
        stand.forget(spec)

    # ------------------------------------------------------------ resize in place

    def test_a_server_gets_another_flavor_where_it_is_and_its_old_one_back(self, stand: DriverStand) -> None:
        resizable, movable = part_of(stand.driver, ResizableInPlace), part_of(stand.driver, Movable)
        spec = stand.spec()
        identity = (spec.uuid, spec.node_uuid)
        stand.driver.spawn(spec)
        resizable.undo_resize(*identity)
        resizable.keep_resize(*identity)
        assert stand.driver.power(*identity) == RUNNING, "there was nothing to undo, nor to keep"
        for work, ends in (("7-1", resizable.undo_resize), ("8-1", resizable.keep_resize)):
            movable.hand_over(*identity)
            for _ in range(2):
                assert resizable.resize_in_place(_larger(spec, work)) == RUNNING
            stand.restart()
            resizable, movable = part_of(stand.driver, ResizableInPlace), part_of(stand.driver, Movable)
            ends = getattr(resizable, ends.__name__)
            for _ in range(2):
                ends(*identity)
            is_undone = work == "7-1"
            assert stand.driver.power(*identity) == (SHUT_DOWN if is_undone else RUNNING)
            assert stand.driver.start(*identity) == RUNNING
        stand.forget(spec)

    def test_a_resize_in_place_that_shall_not_run_does_not(self, stand: DriverStand) -> None:
        resizable, movable = part_of(stand.driver, ResizableInPlace), part_of(stand.driver, Movable)
        spec = stand.spec()
        stand.driver.spawn(spec)
        movable.hand_over(spec.uuid, spec.node_uuid)
        larger = msgspec.structs.replace(_larger(spec, "9-1"), power_on=False)
        assert resizable.resize_in_place(larger) == SHUT_DOWN
        stand.forget(spec)

    # ------------------------------------------------------------ migrate live

    def test_a_server_moves_while_it_runs(self, stand: DriverStand) -> None:
        movable = part_of(stand.driver, LiveMovable)
        other, spec = stand.other(), stand.spec()
        receiver = part_of(other, LiveMovable)
        stand.driver.spawn(spec)
        there = msgspec.structs.replace(stand.spec(other), uuid=spec.uuid)
        destination = _carried(receiver.expect(there))
        parcel = _carried(movable.live_migrate(spec.uuid, spec.node_uuid, destination))
        for _ in range(2):
            assert receiver.take_over(there, parcel) == RUNNING
        stand.forget(spec)
        assert other.servers()[spec.uuid] == RUNNING
        other.destroy(there.uuid, there.node_uuid)

    def test_who_was_expected_and_does_not_come_leaves_nothing(self, stand: DriverStand) -> None:
        part_of(stand.driver, LiveMovable)
        other = stand.other()
        spec = stand.spec(other)
        part_of(other, LiveMovable).expect(spec)
        other.destroy(spec.uuid, spec.node_uuid)
        assert spec.uuid not in other.servers()

    def test_without_a_live_migration_there_is_none_to_abort_or_hurry(self, stand: DriverStand) -> None:
        movable, spec = part_of(stand.driver, LiveMovable), stand.spec()
        stand.driver.spawn(spec)
        movable.abort_live_migration(spec.uuid)
        movable.hurry_live_migration(spec.uuid)
        assert stand.driver.power(spec.uuid, spec.node_uuid) == RUNNING
        stand.forget(spec)

    # ------------------------------------------------------------ interfaces

    def test_ports_come_and_go_once(self, stand: DriverStand) -> None:
        pluggable, spec, port = part_of(stand.driver, Pluggable), stand.spec(), stand.port()
        stand.driver.spawn(spec)
        for _ in range(2):
            pluggable.attach_interface(spec.uuid, spec.node_uuid, port)
        for _ in range(2):
            pluggable.detach_interface(spec.uuid, spec.node_uuid, str(port["id"]))
        assert stand.driver.power(spec.uuid, spec.node_uuid) == RUNNING
        stand.forget(spec)

    # ------------------------------------------------------------ nodes that hosts share

    def test_shared_nodes_are_only_worked_on_where_they_are_kept(self, stand: DriverStand) -> None:
        shared, spec = part_of(stand.driver, SharedNodes), stand.spec()
        kept = {node.uuid for node in stand.driver.nodes()}
        stand.driver.spawn(spec)
        shared.keep(set())
        assert stand.driver.nodes() == []
        assert stand.driver.servers() == {}
        with pytest.raises(DriverError) as refused:
            stand.driver.stop(spec.uuid, spec.node_uuid)
        assert refused.value.retry_elsewhere
        shared.keep(kept)
        assert stand.driver.power(spec.uuid, spec.node_uuid) == RUNNING
        stand.forget(spec)

    def test_shared_nodes_are_divided_among_hosts(self, stand: DriverStand) -> None:
        shared = part_of(stand.driver, SharedNodes)
        shared.look()
        assert shared.eligible().keys() >= {node.uuid for node in stand.driver.nodes()}
        terms = shared.terms()
        assert msgspec.json.decode(msgspec.json.encode(terms)) == terms


def _carried(parcel: Parcel) -> Parcel:
    """As it comes out of the control plane at the other host."""
    decoded: Parcel = msgspec.json.decode(msgspec.json.encode(parcel))
    return decoded


class _Spawning:
    """A `spawn` in a thread of its own."""

    def __init__(self, driver: Driver, spec: ServerSpec) -> None:
        self._ended: list[BaseException | int] = []
        self._thread = threading.Thread(target=self._spawn, args=(driver, spec), daemon=True)
        self._thread.start()

    def outcome(self) -> BaseException | int:
        self._thread.join(_PATIENCE)
        assert self._ended, "the call does not end"
        return self._ended[0]

    def _spawn(self, driver: Driver, spec: ServerSpec) -> None:
        try:
            self._ended.append(driver.spawn(spec))
        except (DriverError, DriverClosedError) as error:
            self._ended.append(error)


def _spawning(stand: DriverStand) -> tuple[ServerSpec, _Spawning]:
    spec = stand.slow_spec()
    if spec is None:
        pytest.skip("its servers are there at once")
    spawning = _Spawning(stand.driver, spec)
    deadline = time.monotonic() + _PATIENCE
    while not stand.is_at_work(spec):
        assert time.monotonic() < deadline, "the call does not begin"
        time.sleep(0.02)
    return spec, spawning


def _larger(spec: ServerSpec, work: str) -> ServerSpec:
    """As it shall be after a resize."""
    flavor = {**spec.flavor, "id": "larger", "ram": int(spec.flavor.get("ram") or 64) * 2, "ephemeral": 1}
    return msgspec.structs.replace(spec, flavor=flavor, work=work)
