"""Whatever Neutron answers, or does not, at each call of a boot or a delete: a clear fault or another try, no
port left behind, nothing stuck.

On SQLite alone: the database has no part in it.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from moorage.bus.versions import AgentVersion
from moorage.conductor.engine import runner
from moorage.conductor.ports.late_ports import LatePorts
from moorage.core import uuids
from moorage.network.contract import NetworkError, NetworkUnavailableError, PortRequest, ServerPorts
from moorage.network.neutron import NeutronNetwork
from tests.support import stage_neutron
from tests.support.crossing import PROJECT, Crossing
from tests.support.faulty_proxy import Fault, FaultyProxy
from tests.support.processes import wait_until
from tests.support.stage_neutron import StageNeutron

pytestmark = pytest.mark.usefixtures("soon", "nothing_is_left")

HANG = "it hangs"
OUTAGES = {
    "it fails": Fault(500, b'{"NeutronError": {"type": "HTTPInternalServerError", "message": "it broke"}}'),
    "it is away": Fault(503, b"<html>no server is available</html>"),
    HANG: Fault(works=True, delay=1.5),
    "it hangs up": Fault(),
    "its answer is lost": Fault(works=True),
    "its answer is cut": Fault(cut=True),
    "it is somebody else": Fault(200, b"<html>Welcome!</html>"),
}
BOOT_CALLS = [("GET", "/ports"), ("GET", "/networks/"), ("GET", "/subnets"), ("POST", "/ports")]
BIND_CALLS = [("PUT", "/ports/")]
DELETE_CALLS = [("GET", "/ports"), ("DELETE", "/ports/")]


def refusal(status: int, kind: str, **fields: object) -> Fault:
    told = {"type": kind, "message": f"Neutron says {kind}", "detail": ""}
    return replace(Fault(status, json.dumps({"NeutronError": told}).encode()), **fields)  # type: ignore[arg-type]


@dataclass
class Patience:
    """How long those wait for Neutron who connect from now on."""

    seconds: float = 30.0


@pytest.fixture(scope="module")
def patience() -> Patience:
    return Patience()


@pytest.fixture(scope="module")
def cloud(
    stage: StageNeutron,
    proxy: FaultyProxy,
    patience: Patience,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Crossing]:
    """Two hosts. The API reaches Neutron at all times: it is not what these tests are about."""
    directory: Path = tmp_path_factory.mktemp("faults")

    def network(who: str) -> NeutronNetwork:
        port = proxy.target if who == "api" else proxy.port
        return stage_neutron.network_at(port, who, patience.seconds)

    crossing = Crossing(f"sqlite:///{directory / 'moorage.sqlite'}", directory / "agents", network)
    crossing.start_conductor()
    for host in ("host-1", "host-2"):
        crossing.start_agent(host)
    yield crossing
    crossing.stop()


@pytest.fixture
def outage(
    request: pytest.FixtureRequest, cloud: Crossing, patience: Patience, nothing_is_left: None
) -> Iterator[Fault]:
    """One of them; only the one that hangs is worth a short patience."""
    patience.seconds = 1.0 if request.param == HANG else 30.0
    cloud.start_conductor()
    yield OUTAGES[request.param]
    patience.seconds = 30.0
    cloud.start_conductor()


every_outage = pytest.mark.parametrize("outage", OUTAGES, indirect=True)


@pytest.fixture
def impatient(nothing_is_left: None) -> Iterator[None]:
    """Minutes of tries become seconds."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(runner, "_MOST_TRIES", 1)
        yield


def boot_under(cloud: Crossing, proxy: FaultyProxy, fault: Fault) -> Any:
    """What becomes of a server that meets a fault; a new conductor has to ask Neutron everything."""
    cloud.start_conductor()
    proxy.fail(fault)
    proxy.requests.clear()
    proxy.answered.clear()
    server = cloud.settled(cloud.boot())
    assert proxy.struck
    return server


def at(call: tuple[str, str], fault: Fault, times: int = 1) -> Fault:
    method, path = call
    return replace(fault, method=method, path=path, times=times)


def sweep_what_came_late(cloud: Crossing, proxy: FaultyProxy, uuid: str) -> None:
    """Once Neutron has all that hung: as conductors do every few minutes."""

    def made(calls: Sequence[tuple[Any, ...]]) -> int:
        return sum(method == "POST" and path.endswith("/ports") for method, path, *_ in calls)

    wait_until(lambda: made(proxy.answered) >= made(proxy.requests), "what hung", 10)
    network = stage_neutron.network_at(proxy.target, "conductor")
    LatePorts(cloud.database, network).sweep([uuid])


