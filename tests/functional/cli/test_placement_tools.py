"""`moorage placement why` and `capacity`, asked of a running service."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import requests

from tests.support.processes import Command, free_port, start_service

MOORAGE = Path(sys.executable).parent / "moorage"
EAST = "aaaaaaaa-aaaa-4aaa-8aaa-aaaaaaaaaaaa"
WEST = "bbbbbbbb-bbbb-4bbb-8bbb-bbbbbbbbbbbb"


def node(number: int, aggregate: str, traits: list[str]) -> dict[str, Any]:
    return {
        "uuid": f"00000000-0000-4000-8000-{number:012}",
        "name": f"node-{number}",
        "inventories": {"VCPU": {"total": 16}, "MEMORY_MB": {"total": 65536}},
        "traits": traits,
        "aggregates": [aggregate],
    }


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The data directory of a service with two nodes in the east and one in the west."""
    directory = tmp_path_factory.mktemp("tools") / "data"
    port = free_port()
    ports = ["--placement-port", str(port), "--compute-port", str(free_port())]
    command: Command = [MOORAGE, "up", "--data", directory, *ports, "--hosts", "0"]
    with start_service(command, port, directory.parent / "up.log") as service:
        fleet = [node(1, EAST, ["HW_CPU_X86_AVX2"]), node(2, EAST, []), node(3, WEST, [])]
        login = ("admin", (directory / "password").read_text().strip())
        sent = requests.post(
            f"{service.url}/moorage/v1/providers", json={"providers": fleet}, auth=login, timeout=30
        )
        assert sent.json()["created"] == 3
        yield directory


def run(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    clean = {name: value for name, value in os.environ.items() if not name.startswith("OS_")}
    return subprocess.run(
        [str(MOORAGE), "placement", *arguments],
        capture_output=True,
        text=True,
        check=False,
        env={**clean, **environment},
    )


def test_why_names_the_condition_that_is_to_blame_and_the_nearest_miss(data: Path) -> None:
    said = run("why", "resources=VCPU:20&required=HW_CPU_X86_AVX2", "--data", str(data)).stdout
    assert "0 of 3 trees" in said
    assert "Excludes the most: room VCPU:20" in said
    assert "VCPU: needs 20, free 16 of 16" in said
    assert said.index("node-1") < said.index("node-2")


def test_why_in_json_counts_each_condition(data: Path) -> None:
    query = "resources=VCPU:4&required=HW_CPU_X86_AVX2"
    told = json.loads(run("why", query, "--data", str(data), "--json").stdout)
    traits = next(found for found in told["conditions"] if found["kind"] == "required_traits")
    assert traits["excludes_alone"] == {"trees": 2, "providers": 2}
    assert told["trees_left"] == 1


def test_capacity_counts_per_aggregate(data: Path) -> None:
    told = json.loads(run("capacity", "resources=VCPU:4", "--data", str(data), "--json").stdout)
    assert told["total"] == 12
    assert told["by_aggregate"] == {EAST: 8, WEST: 4}


def test_capacity_takes_a_flavor(data: Path) -> None:
    flavor = "vcpus=4,ram=8192,trait:HW_CPU_X86_AVX2=required"
    said = run("capacity", "--flavor-like", flavor, "--data", str(data)).stdout
    assert "4 more fit, on 1 tree." in said


def test_a_cloud_is_found_by_name_like_in_any_client(data: Path) -> None:
    ran = run(
        *("capacity", "resources=VCPU:4", "--json"),
        OS_CLIENT_CONFIG_FILE=str(data / "clouds.yaml"),
        OS_CLOUD="moorage",
    )
    assert json.loads(ran.stdout)["total"] == 12


@pytest.mark.parametrize("query", ["resources=CUSTOM_NOPE:4", "resources=VCPU:x", "nonsense=1"])
def test_a_refusal_is_told_in_a_sentence(data: Path, query: str) -> None:
    ran = run("capacity", query, "--data", str(data))
    assert ran.returncode == 1
    assert "Placement answered 400" in ran.stderr
    assert "Traceback" not in ran.stderr
    assert "Failed validating" not in ran.stderr  # nobody asked for the schema


def test_without_a_cloud_it_says_what_is_missing(tmp_path: Path) -> None:
    ran = run("why", "resources=VCPU:4", "--data", str(tmp_path))
    assert ran.returncode == 1
    assert "no cloud is named" in ran.stderr
