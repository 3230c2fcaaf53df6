"""Console output and diagnostics: the API asks the agent of a server, and never waits longer than it says."""

from __future__ import annotations

import threading
import time
from typing import Any

import pytest

from moorage.agent import questions
from moorage.drivers import parts
from moorage.drivers.fake.driver import FakeDriver
from moorage.drivers.parts import ServerCell, ServerTopology
from tests.functional.consoles.conftest import Make, sentence

PATH = "/servers/{}/diagnostics"


def test_console_output_as_a_whole_and_its_last_lines(guests: Make) -> None:
    cloud = guests()
    uuid = cloud.running()
    whole = cloud.output(uuid)
    assert uuid in whole
    assert cloud.output(uuid, length=-1) == cloud.output(uuid, length=None) == whole
    assert cloud.output(uuid, length="3") == "\n".join(whole.split("\n")[-3:])
    assert cloud.output(uuid, length=0) == ""
    assert cloud.output(uuid, length=10_000) == whole


def test_a_senseless_length_is_refused(guests: Make) -> None:
    cloud = guests()
    uuid = cloud.running()
    senseless: list[Any] = [{"length": -2}, {"length": "x"}, {"length": 1.5}, {"size": 1}, None]
    for argument in senseless:
        assert cloud.act(uuid, "os-getConsoleOutput", argument).status_code == 400


def test_a_server_that_is_being_built_is_not_ready(guests: Make) -> None:
    cloud = guests(**{"fake.faults": {"spawn": "hang"}, "fake.hang_seconds": 60})
    [uuid] = cloud.yard.boot()
    assert sentence(cloud.act(uuid, "os-getConsoleOutput", {}), 409) == f"Instance {uuid} is not ready"
    assert sentence(cloud.call("GET", PATH.format(uuid)), 409) == f"Instance {uuid} is not ready"
    cloud.yard.delete(uuid)
    cloud.yard.await_gone([uuid])


def test_diagnostics_have_one_form_since_2_48_and_were_flat_before(guests: Make) -> None:
    cloud = guests()
    uuid = cloud.running()
    standard = cloud.call("GET", PATH.format(uuid), version="2.48").json
    assert (standard["state"], standard["num_nics"]) == ("running", 1)
    assert standard["cpu_details"] == [{"id": 0, "time": 0, "utilisation": 0}]
    assert standard["nic_details"][0].keys() >= {"mac_address", "rx_octets", "tx_rate"}
    assert standard["disk_details"][0].keys() == {
        *("read_bytes", "read_requests", "write_bytes", "write_requests", "errors_count")
    }
    assert standard["memory_details"] == {"maximum": 512, "used": 0}
    flat = cloud.call("GET", PATH.format(uuid), version="2.47").json
    assert flat.keys() >= {"cpu0_time", "memory", "vda_read", "vda_write_req", "vnet0_rx", "vnet0_tx_drop"}


def test_a_stopped_server_has_no_diagnostics(guests: Make) -> None:
    cloud = guests()
    uuid = cloud.running()
    assert cloud.act(uuid, "os-stop", None).status_code == 202
    cloud.yard.await_status([uuid], "SHUTOFF")
    told = sentence(cloud.call("GET", PATH.format(uuid)), 409)
    assert told == f"Cannot 'get_diagnostics' instance {uuid} while it is in power state shutdown"
    assert uuid in cloud.output(uuid)


def test_a_host_that_is_down_is_a_conflict(guests: Make) -> None:
    cloud = guests()
    uuid = cloud.running()
    down = {"host": cloud.host(uuid), "binary": "nova-compute", "forced_down": True}
    assert cloud.call("PUT", "/os-services/force-down", down, version="2.11").status_code == 200
    told = sentence(cloud.act(uuid, "os-getConsoleOutput", {}), 409)
    assert told == "Service is unavailable at this time."


def test_a_machine_that_hangs_costs_a_bounded_time_and_nobody_else(guests: Make) -> None:
    cloud = guests(**{"compute.question_timeout": 1, "fake.hang_seconds": 60})
    hanging = cloud.running(metadata={"fake:console_log": "hang"})
    lively = cloud.running()
    asked = [
        threading.Thread(target=cloud.act, args=(hanging, "os-getConsoleOutput", {}))
        for _ in range(questions._MOST_AT_ONCE - 1)
    ]
    for thread in asked:
        thread.start()
    assert lively in cloud.output(lively)
    for thread in asked:
        thread.join(10)
    began = time.monotonic()
    assert "does not answer" in sentence(cloud.act(hanging, "os-getConsoleOutput", {}), 503)
    assert time.monotonic() - began < 5
    assert "too much at once" in sentence(cloud.act(lively, "os-getConsoleOutput", {}), 503)
    cloud.yard.delete(hanging)  # which ends what hangs
    cloud.yard.await_gone([hanging])
    assert lively in cloud.output(lively)


def test_a_driver_that_can_not_is_told_as_the_reference_does(
    guests: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(parts, "of", lambda driver: frozenset({"rebuild"}))
    cloud = guests()
    uuid = cloud.running()
    told = sentence(cloud.act(uuid, "os-getConsoleOutput", {}), 501)
    assert told == "The requested functionality is not supported."


def test_administrators_see_where_on_the_host_the_cells_of_a_server_are(
    guests: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    cell = ServerCell([0, 1], 512, 3, {0: 14, 1: 15}, [[0, 1]])
    place = ServerTopology([cell], 2048)
    monkeypatch.setattr(FakeDriver, "topology", lambda *_: place, raising=False)
    monkeypatch.setitem(parts.PARTS, "place", FakeDriver)
    monkeypatch.setattr(questions, "require", lambda driver, part: driver)
    cloud = guests()
    path = f"/servers/{cloud.running()}/topology"
    shown = {"vcpu_set": [0, 1], "siblings": [[0, 1]], "memory_mb": 512}
    where = {"host_node": 3, "cpu_pinning": {"0": 14, "1": 15}}
    assert cloud.call("GET", path).json == {"nodes": [{**shown, **where}], "pagesize_kb": 2048}
    headers = {"x-auth-token": "bob:admin", "x-roles": "reader"}
    answer = cloud.yard.api.simulate_get(f"/v2.1{path}", headers=headers)
    assert answer.json == {"nodes": [shown], "pagesize_kb": 2048}


def test_a_server_without_numa_cells_has_an_empty_topology(guests: Make) -> None:
    cloud = guests()
    path = f"/servers/{cloud.running()}/topology"
    assert cloud.call("GET", path, version="2.78").json == {"nodes": [], "pagesize_kb": None}
    assert cloud.call("GET", path, version="2.77").status_code == 404
