"""A Neutron on stage, and clouds that use it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.support import stage_neutron
from tests.support.crossing import Crossing
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
            def network(who: str) -> stage_neutron.NeutronNetwork:
                return stage_neutron.network_at(port, who)

            made.append(Crossing(database_url, tmp_path / "agents", network, **options))
            return made[-1]

        yield make
        for one in made:
            one.stop()
