"""A Compute API whose aggregates are mirrored in one of three Placements, through a proxy that can fail."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack

import pytest

from tests.functional.mirror.site import Kind, Site, site_on
from tests.support.postgres import Postgres
from tests.support.stage import Stage, moorage_stage, reference_stage

SITES = (
    ("sqlite_url", Kind.LOCAL),
    ("postgres_url", Kind.LOCAL),
    ("sqlite_url", Kind.REFERENCE),
    ("postgres_url", Kind.MOORAGE),
)
OVER_HTTP = SITES[2:]


@pytest.fixture(scope="session")
def stages(tmp_path_factory: pytest.TempPathFactory, postgres: Postgres) -> Iterator[Callable[[Kind], Stage]]:
    """Placement services in processes of their own, each started by the first test that asks for it."""
    started: dict[Kind, Stage] = {}
    with ExitStack() as stack:

        def stage(kind: Kind) -> Stage:
            if kind not in started:
                make = moorage_stage if kind is Kind.MOORAGE else reference_stage
                started[kind] = stack.enter_context(make(tmp_path_factory.mktemp(kind.value), postgres))
            return started[kind]

        yield stage


def _site(request: pytest.FixtureRequest, stages: Callable[[Kind], Stage]) -> Iterator[Site]:
    database, kind = request.param
    port = 0 if kind is Kind.LOCAL else stages(kind).fresh()
    with site_on(request.getfixturevalue(database), port) as site:
        yield site


@pytest.fixture(params=SITES, ids=lambda pair: f"{pair[0].removesuffix('_url')}-{pair[1].value}")
def site(request: pytest.FixtureRequest, stages: Callable[[Kind], Stage]) -> Iterator[Site]:
    yield from _site(request, stages)


@pytest.fixture(params=OVER_HTTP, ids=lambda pair: pair[1].value)
def remote(request: pytest.FixtureRequest, stages: Callable[[Kind], Stage]) -> Iterator[Site]:
    """A site whose Placement is somewhere else, so that it can be cut off."""
    yield from _site(request, stages)
