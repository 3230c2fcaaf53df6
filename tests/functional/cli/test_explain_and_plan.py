"""`moorage explain`, `plan`, `host`, `rebalance` and `ops`, asked of a running cloud."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import requests
from typer.testing import CliRunner, Result

from moorage.cli import main
from moorage.cli.embedded import credentials
from moorage.cli.embedded.credentials import Endpoints
from tests.support.processes import free_port, start_service, wait_until

MOORAGE = Path(sys.executable).parent / "moorage"
IMAGE = "cirros-0.6.3-x86_64-disk"
ABSENT = "00000000-0000-4000-8000-000000000000"


class Cloud:
    def __init__(self, data: Path, compute: str) -> None:
        self.data = data
        self._compute = compute
        self._login = ("admin", (data / "password").read_text().strip())

    def call(self, method: str, path: str, **options: Any) -> Any:
        headers = {"OpenStack-API-Version": "compute 2.96"}
        url = f"{self._compute}{path}"
        answer = requests.request(
            method, url, auth=self._login, headers=headers, timeout=20, allow_redirects=True, **options
        )
        answer.raise_for_status()
        return answer.json() if answer.content else None

    def image(self) -> str:
        images = self.call("GET", "/image/v2/images")["images"]
        return str(next(found["id"] for found in images if found["name"] == IMAGE))

    def hosts_left(self) -> int:
        """How many hosts a server could have now."""
        asked = {"plan": {"flavorRef": "1", "imageRef": self.image()}}
        (server,) = self.call("POST", "/v2.1/moorage-plan", json=asked)["plan"]["servers"]
        return int(server["trace"]["left"])

    def boot(self, name: str, status: str, **fields: Any) -> str:
        server = {"name": name, "flavorRef": "1", "imageRef": self.image(), "networks": "auto", **fields}
        uuid = self.call("POST", "/v2.1/servers", json={"server": server})["server"]["id"]
        shown = f"/v2.1/servers/{uuid}"
        wait_until(lambda: self.call("GET", shown)["server"]["status"] == status, f"{name} {status}", 30)
        return str(uuid)

    def clear(self) -> None:
        """Delete what other tests have left."""
        path = "/v2.1/servers?all_tenants=1"
        for server in self.call("GET", path)["servers"]:
            self.call("DELETE", f"/v2.1/servers/{server['id']}")
        wait_until(lambda: not self.call("GET", path)["servers"], "an empty cloud", 60)

    def set_hosts(self, status: str, *hosts: str) -> None:
        for service in self.call("GET", "/v2.1/os-services?binary=nova-compute")["services"]:
            if service["host"] in hosts:
                self.call("PUT", f"/v2.1/os-services/{service['id']}", json={"status": status})

    def run(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        return run(self.data, *arguments)


def run(data: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    clean = {name: value for name, value in os.environ.items() if not name.startswith("OS_")}
    return subprocess.run(
        [str(MOORAGE), *arguments, "--data", str(data)],
        capture_output=True,
        text=True,
        check=False,
        env=clean,
    )


@pytest.fixture(scope="module")
def cloud(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cloud]:
    directory = tmp_path_factory.mktemp("explain")
    data, compute = directory / "data", free_port()
    ports = ["--placement-port", str(free_port()), "--compute-port", str(compute)]
    command: list[str | Path] = [MOORAGE, "up", "--data", data, *ports, "--hosts", "3"]
    with start_service(command, compute, directory / "up.log") as service:
        running = Cloud(data, service.url)
        wait_until(lambda: running.hosts_left() == 3, "the hosts", 30)
        yield running


def test_a_server_is_explained_by_its_name_to_the_end_of_its_spawn(cloud: Cloud) -> None:
    cloud.boot("fine.(one)", "ACTIVE")
    said = cloud.run("explain", "fine.(one)")
    assert said.returncode == 0, said.stderr
    assert "claim done, spawn done" in said.stdout


def test_each_host_that_failed_is_in_the_story(cloud: Cloud) -> None:
    uuid = cloud.boot("unlucky", "ERROR", metadata={"fake:spawn": "fail_here"})
    told = json.loads(cloud.run("explain", uuid, "--json").stdout)
    ends = [decision["trace"]["attempts"][-1] for decision in told["traces"]]
    assert [(end["step"], end["outcome"]) for end in ends] == [("spawn", "failed")] * 3
    assert len({end["place"]["host"] for end in ends}) == 3
    assert [decision["attempt"] for decision in told["traces"]] == [1, 2, 3]
    assert cloud.run("explain", "unlucky").stdout.count("spawn failed (the fake driver was told") == 3


def test_attempts_are_counted_from_1_within_each_operation(cloud: Cloud) -> None:
    uuid = cloud.boot("mover", "ACTIVE")
    path = f"/v2.1/servers/{uuid}"
    for action, status in (
        ({"os-stop": None}, "SHUTOFF"),
        ({"migrate": None}, "VERIFY_RESIZE"),
        ({"confirmResize": None}, "SHUTOFF"),
        ({"migrate": None}, "VERIFY_RESIZE"),
    ):
        cloud.call("POST", f"{path}/action", json=action)
        wait_until(lambda: cloud.call("GET", path)["server"]["status"] == status, status, 30)  # noqa: B023
    said = cloud.run("explain", "mover").stdout
    heads = [line.split(", ", 1)[1] for line in said.splitlines() if line.startswith("Decision of ")]
    assert heads == ["build, attempt 1:", "cold move, attempt 1:", "cold move, attempt 1:"]


def test_a_deleted_server_is_explained_by_its_name(cloud: Cloud) -> None:
    uuid = cloud.boot("gone", "ACTIVE")
    cloud.call("DELETE", f"/v2.1/servers/{uuid}")
    listed = "/v2.1/servers?name=gone"
    wait_until(lambda: not cloud.call("GET", listed)["servers"], "the server to go", 30)
    assert f"Server {uuid}" in cloud.run("explain", "gone").stdout


def test_a_name_that_several_have_lists_them(cloud: Cloud) -> None:
    both = {cloud.boot("twin", "ACTIVE"), cloud.boot("twin", "ACTIVE")}
    cloud.boot("twins", "ACTIVE")
    said = cloud.run("explain", "twin")
    assert said.returncode == 1
    assert "2 servers are called twin" in said.stderr
    assert all(uuid in said.stderr for uuid in both)


def test_a_name_that_nobody_has_is_told(cloud: Cloud) -> None:
    said = cloud.run("explain", "nobody")
    assert (said.returncode, said.stderr) == (1, "error: there is no server nobody\n")


def test_a_plan_is_told_line_by_line(cloud: Cloud) -> None:
    said = cloud.run("plan", "--flavor", "m1.large", "--image", IMAGE, "--count", "200")
    assert said.returncode == 0, said.stderr
    placed = int(said.stdout.split()[0])
    assert 0 < placed <= 96
    assert said.stdout.startswith(f"{placed} of 200 would get a host.\n1. fake-")
    assert (
        f"{placed + 1} to 200. No valid host was found: of 3 hosts with enough room, 3 were filled"
        in said.stdout
    )
    assert "By host: " in said.stdout


def test_a_plan_in_json_has_weights_and_alternates(cloud: Cloud) -> None:
    said = cloud.run("plan", "--flavor", "1", "--image", IMAGE, "--host", "fake-2", "--json")
    (server,) = json.loads(said.stdout)["plan"]["servers"]
    assert server["place"]["host"] == "fake-2"
    assert server["trace"]["ranking"][0]["shares"]["cpu"] > 0
    said = cloud.run("plan", "--flavor", "1", "--image", IMAGE, "--json")
    (server,) = json.loads(said.stdout)["plan"]["servers"]
    assert len(server["trace"]["alternates"]) == 2


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (("--flavor", "none", "--image", IMAGE), "there is no flavor none"),
        (("--flavor", "1", "--image", "none"), "there is no image none"),
        (("--flavor", "1", "--image", IMAGE, "--hint", "group"), "a hint is KEY=VALUE"),
        (("--flavor", "1", "--image", IMAGE, "--zone", "mars"), "Compute answered 400"),
    ],
)
def test_a_plan_that_makes_no_sense_is_told(cloud: Cloud, arguments: tuple[str, ...], sentence: str) -> None:
    said = cloud.run("plan", *arguments)
    assert said.returncode == 1
    assert sentence in said.stderr
    assert "Traceback" not in said.stderr


def test_a_host_is_drained_and_let_back(cloud: Cloud) -> None:
    """It comes after what counts hosts, and leaves three of them."""
    cloud.clear()
    uuid = cloud.boot("drained", "ACTIVE", availability_zone="nova:fake-2")
    suspended = cloud.boot("asleep", "ACTIVE", availability_zone="nova:fake-2")
    cloud.call("POST", f"/v2.1/servers/{suspended}/action", json={"suspend": None})
    path = f"/v2.1/servers/{suspended}"
    wait_until(lambda: cloud.call("GET", path)["server"]["status"] == "SUSPENDED", "the suspension", 30)
    plan = cloud.run("host", "drain", "fake-2", "--dry-run")
    assert f"{suspended} (asleep, SUSPENDED) stays: A server that is SUSPENDED can't be moved." in plan.stdout
    assert f"{uuid} (drained, ACTIVE) → fake-" in plan.stdout
    done = cloud.run("host", "drain", "fake-2", "--deadline", "10m")
    assert done.returncode == 2, done.stderr
    assert f"{suspended} staying: A server that is SUSPENDED can't be moved." in done.stdout
    assert cloud.call("GET", f"/v2.1/servers/{uuid}")["server"]["OS-EXT-SRV-ATTR:host"] != "fake-2"
    status = json.loads(cloud.run("host", "status", "fake-2", "--json").stdout)
    assert (status["state"], status["counts"]["staying"]) == ("finished", 1)
    assert "fake-2 takes servers again." in cloud.run("host", "undrain", "fake-2").stdout
    wait_until(lambda: cloud.hosts_left() == 3, "the host", 30)
    for arguments, sentence in (
        (("drain", "fake-2", "--live", "--cold"), "exclude each other"),
        (("drain", "fake-2", "--deadline", "soon"), "a deadline is a number"),
        (("drain", "nowhere"), "Host nowhere could not be found"),
        (("status", "nowhere"), "nowhere was never drained"),
        (("evacuate", "fake-2"), "is up: it can be drained, not evacuated"),
    ):
        refused = cloud.run("host", *arguments)
        assert refused.returncode == 1
        assert sentence in refused.stderr


def rebalance(cloud: Cloud, *arguments: str) -> Result:
    return CliRunner().invoke(main.commands, ["rebalance", *arguments, "--data", str(cloud.data)])


def test_hosts_are_rebalanced(cloud: Cloud) -> None:
    """It leaves three hosts, too."""
    cloud.clear()
    cloud.set_hosts("disabled", "fake-2", "fake-3")
    uuids = {cloud.boot(f"web-{number}", "ACTIVE") for number in range(3)}
    cloud.set_hosts("enabled", "fake-2", "fake-3")
    wait_until(lambda: cloud.hosts_left() == 3, "the hosts", 30)
    proposed = rebalance(cloud, "--most", "1").output
    assert "3 hosts, 3 servers, of which 3 can be moved." in proposed
    assert ", m1.tiny): fake-1 → fake-" in proposed
    assert "1 move would win " in proposed
    assert "nothing was ever rebalanced" in str(rebalance(cloud, "status").exception)
    done = rebalance(cloud, "--apply", "--deadline", "10m")
    assert done.exit_code == 0, done.output
    assert "(spread, auto) is finished: 2 moved" in done.output
    shown = [cloud.call("GET", f"/v2.1/servers/{uuid}")["server"] for uuid in uuids]
    assert {server["OS-EXT-SRV-ATTR:host"] for server in shown} == {"fake-1", "fake-2", "fake-3"}
    assert "Already as even as moves can make it." in rebalance(cloud).output
    status = json.loads(rebalance(cloud, "status", "--json").output)
    assert (status["goal"], status["state"], status["counts"]["moved"]) == ("spread", "finished", 2)
    freed = rebalance(cloud, "--goal", "free")
    assert "2 moves would free 2 hosts." in freed.output
    assert json.loads(rebalance(cloud, "--json").output)["moves"] == []
    assert "is over" in str(rebalance(cloud, "cancel").exception)
    for arguments, sentence in (
        (("--live", "--cold"), "exclude each other"),
        (("--deadline", "soon"), "a deadline is a number"),
        (("--aggregate", "nowhere"), "Aggregate nowhere could not be found"),
    ):
        assert sentence in str(rebalance(cloud, *arguments).exception)


@pytest.mark.parametrize(
    "arguments", [("explain", "web"), ("plan", "--flavor", "m1.tiny", "--image", IMAGE), ("explain", ABSENT)]
)
def test_a_cloud_that_is_away_is_told_in_a_sentence(tmp_path: Path, arguments: tuple[str, ...]) -> None:
    nowhere = f"http://127.0.0.1:{free_port()}"
    endpoints = Endpoints(placement=nowhere, compute=nowhere)
    (tmp_path / "clouds.yaml").write_text(credentials.clouds_yaml(endpoints, None))
    done = run(tmp_path, *arguments)
    assert (done.returncode, done.stdout) == (1, "")
    assert "can't be reached" in done.stderr
    assert "Traceback" not in done.stderr


def ops(cloud: Cloud, *arguments: str) -> Result:
    """In this process: a new one spends most of its time on imports."""
    return CliRunner().invoke(main.commands, ["ops", *arguments, "--data", str(cloud.data)])


def test_a_slow_build_is_listed_shown_and_cancelled(cloud: Cloud) -> None:
    server: dict[str, Any] = {"name": "slow", "flavorRef": "1", "imageRef": cloud.image(), "networks": "auto"}
    server["metadata"] = {"fake:spawn": "delay=600"}
    uuid = cloud.call("POST", "/v2.1/servers", json={"server": server})["server"]["id"]
    path = f"/v2.1/servers/{uuid}"
    wait_until(lambda: cloud.call("GET", path)["server"]["OS-EXT-STS:task_state"] == "spawning", "it", 30)
    assert "waits for the agent of fake-" in ops(cloud, "list", "--kind", "build").output
    (found,) = json.loads(ops(cloud, "list", "--server", uuid, "--json").output)["operations"]
    shown = ops(cloud, "show", str(found["id"])).output
    assert "[spawned]" in shown
    assert found["request_id"] in shown
    assert re.search(rf"{uuid} has 1 VCPU 512 MEMORY_MB 1 DISK_GB of [0-9a-f-]{{36}}\n", shown), shown
    assert json.loads(ops(cloud, "list", "--older-than", "1h", "--json").output)["operations"] == []
    retried = ops(cloud, "retry", str(found["id"]))
    assert (retried.exit_code, retried.output) == (0, f"{found['id']} is tried now\n")
    cancelled = ops(cloud, "cancel", "--server", uuid, "--reason", "enough")
    assert (cancelled.exit_code, cancelled.output) == (0, f"{found['id']} is to be cancelled\n")
    wait_until(lambda: cloud.call("GET", path)["server"]["status"] == "ERROR", "the build to be given up", 30)
    assert cloud.call("GET", path)["server"]["fault"]["message"].endswith("enough")
    both = ops(cloud, "cancel", str(found["id"]), "999999", "--json")
    assert both.exit_code == 1
    refusals = [answer["refusal"] for answer in json.loads(both.output)]
    assert "has ended: failed" in refusals[0]
    assert "could not be found" in refusals[1]


@pytest.mark.parametrize("arguments", [("cancel",), ("retry", "1", "--stuck")])
def test_what_is_to_be_cancelled_has_to_be_chosen(cloud: Cloud, arguments: tuple[str, ...]) -> None:
    said = ops(cloud, *arguments)
    assert str(said.exception).startswith("name operations by their ids")
    assert ops(cloud, "retry", "--kind", "nothing").output == "no operations are chosen\n"


# ---------------------------------------------------------------- audit


def test_an_audit_of_a_cloud_that_agrees(cloud: Cloud) -> None:
    told = cloud.run("audit")
    assert (told.returncode, told.stdout, told.stderr) == (0, "0 differences.\n", "")
    some = cloud.run("audit", "--only", "quotas", "--only", "counters", "--json")
    assert json.loads(some.stdout)["audit"]["checks"] == ["quotas", "counters"]
    assert cloud.run("audit", "--only", "everything").returncode == 2
