"""Clients that are slow, or do nothing at all, keep nobody else from being served."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
import requests

from tests.support import moorage
from tests.support.moorage import PROGRAMS
from tests.support.processes import Service, free_port, start_service
from tests.support.slow_clients import Manner, holding

CLIENTS = 40
ADMIN = {"X-Auth-Token": "admin", "OpenStack-API-Version": "placement 1.39"}


@dataclass(frozen=True)
class Served:
    """A port of a running process, a path that takes a body, and one with a large answer."""

    service: Service
    port: int
    path: str
    large: str

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"


@pytest.fixture(scope="module")
def embedded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Served, Served]]:
    directory = tmp_path_factory.mktemp("embedded")
    placement, compute = free_port(), free_port()
    command: list[str | Path] = [
        *(PROGRAMS / "moorage", "up", "--data", directory / "data", "--hosts", "0", "--auth", "none"),
        *("--placement-port", str(placement), "--compute-port", str(compute)),
    ]
    with start_service(command, placement, directory / "up.log") as service:
        yield (
            Served(service, placement, "/resource_providers", "/traits"),
            Served(service, compute, "/v2.1/os-aggregates", "/v2.1/flavors/detail"),
        )


@pytest.fixture(scope="module")
def placement(tmp_path_factory: pytest.TempPathFactory, sqlite_template: Path) -> Iterator[Served]:
    config = _configured(tmp_path_factory.mktemp("placement"), "placement")
    with moorage.start(config, workers=1) as service:
        yield Served(service, service.port, "/resource_providers", "/traits")


@pytest.fixture(scope="module")
def api(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    config = _configured(tmp_path_factory.mktemp("api"), "compute")
    port = free_port()
    command: list[str | Path] = [PROGRAMS / "moorage-api", "--config-file", config, "--port", str(port)]
    with start_service(command, port, config.with_name("api.log")) as service:
        yield Served(service, port, "/v2.1/os-aggregates", "/v2.1/flavors/detail")


def _configured(directory: Path, group: str) -> Path:
    config = moorage.configure(
        directory,
        f"sqlite:///{directory / 'moorage.sqlite'}",
        {
            group: {"threads": "4", "workers": "1"},
            "placement_client": {"auth_type": "none", "endpoint": "http://127.0.0.1:1"},
        },
    )
    moorage.sync_database(config)
    return config


@pytest.fixture(params=["placement of up", "compute of up", "moorage-placement", "moorage-api"])
def served(request: pytest.FixtureRequest) -> Served:
    placement: Served
    compute: Served
    if request.param == "moorage-placement":
        placement = request.getfixturevalue("placement")
        return placement
    if request.param == "moorage-api":
        compute = request.getfixturevalue("api")
        return compute
    placement, compute = request.getfixturevalue("embedded")
    return placement if request.param.startswith("placement") else compute


@pytest.mark.parametrize("manner", Manner, ids=lambda manner: manner.name.lower())
def test_others_are_served(served: Served, manner: Manner) -> None:
    path = served.large if manner is Manner.NOT_READING else served.path
    with holding(served.port, manner, CLIENTS, path):
        time.sleep(1.0)  # for the slow ones to take all that they can get
        for there in ("/healthz", served.large, "/metrics", served.large):
            begun = time.monotonic()
            answer = requests.get(served.url + there, headers=ADMIN, timeout=30)
            assert answer.status_code == 200
            assert time.monotonic() - begun < 8, there
        made = requests.post(served.url + served.path, data=b"{}", headers=ADMIN, timeout=30)
        assert made.status_code in (400, 415)
    assert served.service.process.poll() is None


def test_a_body_in_chunks_is_read_and_bounded(served: Served) -> None:
    def chunks(count: int) -> Iterator[bytes]:
        yield b'{"name": "in-chunks", "aggregate": {"name": "in-chunks", "availability_zone": "'
        for _ in range(count):
            yield b"a" * 1024
        yield b'"}}'

    headers = {**ADMIN, "Content-Type": "application/json"}
    small = requests.post(served.url + served.path, data=chunks(0), headers=headers, timeout=30)
    assert small.status_code in (200, 201, 400), small.text
    assert "Malformed JSON" not in small.text
    if "aggregates" in served.path:
        large = requests.post(served.url + served.path, data=chunks(200), headers=headers, timeout=30)
        assert large.status_code == 413
        assert large.json() == {
            "message": "Request is too large. Larger than max_request_body_size (114688).",
            "code": "413 Request Entity Too Large",
            "title": "Request Entity Too Large",
        }
