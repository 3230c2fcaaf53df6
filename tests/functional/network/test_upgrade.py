"""Old and new agents side by side, in each step of an upgrade: who makes ports, and who binds them."""

from __future__ import annotations

import logging
from collections.abc import Callable

import pytest
from oslo_upgradecheck.upgradecheck import Code

from moorage.bus.versions import NEWEST, AgentVersion
from moorage.cli.status import Checks
from tests.support.crossing import PROJECT, Crossing
from tests.support.processes import wait_until
from tests.support.stage_neutron import NETWORK, StageNeutron

OLD = AgentVersion.SHARED_NODES
MIDDLE = AgentVersion.EARLY_PORTS
Make = Callable[..., Crossing]

AGENT, CONDUCTOR = "agent", "conductor"

STEPS = [
    pytest.param([OLD, OLD], True, AGENT, AGENT, id="two old agents"),
    pytest.param([OLD, NEWEST], True, AGENT, AGENT, id="an old and a new agent"),
    pytest.param([MIDDLE, NEWEST], True, CONDUCTOR, AGENT, id="all know early ports"),
    pytest.param([NEWEST, NEWEST], False, AGENT, AGENT, id="two new agents, no credentials"),
    pytest.param([NEWEST, NEWEST], True, CONDUCTOR, CONDUCTOR, id="all new"),
]


def fleet(crossing: Make, versions: list[int], *, credentials: bool = True) -> Crossing:
    cloud = crossing()
    cloud.start_conductor(credentials=credentials)
    for number, version in enumerate(versions, start=1):
        cloud.start_agent(f"host-{number}", version)
    return cloud


def host_of(server: dict[str, str]) -> str:
    return server["OS-EXT-SRV-ATTR:host"]


@pytest.mark.parametrize(("versions", "credentials", "makes", "binds"), STEPS)
def test_each_step_of_an_upgrade(
    crossing: Make, neutron: StageNeutron, versions: list[int], credentials: bool, makes: str, binds: str
) -> None:
    cloud = fleet(crossing, versions, credentials=credentials)
    servers = [cloud.booted() for _ in range(3)]
    hosts = {host_of(server) for server in servers}
    assert neutron.who("POST") == ({"conductor"} if makes == CONDUCTOR else hosts)
    assert neutron.who("PUT") == ({"conductor"} if binds == CONDUCTOR else hosts)
    for server in servers:
        (port,) = neutron.ports_of(server["id"])
        assert port["binding:host_id"] == host_of(server)
        (shown,) = server["addresses"]["stage"]
        assert shown["addr"] == port["fixed_ips"][0]["ip_address"]
        assert shown["OS-EXT-IPS-MAC:mac_addr"] == port["mac_address"]
    cloud.delete(*(server["id"] for server in servers))
    assert neutron.owned() == []
    assert cloud.holders() == set()
    deleted_by = neutron.who("DELETE")
    assert deleted_by == {"conductor"} if credentials else deleted_by <= hosts


def test_a_whole_upgrade_while_servers_run(crossing: Make, neutron: StageNeutron) -> None:
    """Agents one by one, then the credentials of the conductor; servers of every step live on to its end."""
    cloud = fleet(crossing, [OLD, OLD], credentials=False)
    servers = [cloud.booted()["id"]]
    for host, version in (("host-1", MIDDLE), ("host-2", MIDDLE), ("host-1", NEWEST), ("host-2", NEWEST)):
        cloud.start_agent(host, version)
        servers.append(cloud.booted()["id"])
    assert "conductor" not in neutron.who("POST") | neutron.who("PUT")
    cloud.start_conductor(credentials=True)
    servers.append(cloud.booted()["id"])
    assert "conductor" in neutron.who("POST") & neutron.who("PUT")
    assert {port["device_id"] for port in neutron.owned()} == set(servers)
    cloud.delete(*servers)
    assert neutron.owned() == []


def test_an_agent_that_is_gone_holds_nothing_back(crossing: Make, neutron: StageNeutron) -> None:
    cloud = fleet(crossing, [OLD, NEWEST])
    cloud.bury("host-1")
    cloud.booted()
    assert neutron.who("POST") == neutron.who("PUT") == {"conductor"}


def test_what_agents_do_meanwhile_is_said_once(crossing: Make, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING, logger="moorage.conductor.ports.port_duties"):
        cloud = fleet(crossing, [OLD, NEWEST])
        for _ in range(3):
            cloud.booted()
    (said,) = [one.message for one in caplog.records if one.name == "moorage.conductor.ports.port_duties"]
    assert "agents make and bind the ports" in said
    assert "host-1" in said


