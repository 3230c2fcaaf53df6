"""The simulated host: servers that stay, nodes that take one server, and faults on demand."""

from __future__ import annotations

import threading
import time
import uuid
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import msgspec
import pytest

from moorage.drivers.contract import RUNNING, SHUT_DOWN, Driver, DriverError, ServerSpec
from moorage.drivers.fake import faults
from moorage.drivers.fake.driver import FakeDriver, FakeSettings
from moorage.drivers.fake.faults import FaultKind, InjectedFault
from moorage.drivers.image_store import StoredImage
from moorage.drivers.parts import ConsoleType
from moorage.drivers.testing import DriverContract, DriverStand


def spec(driver: FakeDriver, uuid: str = "server-1", node: int = 0, **metadata: str) -> ServerSpec:
    return ServerSpec(
        uuid=uuid,
        name="s",
        project_id="p",
        user_id="u",
        node_uuid=driver.nodes()[node].uuid,
        flavor={},
        metadata={f"fake:{step}": text for step, text in metadata.items()},
    )


class Images:
    """Takes data, and gives none."""

    def __init__(self) -> None:
        self.data: dict[str, str] = {}

    def describe(self, image_id: str) -> StoredImage:
        raise NotImplementedError

    def download(self, image: StoredImage, target: Path, check: Callable[[], None]) -> None:
        raise NotImplementedError

    def upload(self, image_id: str, source: Path, disk_format: str, properties: Mapping[str, str]) -> None:
        self.data.setdefault(image_id, source.read_text())


class FakeStand(DriverStand):
    consoles = (ConsoleType.SERIAL,)

    driver: FakeDriver

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._images = Images()
        self.driver = self._made("host-1")

    def spec(self, driver: Driver | None = None) -> ServerSpec:
        node = (driver or self.driver).nodes()[0].uuid
        return ServerSpec(str(uuid.uuid4()), "s", "p", "u", node, {}, network=[dict(self.port())])

    def slow_spec(self) -> ServerSpec:
        return msgspec.structs.replace(self.spec(), metadata={"fake:spawn": "hang"})

    def is_at_work(self, spec: ServerSpec) -> bool:
        return spec.uuid in self.driver._calls._at_work

    def restart(self) -> None:
        self.driver.close()
        self.driver = self._made("host-1")

    def other(self) -> FakeDriver:
        return self._made("host-2")

    def waiting_image(self) -> str:
        return str(uuid.uuid4())

    def has_data(self, image_id: str) -> bool:
        return bool(self._images.data[image_id])

    def _made(self, host: str) -> FakeDriver:
        return FakeDriver(host, FakeSettings(nodes=2), self._directory / host, self._images)


class TestFake(DriverContract):
    @pytest.fixture
    def stand(self, tmp_path: Path) -> FakeStand:
        return FakeStand(tmp_path)


@pytest.fixture
def driver(tmp_path: Path) -> FakeDriver:
    return FakeDriver("host-1", FakeSettings(nodes=2), tmp_path)


def test_nodes_keep_their_identity_and_differ_between_hosts(tmp_path: Path) -> None:
    settings = FakeSettings(nodes=3)
    first = FakeDriver("host-1", settings, tmp_path / "1").nodes()
    again = FakeDriver("host-1", settings, tmp_path / "2").nodes()
    other = FakeDriver("host-2", settings, tmp_path / "3").nodes()
    for node in (*first, *again):
        del node.facts["uptime"]  # is that of this moment
    assert first == again
    assert len({node.uuid for node in [*first, *other]}) == 6


def test_the_only_node_has_the_name_of_its_host(tmp_path: Path) -> None:
    assert [node.name for node in FakeDriver("host-1", FakeSettings(), tmp_path).nodes()] == ["host-1"]


def test_a_node_tells_since_when_it_runs(driver: FakeDriver) -> None:
    assert all("load average" in node.facts["uptime"] for node in driver.nodes())


