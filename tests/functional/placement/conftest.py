"""Clients of Placement, each of a fresh and empty service: ours and the reference, directly and over HTTP."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import requests
from keystoneauth1 import adapter, noauth, session

from moorage.core import config
from moorage.db.options import OPTIONS as DATABASE_OPTIONS
from moorage.http.auth import Wsgi
from moorage.placement import wsgi
from moorage.placement.client.contract import PlacementClient
from moorage.placement.client.http import HttpPlacement
from moorage.placement.client.local import LocalPlacement
from moorage.placement.client.transport import AdapterTransport, SessionTransport
from moorage.placement.options import OPTIONS as PLACEMENT_OPTIONS
from moorage.placement.service import PlacementService
from tests.support.older import OlderService
from tests.support.stage import Stage, moorage_stage, reference_stage

CLIENTS = (
    "local_on_sqlite",
    "local_on_postgresql",
    "session_to_moorage",
    "adapter_to_moorage",
    "session_to_reference",
    "session_to_reference_1_33",
    "session_to_reference_1_30",
)


@pytest.fixture(scope="module")
def application(module_database_url: str) -> Iterator[Wsgi]:
    """Our service, empty, on each of the databases."""
    overrides = {"database.connection": module_database_url, "auth.strategy": "none"}
    conf = config.read([], wsgi.OPTIONS, overrides)
    service = PlacementService.from_conf(conf)
    service.start()
    yield wsgi.build(conf, service)
    service.stop()


@pytest.fixture(params=CLIENTS)
def client(request: pytest.FixtureRequest) -> PlacementClient:
    chosen: PlacementClient = request.getfixturevalue(request.param)
    return chosen


@pytest.fixture
def local_on_sqlite(sqlite_url: str) -> Iterator[PlacementClient]:
    yield from _local(sqlite_url)


@pytest.fixture
def local_on_postgresql(postgres_url: str) -> Iterator[PlacementClient]:
    yield from _local(postgres_url)


def _local(url: str) -> Iterator[PlacementClient]:
    conf = config.read([], [DATABASE_OPTIONS, PLACEMENT_OPTIONS], {"database.connection": url})
    service = PlacementService.from_conf(conf)
    service.start()
    yield LocalPlacement(service)
    service.stop()


@pytest.fixture(scope="session")
def moorage(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:
    with moorage_stage(tmp_path_factory.mktemp("moorage")) as stage:
        yield stage


@pytest.fixture(scope="session")
def reference(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:
    with reference_stage(tmp_path_factory.mktemp("reference")) as stage:
        yield stage


@pytest.fixture
def to_moorage(moorage: Stage) -> Iterator[SessionTransport]:
    yield from _session(moorage.fresh())


@pytest.fixture
def to_reference(reference: Stage) -> Iterator[SessionTransport]:
    yield from _session(reference.fresh())


def _session(port: int) -> Iterator[SessionTransport]:
    with requests.Session() as plain:
        plain.trust_env = False
        plain.headers["X-Auth-Token"] = "admin"
        yield SessionTransport(plain, f"http://127.0.0.1:{port}")


@pytest.fixture
def session_to_moorage(to_moorage: SessionTransport) -> PlacementClient:
    return HttpPlacement(to_moorage)


@pytest.fixture
def session_to_reference(to_reference: SessionTransport) -> PlacementClient:
    return HttpPlacement(to_reference)


@pytest.fixture
def session_to_reference_1_33(to_reference: SessionTransport) -> PlacementClient:
    """No mappings, no traits of the root, no types of consumers."""
    return HttpPlacement(OlderService(to_reference, (1, 33)))


@pytest.fixture
def session_to_reference_1_30(to_reference: SessionTransport) -> PlacementClient:
    """The oldest that will do."""
    return HttpPlacement(OlderService(to_reference, (1, 30)))


@pytest.fixture
def adapter_to_moorage(moorage: Stage) -> PlacementClient:
    auth = noauth.NoAuth(endpoint=f"http://127.0.0.1:{moorage.fresh()}")
    return HttpPlacement(
        AdapterTransport(adapter.Adapter(session.Session(auth=auth), service_type="placement"))
    )
