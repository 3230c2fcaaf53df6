"""Operations that an earlier release left at some step: a conductor of this one ends them.

`tests/unit/conductor` reads the samples. Here an operation of the same kind is brought to the same step, its
conductor dies, the sample takes the place of what it wrote, and another conductor goes on. An agent's answer
that a sample waits for is lost, so it has to be asked for again.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from moorage.conductor.operations.moves import live_migrate
from moorage.conductor.operations.register import DECLARED
from moorage.network.pool import network_of
from tests.functional.conductor.conftest import Yard
from tests.functional.conductor.older.endings import cancelled
from tests.functional.conductor.older.resuming import SELDOM, cancel, resume
from tests.functional.conductor.older.sample import SAMPLES, Sample
from tests.functional.conductor.older.site import Site


def may_be_cancelled(sample: Sample) -> bool:
    """Those that are given up on the spot do the same at every step: where they wait is enough."""
    step = DECLARED[sample.kind].steps[sample.step]
    if cancelled(sample) is None or step.cancel.refusal is not None:
        return False
    return step.cancel.then is not None or step.cancel.later or step.waits is not None


@pytest.fixture(scope="module", autouse=True)
def no_pauses() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(live_migrate, "_LOOK_SECONDS", 0.05)
        yield


@pytest.fixture(scope="module")
def pool_cloud(module_database_url: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    directory: Path = tmp_path_factory.mktemp("older")
    cloud = Yard(module_database_url, directory, 4, **{"fake.vcpus": 8, **SELDOM})
    site = Site(
        cloud.api,
        cloud.placement.database,
        cloud.client,
        network_of("private"),
        cloud.addressed,
        set(),
        lambda host: cloud.cloud.agents[host]._driver,
    )
    site.use(cloud.cloud._conductor.runner)
    yield site
    cloud.stop()


@pytest.fixture
def pools(pool_cloud: Site) -> Iterator[Site]:
    yield pool_cloud
    pool_cloud.clear()


@pytest.mark.parametrize(
    "sample", [one for one in SAMPLES if not one.is_on_neutron], ids=lambda one: one.name
)
def test_what_an_older_release_began_is_ended(pools: Site, sample: Sample) -> None:
    resume(pools, sample)


@pytest.mark.parametrize(
    "sample",
    [one for one in SAMPLES if not one.is_on_neutron and may_be_cancelled(one)],
    ids=lambda one: one.name,
)
def test_what_is_cancelled_at_any_step_leaves_nothing_behind(pools: Site, sample: Sample) -> None:
    cancel(pools, sample)