def test_servers_outlive_the_agent(driver: FakeDriver, tmp_path: Path) -> None:
    assert driver.spawn(spec(driver)) == RUNNING
    assert driver.stop("server-1", "") == SHUT_DOWN
    driver.close()
    again = FakeDriver("host-1", FakeSettings(nodes=2), tmp_path)
    assert again.servers() == {"server-1": SHUT_DOWN}
    assert again.placed() == {"server-1": again.nodes()[0].uuid}


def test_what_is_done_already_is_not_done_again(driver: FakeDriver) -> None:
    driver.spawn(spec(driver))
    driver.stop("server-1", "")
    assert driver.spawn(spec(driver)) == SHUT_DOWN
    driver.destroy("server-1", "")
    driver.destroy("server-1", "")
    assert driver.servers() == {}


def test_an_exclusive_node_takes_one_server(tmp_path: Path) -> None:
    driver = FakeDriver("metal", FakeSettings(nodes=2, resource_class="CUSTOM_METAL"), tmp_path)
    assert set(driver.nodes()[0].inventories) == {"CUSTOM_METAL"}
    driver.spawn(spec(driver))
    with pytest.raises(DriverError) as refused:
        driver.spawn(spec(driver, "server-2"))
    assert refused.value.retry_elsewhere
    driver.spawn(spec(driver, "server-2", node=1))
    driver.destroy("server-1", "")
    driver.spawn(spec(driver, "server-3"))
    assert driver.placed() == {"server-2": driver.nodes()[1].uuid, "server-3": driver.nodes()[0].uuid}