# ---------------------------------------------------------------- Neutron is not there for a moment


@every_outage
def test_an_outage_at_any_call_is_waited_out(
    cloud: Crossing, stage: StageNeutron, proxy: FaultyProxy, outage: Fault
) -> None:
    for call in BOOT_CALLS + BIND_CALLS:
        server = boot_under(cloud, proxy, at(call, outage))
        assert server["status"] == "ACTIVE", (call, server.get("fault"))
        if outage.delay:
            sweep_what_came_late(cloud, proxy, server["id"])
        (port,) = stage.ports_of(server["id"])
        assert port["binding:host_id"] == server["OS-EXT-SRV-ATTR:host"]
        assert [shown["addr"] for shown in server["addresses"]["stage"]] == [
            fixed["ip_address"] for fixed in port["fixed_ips"]
        ]
    servers = [server["id"] for server in cloud.get("/v2.1/servers")["servers"]]
    for call, uuid in zip(DELETE_CALLS, servers, strict=False):
        proxy.fail(at(call, outage))
        cloud.delete(uuid)
        assert proxy.struck
        assert stage.ports_of(uuid) == []


@pytest.mark.parametrize("call", BOOT_CALLS + BIND_CALLS)
def test_an_outage_that_does_not_end_is_told(
    cloud: Crossing, stage: StageNeutron, proxy: FaultyProxy, impatient: None, call: tuple[str, str]
) -> None:
    server = boot_under(cloud, proxy, at(call, OUTAGES["it is away"], times=1000))
    assert server["status"] == "ERROR"
    assert "Neutron" in server["fault"]["message"]


@pytest.mark.parametrize("call", DELETE_CALLS)
def test_a_delete_that_can_not_be_done_is_told_and_can_be_asked_for_again(
    cloud: Crossing, stage: StageNeutron, proxy: FaultyProxy, impatient: None, call: tuple[str, str]
) -> None:
    uuid = cloud.booted()["id"]
    proxy.fail(at(call, OUTAGES["it is away"], times=1000))
    assert cloud.api.simulate_delete(f"/v2.1/servers/{uuid}").status_code == 204
    server = cloud.settled(uuid)
    assert (server["status"], server["OS-EXT-STS:task_state"]) == ("ERROR", None)
    assert "Neutron" in server["fault"]["message"]


# ---------------------------------------------------------------- Neutron says no


@pytest.mark.parametrize(
    ("fault", "words"),
    [
        (refusal(409, "OverQuota"), "Maximum number of ports exceeded"),
        (refusal(409, "IpAddressGenerationFailure"), "No more IP addresses are available"),
        (refusal(404, "NetworkNotFound"), "A network could not be found"),
        (refusal(403, "PolicyNotAuthorized"), "Neutron does not allow it"),
        (refusal(400, "BadRequest"), "Neutron refuses"),
    ],
)
def test_a_port_that_can_not_be_made(
    cloud: Crossing, stage: StageNeutron, proxy: FaultyProxy, fault: Fault, words: str
) -> None:
    server = boot_under(cloud, proxy, at(("POST", "/ports"), fault))
    assert server["status"] == "ERROR"
    assert words in server["fault"]["message"]
    assert stage.ports_of(server["id"]) == []


def test_of_several_ports_none_is_left_if_the_last_can_not_be_made(
    cloud: Crossing, stage: StageNeutron, proxy: FaultyProxy
) -> None:
    proxy.fail(refusal(409, "OverQuota", method="POST", path="/ports", after=2))
    server = cloud.settled(cloud.boot([{"uuid": stage_neutron.NETWORK}] * 3))
    assert server["status"] == "ERROR"
    assert stage.ports_of(server["id"]) == []


@pytest.mark.parametrize("call", [("GET", "/networks/"), ("GET", "/subnets")])
@pytest.mark.parametrize(("status", "kind"), [(403, "PolicyNotAuthorized"), (404, "NetworkNotFound")])
def test_a_network_that_can_not_be_looked_at(
    cloud: Crossing,
    stage: StageNeutron,
    proxy: FaultyProxy,
    call: tuple[str, str],
    status: int,
    kind: str,
) -> None:
    server = boot_under(cloud, proxy, at(call, refusal(status, kind)))
    assert server["status"] == "ERROR"
    assert f"Neutron says {kind}" in server["fault"]["message"]
    assert stage.ports_of(server["id"]) == []


def test_ports_that_may_not_be_listed(
    cloud: Crossing, stage: StageNeutron, proxy: FaultyProxy, impatient: None
) -> None:
    """An operator has to mend that, so it is tried again for a while."""
    fault = at(("GET", "/ports"), refusal(403, "PolicyNotAuthorized"), times=1000)
    server = boot_under(cloud, proxy, fault)
    assert server["status"] == "ERROR"
    assert "PolicyNotAuthorized" in server["fault"]["message"]


