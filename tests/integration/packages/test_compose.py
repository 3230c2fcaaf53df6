"""The compose file under a real container engine, word by word as the page on installing has it.

Podman is Debian's. Images of the registry have stand-ins of the same names; ours are built from the packages.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.lab.podman import engine, stand_ins
from tests.lab.podman.engine import DEBIANS_COMPOSE, NEWER_COMPOSE, Podman
from tests.support.composed_cloud import boots, lay_out, services
from tests.support.debian import Unavailable
from tests.support.processes import NotReadyError, wait_until

pytestmark = [
    pytest.mark.skipif(
        not os.environ.get("MOORAGE_PACKAGES"), reason="minutes of a processor: make packages"
    ),
    pytest.mark.timeout(2400),
]

COMPUTE, PLACEMENT = "http://127.0.0.1:8774", "http://127.0.0.1:8778"


@pytest.fixture(scope="module")
def podman(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Podman]:
    directory = tmp_path_factory.mktemp("podman")
    try:
        with engine.start(directory) as started:
            stand_ins.make(started, directory / "images")
            yield started
    except Unavailable as error:
        pytest.skip(str(error))


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where the compose file is, in what is like a clone after `make deb`."""
    return lay_out(tmp_path_factory.mktemp("clone"))


@pytest.mark.parametrize(
    "program",
    [lambda: DEBIANS_COMPOSE, lambda: NEWER_COMPOSE.bin() / "podman-compose"],
    ids=["Debian", "PyPI"],
)
def test_the_compose_file_is_a_cloud_that_outlives_its_conductors(
    podman: Podman, place: Path, program: Callable[[], Path]
) -> None:
    compose = program()
    try:
        podman.run(compose, "up", "--build", "--detach", within=place)
        _boots(podman)
        _came_in_any_order(podman)
        _outlives_its_conductors(podman)
    finally:
        podman.run(compose, "down", "--volumes", within=place)
    assert podman.containers() == []


def _outlives_its_conductors(podman: Podman) -> None:
    one, other = podman.containers("conductor")
    podman.run("podman", "kill", one)
    _boots(podman)
    before = podman.restarts(other)
    podman.crash(other)
    wait_until(lambda: podman.restarts(other) > before, "the engine to start it again")
    _boots(podman)
    assert podman.state(one) == "exited", "who was asked to go stays away"


def _boots(podman: Podman) -> None:
    try:
        podman.network.call(lambda: boots(COMPUTE, PLACEMENT))
    except NotReadyError as error:
        raise NotReadyError(f"{error}\n{podman.tell()}") from None


def _came_in_any_order(podman: Podman) -> None:
    """The database took its time: whoever needs it was there before."""
    assert {name: len(podman.containers(name)) for name in services()} == {
        name: service.get("deploy", {}).get("replicas", 1) for name, service in services().items()
    }
    for name in ("schema", "flavors"):
        [container] = podman.containers(name)
        assert podman.state(container) == "exited"
        assert podman.restarts(container) > 0, name