def test_an_agent_without_credentials_leaves_the_ports_to_the_conductor(
    crossing: Make, neutron: StageNeutron
) -> None:
    """It is old, so none are made before scheduling; it has no network, so it makes none itself."""
    cloud = crossing()
    cloud.start_conductor()
    cloud.start_agent("host-1", OLD, credentials=False)
    server = cloud.booted()
    assert len(server["addresses"]["stage"]) == 1
    assert neutron.who("POST") == neutron.who("PUT") == {"conductor"}
    cloud.delete(server["id"])
    assert neutron.owned() == []


def test_if_nobody_has_credentials_the_server_says_so(crossing: Make) -> None:
    cloud = crossing()
    cloud.start_conductor(credentials=False)
    cloud.start_agent("host-1", credentials=False)
    failed = cloud.settled(cloud.boot())
    assert failed["status"] == "ERROR"
    assert "Neither the conductors nor the agent of host host-1" in failed["fault"]["message"]
    assert cloud.holders() == set()
    without = cloud.booted("none")
    assert without["addresses"] == {}
    cloud.delete(failed["id"], without["id"])


def test_ports_that_an_agent_made_are_thrown_away_if_it_fails(crossing: Make, neutron: StageNeutron) -> None:
    cloud = crossing()
    cloud.start_conductor()
    cloud.start_agent("host-1", OLD, faults="fail_here")
    first = cloud.boot()
    failed = cloud.settled(first)
    assert failed["status"] == "ERROR"
    assert neutron.owned() == []
    cloud.start_agent("host-2", OLD)
    server = cloud.booted()
    assert host_of(server) == "host-2"
    assert len(neutron.ports_of(server["id"])) == 1
    assert neutron.who("DELETE") >= {"host-1"}


def test_ports_that_a_conductor_made_are_kept_if_an_agent_can_not_bind_them(
    crossing: Make, neutron: StageNeutron
) -> None:
    cloud = fleet(crossing, [MIDDLE, NEWEST])
    neutron.unbindable = {"host-1", "host-2"}
    failed = cloud.settled(cloud.boot())
    assert failed["status"] == "ERROR"
    assert "could not bind port" in failed["fault"]["message"]
    neutron.unbindable = {"host-1"}
    for _ in range(3):
        server = cloud.booted()
        assert host_of(server) == "host-2"
        assert len(neutron.ports_of(server["id"])) == 1
    assert neutron.who("POST") == {"conductor"}


@pytest.mark.parametrize("credentials", [True, False])
def test_a_port_that_the_user_brought_is_given_back(
    crossing: Make, neutron: StageNeutron, credentials: bool
) -> None:
    cloud = fleet(crossing, [OLD], credentials=credentials)
    mine = neutron.add_port(PROJECT)
    server = cloud.booted([{"port": mine}])
    assert [port["id"] for port in neutron.ports_of(server["id"])] == [mine]
    cloud.delete(server["id"])
    port = neutron.ports[mine]
    assert (port["device_id"], port["device_owner"], port["binding:host_id"]) == ("", "", "")


def test_the_ports_of_a_dead_host_are_released_by_another_agent(
    crossing: Make, neutron: StageNeutron
) -> None:
    cloud = fleet(crossing, [NEWEST], credentials=False)
    server = cloud.booted()
    cloud.start_agent("host-2")
    cloud.bury("host-1")
    cloud.delete(server["id"])
    assert neutron.owned() == []
    assert neutron.who("DELETE") == {"host-2"}


def test_a_spawn_that_a_restart_interrupts_is_not_taken_up_again(
    crossing: Make, neutron: StageNeutron
) -> None:
    """Its ports may be another host's by then. Those that it left are found by the server they belong to."""
    cloud = crossing()
    cloud.start_conductor()
    cloud.start_agent("host-1", OLD, faults="hang")
    uuid = cloud.boot()
    wait_until(lambda: neutron.ports_of(uuid) != [], "the port", 60)
    (before,) = neutron.ports_of(uuid)
    cloud.start_agent("host-2", OLD)
    cloud.start_agent("host-1", OLD, faults="hang")
    server = cloud.settled(uuid)
    assert (server["status"], host_of(server)) == ("ACTIVE", "host-2"), server.get("fault")
    (port,) = neutron.ports_of(uuid)
    assert (port["id"], port["binding:host_id"]) == (before["id"], "host-2")