@pytest.mark.parametrize(
    "fault",
    [refusal(409, "IpAddressGenerationFailure"), refusal(500, "PortBindingError")],
    ids=["no address", "no binding"],
)
def test_a_host_where_a_port_can_not_be_bound_is_left_with_the_port_kept(
    cloud: Crossing, stage: StageNeutron, proxy: FaultyProxy, fault: Fault
) -> None:
    proxy.requests.clear()
    server = boot_under(cloud, proxy, at(BIND_CALLS[0], fault))
    assert server["status"] == "ACTIVE"
    (port,) = stage.ports_of(server["id"])
    assert port["binding:host_id"] == server["OS-EXT-SRV-ATTR:host"]
    methods = [method for method, _ in proxy.requests]
    assert (methods.count("POST"), methods.count("DELETE")) == (1, 0)


def test_a_port_that_can_not_be_tagged_yet_or_at_all(
    cloud: Crossing, stage: StageNeutron, proxy: FaultyProxy, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Tags are for people who look for ports: no reason to fail a boot."""
    monkeypatch.setattr(stage, "heeds_tags", False)
    call = ("PUT", "/tags")
    tagged = boot_under(cloud, proxy, at(call, OUTAGES["its answer is cut"]))
    plain = boot_under(cloud, proxy, at(call, refusal(403, "PolicyNotAuthorized")))
    assert (tagged["status"], plain["status"]) == ("ACTIVE", "ACTIVE")
    (port,) = stage.ports_of(tagged["id"])
    assert f"moorage-server={tagged['id']}" in port["tags"]
    assert len(stage.ports_of(plain["id"])) == 1


@pytest.mark.parametrize(
    ("fault", "words"),
    [
        (refusal(404, "PortNotFound"), "A port could not be found"),
        (refusal(403, "PolicyNotAuthorized"), "Neutron does not allow it"),
        (refusal(409, "OverQuota"), "Maximum number of ports exceeded"),
    ],
)
def test_a_binding_that_no_host_can_have(
    cloud: Crossing, stage: StageNeutron, proxy: FaultyProxy, fault: Fault, words: str
) -> None:
    server = boot_under(cloud, proxy, at(BIND_CALLS[0], fault))
    assert server["status"] == "ERROR"
    assert words in server["fault"]["message"]
    assert stage.ports_of(server["id"]) == []


@pytest.mark.parametrize(("status", "kind"), [(403, "PolicyNotAuthorized"), (409, "PortInUse")])
def test_a_port_that_may_not_be_deleted_yet(
    cloud: Crossing, stage: StageNeutron, proxy: FaultyProxy, status: int, kind: str
) -> None:
    uuid = cloud.booted()["id"]
    proxy.fail(at(("DELETE", "/ports/"), refusal(status, kind), times=2))
    cloud.delete(uuid)
    assert proxy.struck == 2
    assert stage.ports_of(uuid) == []


def test_a_port_that_somebody_else_deletes_is_not_missed(
    cloud: Crossing, stage: StageNeutron, proxy: FaultyProxy
) -> None:
    uuid = cloud.booted()["id"]
    proxy.fail(at(("DELETE", "/ports/"), refusal(404, "PortNotFound")))
    cloud.delete(uuid)
    assert proxy.struck
    stage.ports.clear()  # it was there all along, whatever was said


def test_faults_while_addresses_are_counted(
    stage: StageNeutron, proxy: FaultyProxy, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of a routed network: phase 1 is done again, and finds the port that it made."""
    monkeypatch.setattr(stage, "routed", True)
    call, uuid = ("GET", "/network-ip-availabilities"), uuids.generate()
    order = PortRequest(uuid, PROJECT, "s", [{"uuid": stage_neutron.NETWORK}])
    network = stage_neutron.network_at(proxy.port, "conductor", timeout=30.0)
    hasty = stage_neutron.network_at(proxy.port, "conductor", timeout=1.0)
    for name, outage in OUTAGES.items():
        proxy.fail(at(call, outage))
        with pytest.raises(NetworkUnavailableError):
            (hasty if name == HANG else network).prepare([order])
    proxy.fail(at(call, refusal(403, "PolicyNotAuthorized")))
    (refused,) = network.prepare([order])
    assert isinstance(refused, NetworkError)
    assert "Neutron does not allow it" in str(refused)
    proxy.fail(at(call, refusal(404, "HTTPNotFound")))  # this Neutron counts none: there may be some
    (ports,) = network.prepare([order])
    assert isinstance(ports, list)
    assert [(port.deferred, port.needs.segments) for port in ports] == [(True, [stage_neutron.SEGMENT])]
    assert [port["id"] for port in stage.ports_of(uuid)] == [port.id for port in ports]
    network.release([ServerPorts(uuid, ports)])


# ---------------------------------------------------------------- ports that users bring


@every_outage
def test_an_outage_around_a_brought_port(
    cloud: Crossing, stage: StageNeutron, proxy: FaultyProxy, outage: Fault
) -> None:
    mine = stage.add_port(PROJECT)
    before = dict(stage.ports[mine])
    for after in range(2):  # taken, then bound
        proxy.fail(replace(at(("PUT", "/ports/"), outage), after=after))
        server = cloud.settled(cloud.boot([{"port": mine}]))
        assert server["status"] == "ACTIVE", server.get("fault")
        assert [port["id"] for port in stage.ports_of(server["id"])] == [mine]
        assert proxy.struck
        proxy.fail(at(("PUT", "/ports/"), outage))
        cloud.delete(server["id"])
        assert proxy.struck
        assert {**stage.ports[mine], "revision_number": 1} == before
    del stage.ports[mine]


def test_a_brought_port_that_somebody_changes_meanwhile(
    cloud: Crossing, stage: StageNeutron, proxy: FaultyProxy
) -> None:
    mine = stage.add_port(PROJECT)
    proxy.fail(at(("PUT", "/ports/"), refusal(412, "RevisionNumberConstraintFailed")))
    assert cloud.settled(cloud.boot([{"port": mine}]))["status"] == "ACTIVE"
    servers = cloud.get("/v2.1/servers")["servers"]
    cloud.delete(*(server["id"] for server in servers))
    proxy.fail(at(("PUT", "/ports/"), refusal(412, "RevisionNumberConstraintFailed"), times=3))
    failed = cloud.settled(cloud.boot([{"port": mine}]))
    assert failed["status"] == "ERROR"
    assert "being changed by somebody else" in failed["fault"]["message"]
    assert stage.ports[mine]["device_id"] == ""
    del stage.ports[mine]


# ---------------------------------------------------------------- where agents make the ports


def test_faults_where_ports_are_made_after_scheduling(
    cloud: Crossing, stage: StageNeutron, proxy: FaultyProxy
) -> None:
    """The agents are old, and have no network: the conductor does both phases once the host is known."""
    for host in ("host-1", "host-2"):
        cloud.start_agent(host, AgentVersion.SHARED_NODES, credentials=False)
    try:
        for call in (("POST", "/ports"), ("PUT", "/ports/")):
            server = boot_under(cloud, proxy, at(call, OUTAGES["it is away"]))
            assert server["status"] == "ACTIVE", (call, server.get("fault"))
            (port,) = stage.ports_of(server["id"])
            assert port["binding:host_id"] == server["OS-EXT-SRV-ATTR:host"]
            assert len(server["addresses"]["stage"]) == 1
        quota = boot_under(cloud, proxy, at(("POST", "/ports"), refusal(409, "OverQuota")))
        assert quota["status"] == "ERROR"
        assert "Maximum number of ports exceeded" in quota["fault"]["message"]
    finally:
        for host in ("host-1", "host-2"):
            cloud.start_agent(host)


@pytest.fixture
def old_agents(cloud: Crossing) -> Iterator[None]:
    for host in ("host-1", "host-2"):
        cloud.start_agent(host, AgentVersion.SHARED_NODES)
    yield
    for host in ("host-1", "host-2"):
        cloud.start_agent(host)


def test_faults_where_agents_make_and_bind_ports(
    cloud: Crossing, stage: StageNeutron, proxy: FaultyProxy, old_agents: None
) -> None:
    for call in (("POST", "/ports"), ("PUT", "/ports/")):
        for outage in ("it is away", "its answer is lost", "its answer is cut"):
            server = boot_under(cloud, proxy, at(call, OUTAGES[outage]))
            assert server["status"] == "ACTIVE", (call, outage, server.get("fault"))
            assert len(stage.ports_of(server["id"])) == 1
    quota = boot_under(cloud, proxy, at(("POST", "/ports"), refusal(409, "OverQuota")))
    assert quota["status"] == "ERROR"
    assert "Maximum number of ports exceeded" in quota["fault"]["message"]
    assert stage.ports_of(quota["id"]) == []
    away = boot_under(cloud, proxy, at(("PUT", "/ports/"), OUTAGES["it is away"], times=1000))
    assert away["status"] == "ERROR"
    assert "Neutron" in away["fault"]["message"]
    assert stage.ports_of(away["id"]) == []
