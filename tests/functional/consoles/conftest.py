"""A cloud of simulated hosts in this process, whose agents are asked."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from falcon import testing

from tests.functional.conductor.conftest import Yard


class Guests:
    """Servers that run, and what is asked about them."""

    def __init__(self, yard: Yard) -> None:
        self.yard = yard

    def running(self, **fields: Any) -> str:
        [uuid] = self.yard.boot(**fields)
        self.yard.await_status([uuid], "ACTIVE")
        return uuid

    def call(self, method: str, path: str, body: Any = None, version: str = "2.96") -> testing.Result:
        headers = {"openstack-api-version": f"compute {version}"}
        return self.yard.api.simulate_request(method, f"/v2.1{path}", json=body, headers=headers)

    def act(self, uuid: str, name: str, argument: Any, version: str = "2.96") -> testing.Result:
        return self.call("POST", f"/servers/{uuid}/action", {name: argument}, version)

    def output(self, uuid: str, **argument: Any) -> str:
        answer = self.act(uuid, "os-getConsoleOutput", argument)
        assert answer.status_code == 200, answer.text
        return str(answer.json["output"])

    def host(self, uuid: str) -> str:
        return str(self.yard.server(uuid)["OS-EXT-SRV-ATTR:host"])


Make = Callable[..., Guests]


@pytest.fixture
def guests(database_url: str, tmp_path: Path) -> Iterator[Make]:
    made: list[Yard] = []

    def make(hosts: int = 1, **options: Any) -> Guests:
        made.append(Yard(database_url, tmp_path / "agents", hosts, **options))
        return Guests(made[-1])

    yield make
    for one in made:
        one.stop()


def sentence(answer: testing.Result, status: int) -> str:
    assert answer.status_code == status, answer.text
    [fault] = answer.json.values()
    return str(fault["message"])