def test_a_server_can_be_deleted_while_its_agent_makes_its_ports(
    crossing: Make, neutron: StageNeutron
) -> None:
    cloud = crossing()
    cloud.start_conductor(credentials=False)
    cloud.start_agent("host-1", faults="hang")
    uuid = cloud.boot()
    wait_until(lambda: neutron.ports_of(uuid) != [], "the port", 60)
    cloud.delete(uuid)
    assert neutron.owned() == []


def test_an_agent_waits_for_ports_that_nobody_else_can_see(crossing: Make, neutron: StageNeutron) -> None:
    cloud = crossing()
    cloud.start_conductor(credentials=False)
    neutron.unplugged = {"host-1"}
    cloud.start_agent("host-1", plug_seconds=0.2)
    failed = cloud.settled(cloud.boot())
    assert failed["status"] == "ERROR"
    assert "the ports did not come up in time" in failed["fault"]["message"]
    assert neutron.owned() == []
    cloud.start_agent("host-2")
    assert host_of(cloud.booted()) == "host-2"


def test_an_agent_that_ends_waits_for_no_ports(crossing: Make, neutron: StageNeutron) -> None:
    """What it waited for is not known to anybody then: the server goes elsewhere, with the same port."""
    cloud = crossing()
    cloud.start_conductor(credentials=False)
    neutron.unplugged = {"host-1"}
    cloud.start_agent("host-1", plug_seconds=3600)
    uuid = cloud.boot()
    wait_until(lambda: any(port["binding:host_id"] for port in neutron.ports_of(uuid)), "the binding", 60)
    (before,) = neutron.ports_of(uuid)
    cloud.start_agent("host-2")
    cloud.start_agent("host-1", plug_seconds=3600)
    server = cloud.settled(uuid)
    assert (server["status"], host_of(server)) == ("ACTIVE", "host-2"), server.get("fault")
    assert [port["id"] for port in neutron.ports_of(uuid)] == [before["id"]]


def test_a_host_that_comes_back_lets_go_of_a_deleted_server(crossing: Make, neutron: StageNeutron) -> None:
    """Also of a port that it made too late for anybody to know of."""
    cloud = fleet(crossing, [OLD])
    server = cloud.booted()
    cloud.bury("host-1")
    cloud.delete(server["id"])
    neutron.ports[neutron.add_port(PROJECT)]["device_id"] = server["id"]
    cloud.start_agent("host-1", OLD)
    wait_until(lambda: neutron.owned() == [], "the late port to go", 60)
    assert "host-1" in neutron.who("DELETE")


def test_servers_do_not_move_if_their_ports_can_not(crossing: Make, neutron: StageNeutron) -> None:
    cloud = fleet(crossing, [NEWEST, NEWEST], credentials=False)
    server = cloud.booted()
    reply = cloud.api.simulate_post(f"/v2.1/servers/{server['id']}/action", json={"migrate": None})
    assert reply.status_code == 202, reply.text
    after = cloud.settled(server["id"])
    assert (after["status"], host_of(after)) == ("ACTIVE", host_of(server))
    (port,) = neutron.ports_of(server["id"])
    assert port["binding:host_id"] == host_of(server)


def test_interfaces_stay_as_they_are_without_credentials(crossing: Make, neutron: StageNeutron) -> None:
    cloud = fleet(crossing, [NEWEST], credentials=False)
    uuid = cloud.booted()["id"]
    (port,) = neutron.ports_of(uuid)
    path = f"/v2.1/servers/{uuid}/os-interface"
    assert cloud.api.simulate_delete(f"{path}/{port['id']}").status_code == 202
    assert cloud.settled(uuid)["addresses"] != {}
    body = {"interfaceAttachment": {"net_id": NETWORK}}
    reply = cloud.api.simulate_post(path, json=body)
    assert reply.status_code >= 400, reply.text
    assert "no credentials for Neutron" in reply.text
    assert [one["id"] for one in neutron.ports_of(uuid)] == [port["id"]]


def test_an_upgrade_check_names_the_agents_that_are_behind(crossing: Make) -> None:
    cloud = fleet(crossing, [OLD, MIDDLE])
    cloud.conf.set_override("provider", "neutron", "network")
    checks = Checks(cloud.conf)
    early, binding = checks.early_ports(), checks.binding()
    assert (early.code, binding.code) == (Code.WARNING, Code.WARNING)
    assert "host-1" in str(early.details)
    assert "host-2" not in str(early.details)
    assert "host-1, host-2" in str(binding.details)
    for host in ("host-1", "host-2"):
        cloud.start_agent(host)
    assert (checks.early_ports().code, checks.binding().code) == (Code.SUCCESS, Code.SUCCESS)
    cloud.conf.clear_override("provider", "network")