def test_exclusive_nodes_hold_under_concurrency(tmp_path: Path) -> None:
    driver = FakeDriver("metal", FakeSettings(resource_class="CUSTOM_METAL"), tmp_path)
    outcomes: list[bool] = []

    def attempt(number: int) -> None:
        try:
            driver.spawn(spec(driver, f"server-{number}", spawn="delay=0.05"))
            outcomes.append(True)
        except DriverError:
            outcomes.append(False)

    threads = [threading.Thread(target=attempt, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(outcomes) == [False] * 7 + [True]


@pytest.mark.parametrize(("text", "elsewhere"), [("fail", False), ("fail_here", True)])
def test_a_server_may_ask_for_a_failure(driver: FakeDriver, text: str, elsewhere: bool) -> None:
    with pytest.raises(DriverError) as failure:
        driver.spawn(spec(driver, spawn=text))
    assert failure.value.retry_elsewhere is elsewhere
    assert driver.servers() == {}


def test_faults_of_later_steps_come_from_the_metadata_at_spawn(driver: FakeDriver) -> None:
    driver.spawn(spec(driver, stop="fail"))
    with pytest.raises(DriverError):
        driver.stop("server-1", "")
    assert driver.start("server-1", "") == RUNNING


def test_configured_faults_strike_unless_the_server_says_otherwise(tmp_path: Path) -> None:
    driver = FakeDriver("host-1", FakeSettings(faults=faults.parse_steps({"spawn": "fail"})), tmp_path)
    with pytest.raises(DriverError):
        driver.spawn(spec(driver))
    assert driver.spawn(spec(driver, "server-2", spawn="delay=0")) == RUNNING


def test_spawning_is_cheap(driver: FakeDriver) -> None:
    begun = time.perf_counter()
    for number in range(500):
        driver.spawn(spec(driver, f"server-{number}"))
    assert time.perf_counter() - begun < 2.5  # 200 a second, on a machine that has other things to do


def test_faults_are_read_in_order() -> None:
    assert faults.parse("delay=0.5+fail_here@0.25") == [
        InjectedFault(FaultKind.DELAY, 0.5),
        InjectedFault(FaultKind.FAIL_HERE, probability=0.25),
    ]


@pytest.mark.parametrize("text", ["explode", "delay", "fail=3", "fail@2", "delay=x", "delay=-1"])
def test_nonsense_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="is no fault"):
        faults.parse(text)


def test_a_step_that_does_not_exist_is_refused() -> None:
    with pytest.raises(ValueError, match="there is no step 'migrate'"):
        faults.parse_steps({"migrate": "fail"})


# ---------------------------------------------------------------- moves


@pytest.fixture
def other(tmp_path: Path) -> FakeDriver:
    return FakeDriver("host-2", FakeSettings(nodes=2), tmp_path / "other")


def disk_of(driver: FakeDriver, uuid: str = "server-1") -> str:
    (server,) = [found for found in driver._servers.all().values() if found.uuid == uuid]
    return server.disk


def test_what_is_on_the_disk_is_handed_over(driver: FakeDriver, other: FakeDriver) -> None:
    driver.spawn(spec(driver))
    parcel = driver.hand_over("server-1", "")
    assert driver.servers() == {"server-1": SHUT_DOWN}
    assert driver.hand_over("server-1", "") == parcel
    assert other.take_over(spec(other), parcel) == RUNNING
    assert other.take_over(spec(other), parcel) == RUNNING
    assert disk_of(other) == disk_of(driver)
    assert driver.start("server-1", "") == RUNNING


def test_a_server_that_shall_not_run_does_not(driver: FakeDriver, other: FakeDriver) -> None:
    off = msgspec.structs.replace(spec(driver), power_on=False)
    assert driver.spawn(off) == SHUT_DOWN
    assert driver.rebuild(off) == SHUT_DOWN
    assert driver.rebuild(spec(driver)) == RUNNING


def test_a_rebuild_makes_a_new_disk(driver: FakeDriver) -> None:
    driver.spawn(spec(driver))
    before = disk_of(driver)
    driver.rebuild(spec(driver))
    assert disk_of(driver) != before
    with pytest.raises(DriverError, match="is not on host"):
        driver.rebuild(spec(driver, "server-2"))


def test_a_server_moves_live(driver: FakeDriver, other: FakeDriver) -> None:
    driver.spawn(spec(driver))
    parcel = driver.live_migrate("server-1", "", other.expect(spec(other)))
    assert other.servers() == {}
    assert other.take_over(spec(other), parcel) == RUNNING
    assert disk_of(other) == disk_of(driver)


@pytest.mark.parametrize("hurry", [False, True])
def test_a_live_migration_is_aborted_or_hurried(driver: FakeDriver, hurry: bool) -> None:
    driver.spawn(spec(driver, live_migrate="hang"))
    ended: list[object] = []

    def migrate() -> None:
        try:
            ended.append(driver.live_migrate("server-1", "", {}))
        except DriverError as error:
            ended.append(str(error))

    thread = threading.Thread(target=migrate)
    thread.start()
    deadline = time.monotonic() + 10
    while not ended and time.monotonic() < deadline:  # until the call is at work, nothing happens
        (driver.hurry_live_migration if hurry else driver.abort_live_migration)("server-1")
        time.sleep(0.01)
    thread.join(10)
    if hurry:
        assert ended == [{"disk": disk_of(driver), "power": RUNNING}]
        assert driver.servers() == {"server-1": SHUT_DOWN}
    else:
        assert ended == ["the live migration was aborted"]
        assert driver.servers() == {"server-1": RUNNING}


@pytest.mark.parametrize("step", ["rebuild", "hand_over", "take_over", "expect", "live_migrate"])
def test_every_step_of_a_move_fails_on_demand(driver: FakeDriver, other: FakeDriver, step: str) -> None:
    failing: dict[str, Any] = {step: "fail_here"}
    driver.spawn(spec(driver, **failing))
    asked = spec(other, **failing)
    calls: dict[str, Callable[[], object]] = {
        "rebuild": lambda: driver.rebuild(spec(driver, **failing)),
        "hand_over": lambda: driver.hand_over("server-1", ""),
        "take_over": lambda: other.take_over(asked, {"disk": "d"}),
        "expect": lambda: other.expect(asked),
        "live_migrate": lambda: driver.live_migrate("server-1", "", {}),
    }
    with pytest.raises(DriverError, match=f"{step} shall fail_here") as failure:
        calls[step]()
    assert failure.value.retry_elsewhere
    assert driver.servers() == {"server-1": RUNNING}
    assert other.servers() == {}
