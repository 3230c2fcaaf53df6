"""Bare metal as users and operators meet it: a real Ironic, three agents in two partitions, real clients."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tests.integration.ironic.failing_pair import UNCLEANABLE, UNDEPLOYABLE, FailingPair
from tests.integration.ironic.site import FLAVOR, IMAGE, IMAGE_HASH, Site, running
from tests.lab.client.openstack import openstack, order
from tests.support import debian
from tests.support.processes import wait_until

pytestmark = pytest.mark.timeout(600)
"""The first test waits until Ironic and a whole deployment have started."""


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    try:
        with running(tmp_path_factory.mktemp("metal")) as made:
            yield made
    except debian.Unavailable as error:
        pytest.skip(str(error))


def of_group(site: Site, group: str) -> set[str]:
    return {uuid for uuid, node in site.metal.all().items() if node["conductor_group"] == group}


def test_each_partition_is_managed_by_its_hosts_and_by_nobody_else(site: Site) -> None:
    assert site.owned_by("a-1", "a-2") == of_group(site, "a")
    assert site.owned_by("b-1") == of_group(site, "b")


def test_the_client_takes_a_server_through_its_life(site: Site) -> None:
    clouds = site.cloud.clouds_file(0)
    command = f"server create --flavor {FLAVOR} --image {IMAGE} --config-drive True life"
    server = openstack(clouds, "moorage", *command.split())["id"]
    made = site.wait(server, "ACTIVE")
    node = made["OS-EXT-SRV-ATTR:hypervisor_hostname"]
    on_node = site.metal.show(node)
    assert (on_node["instance_uuid"], on_node["provision_state"]) == (server, "active")
    assert on_node["power_state"] == "power on"
    assert on_node["instance_info"]["display_name"] == "life"
    assert on_node["instance_info"]["image_source"].startswith("file:"), "where the image is, and not its id"
    assert on_node["instance_info"]["image_os_hash_value"] == IMAGE_HASH
    order(clouds, "moorage", "server", "stop", "life")
    site.wait(server, "SHUTOFF")
    assert site.metal.show(node)["power_state"] != "power on"
    order(clouds, "moorage", "server", "start", "life")
    site.wait(server, "ACTIVE")
    for kind in ("--soft", "--hard"):
        order(clouds, "moorage", "server", "reboot", kind, "life")
        site.wait(server, "ACTIVE")
    assert site.metal.show(node)["power_state"] == "power on"
    deployed_at = site.metal.show(node)["provision_updated_at"]
    order(clouds, "moorage", "server", "rebuild", "--image", IMAGE, "life")
    site.wait(server, "ACTIVE")
    assert site.metal.show(node)["provision_updated_at"] != deployed_at
    order(clouds, "moorage", "server", "delete", "--wait", "life")
    assert site.metal.show(node)["instance_uuid"] is None
    site.wait_until_free(node)
    assert site.metal.show(node)["provision_state"] == "available"


def test_a_free_node_follows_its_group_and_a_used_one_stays(site: Site) -> None:
    server = site.boot("stays")
    used = site.wait(server, "ACTIVE")["OS-EXT-SRV-ATTR:hypervisor_hostname"]
    owner = site.owners()[used]
    group, other = ("a", "b") if owner != "b-1" else ("b", "a")
    free = sorted(of_group(site, group) - {used})[0]
    for node in (used, free):
        site.metal.change(node, conductor_group=other)
    hosts = {"a": ("a-1", "a-2"), "b": ("b-1",)}
    wait_until(lambda: site.owners().get(free) in hosts[other], "the free node to move", 30)
    assert site.owners()[used] == owner
    site.act(server, "reboot", {"type": "HARD"})
    site.wait(server, "ACTIVE")
    site.delete(server)
    wait_until(lambda: site.owners().get(used) in hosts[other], "the freed node to move", 60)
    for node in (used, free):
        site.metal.change(node, conductor_group=group)
    wait_until(lambda: site.owned_by(*hosts[group]) == of_group(site, group), "all to be back", 30)
    site.wait_until_free(used, free)


def test_a_host_that_is_told_of_another_partition_serves_it_at_once(site: Site) -> None:
    site.serve("a-2", partition_key="b")
    wait_until(lambda: site.owned_by("a-1") == of_group(site, "a"), "the peer to have it all", 30)
    wait_until(lambda: site.owned_by("a-2", "b-1") == of_group(site, "b"), "the other group to be shared", 30)
    site.serve("a-2", partition_key="no such/group")
    log = site.cloud.agents["a-2"].log
    wait_until(lambda: "the changed configuration is refused" in log.read_text(), "the refusal", 20)
    assert site.owned_by("a-1") == of_group(site, "a")
    site.serve("a-2", partition_key="a", peer_list="a-1,a-2,nobody")
    wait_until(lambda: site.owned_by("b-1") == of_group(site, "b"), "the partition to change back", 30)
    wait_until(lambda: site.owned_by("a-1", "a-2") == of_group(site, "a"), "all to be owned", 30)


def test_hosts_whose_partitions_overlap_are_told(site: Site) -> None:
    """One of them serves all groups. Each machine stays with whoever has it, and nothing changes hands."""
    owners = site.owners()
    site.serve("a-2")
    overlaps = (
        "a-1 (group a) and a-2 (all groups): they serve different partitions, and some nodes are in both",
        "a-2 (all groups) and b-1 (group b): they serve different partitions, and some nodes are in both",
    )
    expected = [f"partitions overlap: {one}" for one in overlaps]
    wait_until(lambda: site.machines()["warnings"] == expected, "the overlaps", 30)
    told = site.cloud.conductors[0].log
    wait_until(lambda: all(one in told.read_text() for one in overlaps), "the conductor's words", 60)
    found = {one["uuid"]: one for one in site.machines()["nodes"]}
    assert all(one["served"] for one in found.values())
    assert {uuid: one["host"] for uuid, one in found.items()} == site.owners()
    assert site.owned_by("b-1") == {uuid for uuid, host in owners.items() if host == "b-1"}
    site.serve("a-2", partition_key="a")
    wait_until(lambda: site.machines()["warnings"] == [], "the end of the overlaps", 30)
    wait_until(lambda: site.owned_by("a-1", "a-2") == of_group(site, "a"), "all to be owned", 30)


def test_the_peer_of_a_host_that_died_goes_on_with_its_servers(site: Site) -> None:
    """The group has four nodes: as many servers have one on each host that owns any."""
    site.cloud.agents["b-1"].end()
    wait_until(lambda: "b-1" not in site.cloud.hosts_up(), "the other group to be out of the way", 30)
    servers = [site.boot(f"survivor-{number}") for number in range(4)]
    shown = {server: site.wait(server, "ACTIVE") for server in servers}
    hosts = {server: one["OS-EXT-SRV-ATTR:host"] for server, one in shown.items()}
    nodes = {server: one["OS-EXT-SRV-ATTR:hypervisor_hostname"] for server, one in shown.items()}
    victim = hosts[servers[0]]
    heir = "a-2" if victim == "a-1" else "a-1"
    shared = site.owned_by(victim)
    before = site.cloud.get_placement(f"/allocations/{servers[0]}")["allocations"]
    site.cloud.agents[victim].kill()
    wait_until(lambda: site.owned_by(heir) == of_group(site, "a"), "the peer to take over", 60)
    for server in servers:
        assert site.show(server)["OS-EXT-SRV-ATTR:host"] == heir
        assert site.metal.show(nodes[server])["instance_uuid"] == server
    after = site.cloud.get_placement(f"/allocations/{servers[0]}")["allocations"]
    assert {uuid: one["resources"] for uuid, one in after.items()} == {
        uuid: one["resources"] for uuid, one in before.items()
    }
    site.act(servers[0], "reboot", {"type": "HARD"})
    site.wait(servers[0], "ACTIVE")
    site.cloud.agents[victim].start()
    wait_until(lambda: victim in site.cloud.hosts_up(), "it to be back", 30)
    site.act(servers[0], "reboot", {"type": "HARD"})
    assert site.wait(servers[0], "ACTIVE")["OS-EXT-SRV-ATTR:host"] == heir
    site.delete(*servers)
    wait_until(lambda: site.owned_by(victim) == shared, "the freed nodes to be shared as before", 60)
    site.wait_until_free(*nodes.values())
    site.cloud.agents["b-1"].start()
    wait_until(lambda: site.owned_by("b-1") == of_group(site, "b"), "the other group to be back", 30)


@pytest.mark.parametrize("returns", [True, False])
def test_a_deployment_goes_on_when_its_agent_dies(site: Site, returns: bool) -> None:
    """The agent itself goes on where it was; or a peer does, or the server goes to another node.

    Not on the node of a host without a peer: while that one is dead, nobody may take a server off it.
    """
    site.cloud.agents["b-1"].end()
    wait_until(lambda: "b-1" not in site.cloud.hosts_up(), "the host without a peer to be out of the way", 30)
    server = site.boot("interrupted")
    wait_until(lambda: bool(holders(site, server)), "the deployment", 60)
    victim = site.show(server)["OS-EXT-SRV-ATTR:host"]
    site.cloud.agents[victim].kill()
    if returns:
        site.cloud.agents[victim].start()
    shown = site.wait(server, "ACTIVE")
    if not returns:
        assert shown["OS-EXT-SRV-ATTR:host"] != victim
        wait_until(lambda: holders(site, server) == [machine(shown)], "the first node to be left", 60)
        site.cloud.agents[victim].start()
        wait_until(lambda: victim in site.cloud.hosts_up(), "it to be back", 30)
    assert holders(site, server) == [machine(shown)]
    site.delete(server)
    site.wait_until_free(*site.metal.all())
    site.cloud.agents["b-1"].start()
    wait_until(lambda: site.owned_by("b-1") == of_group(site, "b"), "the other group to be back", 30)


def test_a_machine_is_rescued_though_its_conductor_and_its_agent_are_killed(site: Site) -> None:
    server = site.boot("rescued")
    shown = site.wait(server, "ACTIVE")
    node, agent = machine(shown), site.cloud.agents[shown["OS-EXT-SRV-ATTR:host"]]
    on_node = site.metal.show(node)
    assert (on_node["lessee"], on_node["instance_info"]["project_id"]) == (shown["tenant_id"],) * 2
    site.post(f"/v2.1/servers/{server}/action", {"migrate": None}, 400)
    site.post(f"/v2.1/servers/{server}/action", {"rescue": {"adminPass": "let me in"}}, 200)
    wait_until(lambda: "moorage_rescue" in site.metal.show(node)["instance_info"], "the rescue", 60)
    agent.kill()
    site.cloud.conductors[0].kill()
    site.cloud.conductors[0].start()
    agent.start()
    site.wait(server, "RESCUE", 150)
    assert site.metal.show(node)["provision_state"] == "rescue"
    assert "let me in" not in site.cloud.logs()
    site.act(server, "unrescue")
    site.wait(server, "ACTIVE")
    assert site.metal.show(node)["provision_state"] == "active"
    site.delete(server)
    site.wait_until_free(node)


def test_a_machine_that_vanishes_takes_its_server_along(site: Site) -> None:
    server = site.boot("bereft")
    node = machine(site.wait(server, "ACTIVE"))
    group = site.metal.show(node)["conductor_group"]
    site.metal.change(node, protected=False)
    site.metal.ask("PUT", f"nodes/{node}/maintenance", {"reason": "it burns"})
    site.metal.ask("DELETE", f"nodes/{node}")
    fault = site.wait(server, "ERROR")["fault"]
    assert fault["message"] == "The machine that the server was on does not exist any more."
    refused: list[dict[str, Any]] = [
        {"reboot": {"type": "HARD"}},
        {"rescue": None},
        {"os-getConsoleOutput": {}},
    ]
    for action in refused:
        site.post(f"/v2.1/servers/{server}/action", action, 409)
    site.delete(server)
    assert site.cloud.get_placement(f"/allocations/{server}")["allocations"] == {}
    wait_until(lambda: node not in site.owners(), "the node to be forgotten", 60)
    wait_until(lambda: node not in site.cloud.providers(), "its provider to go", 60)
    substitute = site.metal.enrol(f"substitute-{group}", group)
    wait_until(lambda: substitute in site.cloud.providers(), "another one to be offered", 60)
    site.wait_until_free(substitute)


def test_a_node_that_is_no_more_in_ironic_is_no_more_here(site: Site) -> None:
    node = site.metal.enrol("short-lived", "b")
    wait_until(lambda: node in site.owned_by("b-1"), "the node to be managed", 30)
    wait_until(lambda: node in site.cloud.providers(), "its provider", 30)
    site.metal.provision(node, "manage", "manageable")
    site.metal.ask("DELETE", f"nodes/{node}")
    wait_until(lambda: node not in site.owners(), "the node to be forgotten", 30)
    wait_until(lambda: node not in site.cloud.providers(), "its provider to go", 30)


@pytest.fixture(scope="module")
def pair(site: Site) -> FailingPair:
    return FailingPair(site, "b-1", "b")


def test_a_machine_that_fails_every_deployment_is_kept_out_until_it_is_released(
    site: Site, pair: FailingPair
) -> None:
    pair.fails(deploy=UNDEPLOYABLE)
    pair.take_out_sound()
    first = pair.boot("first")
    site.wait(first, "ERROR")
    pair.bring_back_sound()
    site.wait_until_free(pair.broken)
    elsewhere = pair.boot("elsewhere")
    assert machine(site.wait(elsewhere, "ACTIVE")) == pair.sound, "others come first"
    second = pair.boot("second")
    site.wait(second, "ERROR")
    pair.wait_for_quarantine()
    assert pair.status() == "disabled"
    assert UNDEPLOYABLE in pair.why_kept_out()
    told = pair.failures()
    assert [(one["step"], one["server"]) for one in told] == [("deploy", second), ("deploy", first)]
    assert all(UNDEPLOYABLE in one["reason"] for one in told)

    for part in (site.cloud.agents["b-1"], site.cloud.conductors[0]):
        part.kill()
        part.start()
    site.delete(first, second, elsewhere)
    site.wait_until_free(pair.sound)  # so the agent has told what it offers since it started
    assert pair.reserved(pair.broken) == 1
    assert pair.quarantined() == [pair.broken]
    again = pair.boot("again")
    assert machine(site.wait(again, "ACTIVE")) == pair.sound
    left_over = pair.boot("left-over")
    assert "No valid host" in site.wait(left_over, "ERROR")["fault"]["message"]
    assert pair.failures() == told, "nothing came to it"

    pair.fails(deploy="")
    assert "is released" in pair.release()
    site.wait_until_free(pair.broken)
    assert pair.status() == "enabled"
    last = pair.boot("last")
    assert machine(site.wait(last, "ACTIVE")) == pair.broken
    assert all(one["forgiven_at"] for one in pair.failures()), "its history stays"
    site.delete(again, left_over, last)
    site.wait_until_free(pair.broken, pair.sound)


def test_a_machine_that_fails_every_cleaning_is_kept_out_until_its_operator_has_had_it(
    site: Site, pair: FailingPair
) -> None:
    pair.fails(clean=UNCLEANABLE)
    pair.take_out_sound()
    server = pair.boot("unclean")
    assert machine(site.wait(server, "ACTIVE")) == pair.broken
    before = len(pair.failures())
    site.delete(server)
    wait_until(lambda: len(pair.failures()) == before + 1, "the first failure", 60)
    assert pair.status() == "enabled", "once is not enough"
    site.metal.provision(pair.broken, "manage", "manageable")
    pair.bring_back_sound()  # so the agent has looked at both since
    site.metal.provision(pair.broken, "provide", "clean failed")
    pair.wait_for_quarantine()
    assert pair.status() == "disabled"
    assert UNCLEANABLE in pair.why_kept_out()
    assert [one["step"] for one in pair.failures()[:2]] == ["clean", "clean"]
    pair.take_out_sound()
    pair.bring_back_sound()  # so the agent has seen it in quarantine

    pair.fails(clean="")
    site.metal.provision(pair.broken, "manage", "manageable")
    site.metal.provision(pair.broken, "provide", "available")
    site.wait_until_free(pair.broken)
    assert pair.status() == "enabled"


def holders(site: Site, server: str) -> list[str]:
    """The nodes that have the server, as Ironic says."""
    return [uuid for uuid, node in site.metal.all().items() if node["instance_uuid"] == server]


def machine(shown: dict[str, Any]) -> str:
    return str(shown["OS-EXT-SRV-ATTR:hypervisor_hostname"])


@pytest.fixture(scope="module")
def reserving(site: Site) -> Site:
    """From here on hosts a-1 and a-2 reserve machines, and the other group is out of the way."""
    site.cloud.agents["b-1"].end()
    for host in ("a-1", "a-2"):
        site.cloud.agents[host].end()
        options = {"partition_key": "a", "node_selection": "reservation"}
        site.cloud.configure_agent(host, site.shape.serving(**options))
        site.cloud.agents[host].start()
    wait_until(lambda: site.owned_by("a-1", "a-2") == {"a-1", "a-2"}, "the nodes to become pools", 60)
    wait_until(lambda: "b-1" not in site.cloud.hosts_up(), "the other group to be out of the way", 30)
    return site


def test_reserved_machines_take_servers_through_their_lives(reserving: Site) -> None:
    wait_until(lambda: offers(reserving) == {"a-1": 4, "a-2": 4}, "all machines to be offered", 60)
    reserving.boot("reserved", min_count=2)  # decided together, whatever agents report meanwhile
    first, second = (one["id"] for one in reserving.cloud.get("/v2.1/servers?name=reserved")["servers"])
    shown = [reserving.wait(server, "ACTIVE") for server in (first, second)]
    assert sorted(one["OS-EXT-SRV-ATTR:host"] for one in shown) == ["a-1", "a-2"]
    assert [len(holders(reserving, server)) for server in (first, second)] == [1, 1]
    assert set(holders(reserving, first) + holders(reserving, second)) <= of_group(reserving, "a")
    reserving.act(first, "os-stop")
    reserving.wait(first, "SHUTOFF")
    for action, details in (
        ("os-start", None),
        ("reboot", {"type": "HARD"}),
        ("rebuild", {"imageRef": shown[0]["image"]["id"]}),
    ):
        reserving.act(first, action, details)
        reserving.wait(first, "ACTIVE")
    reserving.delete(first, second)
    assert reserving.metal.listed("allocations") == []


def test_of_two_servers_one_gets_the_last_machine(reserving: Site) -> None:
    wait_until(lambda: offers(reserving) == {"a-1": 4, "a-2": 4}, "all machines to be offered", 60)
    others = [reserving.boot(f"other-{number}") for number in range(3)]
    for server in others:
        reserving.wait(server, "ACTIVE")
    rivals = [reserving.boot(f"rival-{number}") for number in range(2)]
    wait_until(lambda: {status(reserving, one) for one in rivals} == {"ACTIVE", "ERROR"}, "the outcome", 90)
    (loser,) = [one for one in rivals if status(reserving, one) == "ERROR"]
    assert "No valid host" in reserving.show(loser)["fault"]["message"]
    found = [holders(reserving, server) for server in (*others, *rivals)]
    assert sorted(map(len, found)) == [0, 1, 1, 1, 1]
    reserving.delete(loser)
    survive_a_death(reserving, [*others, *(one for one in rivals if one != loser)])


def survive_a_death(site: Site, servers: list[str]) -> None:
    """The machines stay as they are; who looks after them changes, and changes back."""
    victim = site.show(servers[0])["OS-EXT-SRV-ATTR:host"]
    heir = "a-2" if victim == "a-1" else "a-1"
    orphans = [one for one in servers if site.show(one)["OS-EXT-SRV-ATTR:host"] == victim]
    machines = {one: holders(site, one) for one in orphans}
    site.cloud.agents[victim].kill()
    wait_until(lambda: {host_of(site, one) for one in orphans} == {heir}, "the peer to take over", 90)
    site.act(orphans[0], "reboot", {"type": "HARD"})
    site.wait(orphans[0], "ACTIVE")
    site.cloud.agents[victim].start()
    wait_until(lambda: {host_of(site, one) for one in orphans} == {victim}, "it to have them back", 90)
    assert {one: holders(site, one) for one in orphans} == machines
    site.delete(*servers)
    assert site.metal.listed("allocations") == []


def offers(site: Site) -> dict[str, int]:
    """The machines that each pool has, used or not."""
    found = {}
    for one in site.cloud.get("/v2.1/os-hypervisors")["hypervisors"]:
        inventories = site.cloud.get_placement(f"/resource_providers/{one['id']}/inventories")["inventories"]
        gold = inventories.get("CUSTOM_GOLD", {"total": 0, "reserved": 0})
        found[one["hypervisor_hostname"]] = gold["total"] - gold["reserved"]
    return {host: count for host, count in found.items() if host in ("a-1", "a-2")}


def status(site: Site, server: str) -> str:
    return str(site.show(server)["status"])


def host_of(site: Site, server: str) -> str:
    return str(site.show(server)["OS-EXT-SRV-ATTR:host"])
