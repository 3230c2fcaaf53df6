"""The two services side by side, and the suites that judge ours."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.conformance.suites import ClientRunner, GabbiRunner
from tests.support.postgres import Postgres
from tests.support.stage import Stage, moorage_stage, reference_stage


@pytest.fixture(scope="session")
def gabbi(tmp_path_factory: pytest.TempPathFactory) -> Iterator[GabbiRunner]:
    with GabbiRunner(tmp_path_factory.mktemp("gabbi") / "log") as runner:
        yield runner


@pytest.fixture(scope="session")
def client(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ClientRunner]:
    with ClientRunner(tmp_path_factory.mktemp("client") / "log") as runner:
        yield runner


@pytest.fixture(scope="session")
def reference_service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:
    with reference_stage(tmp_path_factory.mktemp("reference")) as stage:
        yield stage


@pytest.fixture(scope="session")
def moorage_on_sqlite(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:
    with moorage_stage(tmp_path_factory.mktemp("sqlite")) as stage:
        yield stage


@pytest.fixture(scope="session")
def moorage_on_postgresql(tmp_path_factory: pytest.TempPathFactory, postgres: Postgres) -> Iterator[Stage]:
    with moorage_stage(tmp_path_factory.mktemp("postgresql"), postgres) as stage:
        yield stage


@pytest.fixture(params=["sqlite", "postgresql"])
def moorage_service(request: pytest.FixtureRequest) -> Stage:
    """Ours, once on each database."""
    stage: Stage = request.getfixturevalue(f"moorage_on_{request.param}")
    return stage
