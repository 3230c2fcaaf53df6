"""A Neutron on stage, and clouds that use it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from moorage.conductor.engine import runner
from moorage.network.neutron import NeutronNetwork
from tests.support import faulty_proxy, stage_neutron
from tests.support.crossing import Crossing
from tests.support.faulty_proxy import FaultyProxy
from tests.support.processes import wait_until
from tests.support.stage_neutron import StageNeutron


@pytest.fixture
def neutron() -> StageNeutron:
    return StageNeutron()


@pytest.fixture
def crossing(database_url: str, tmp_path: Path, neutron: StageNeutron) -> Iterator[Callable[..., Crossing]]:
    """Makes a cloud without a conductor and without agents: the test starts them."""
    made: list[Crossing] = []
    with stage_neutron.serving(neutron) as port:

        def make(**options: object) -> Crossing:
            def network(who: str) -> NeutronNetwork:
                return stage_neutron.network_at(port, who)

            made.append(Crossing(database_url, tmp_path / "agents", network, **options))
            return made[-1]

        yield make
        for one in made:
            one.stop()


# ---------------------------------------------------------------- for tests of faults, with a `cloud` each


@pytest.fixture(scope="module")
def stage() -> StageNeutron:
    return StageNeutron()


@pytest.fixture(scope="module")
def proxy(stage: StageNeutron) -> Iterator[FaultyProxy]:
    with stage_neutron.serving(stage) as port, faulty_proxy.in_front_of(port) as running:
        yield running


@pytest.fixture
def soon(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is tried again is tried again at once."""
    monkeypatch.setattr(runner, "_FIRST_RETRY_SECONDS", 0.02)


@pytest.fixture
def nothing_is_left(cloud: Crossing, stage: StageNeutron, proxy: FaultyProxy) -> Iterator[None]:
    """After each test all is well again, and everything can be deleted, with nothing left behind."""
    yield
    proxy.fail(None)
    stage.unbindable = set()
    wait_until(cloud.at_rest, "the ledger to be empty", 60)
    cloud.delete(*(server["id"] for server in cloud.get("/v2.1/servers")["servers"]))
    assert stage.owned() == []
    assert cloud.holders() == set()
