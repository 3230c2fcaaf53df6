"""Servers on the networks of a real Neutron, from images of a real Glance, for users of a real Keystone."""

from __future__ import annotations

import random
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from ipaddress import ip_address, ip_network
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa
from openstack.exceptions import (
    BadRequestException,
    ConflictException,
    ForbiddenException,
    HttpException,
    NotFoundException,
)

from moorage.bus.versions import AgentVersion
from moorage.cli import settings
from moorage.conductor.ports import late_ports
from moorage.core import uuids
from moorage.core.clock import utcnow
from moorage.core.openstack_services import adapter
from moorage.core.paging import Page
from moorage.db import engine
from moorage.db.tables.aggregates import chores
from moorage.drivers.image_store import ImageStoreError
from moorage.images import connect as connect_images
from moorage.images import link as image_link
from moorage.images import store as image_store
from moorage.images.contract import ImageRefusedError, NewImage
from moorage.images.glance import GlanceImages
from moorage.images.store import ApiImageStore
from moorage.network.connect import link
from moorage.network.contract import Binding, NetworkError, PortRecord, PortRequest, ServerPorts
from moorage.network.neutron import NeutronNetwork
from moorage.network.neutron_link import NeutronLink, Query
from tests.chaos.port_storm import PortStorm
from tests.integration import openstack_site
from tests.integration.openstack_site import HOSTS, Site
from tests.support.crossing import PROJECT, Crossing
from tests.support.faulty_proxy import Fault, in_front_of
from tests.support.processes import wait_until

ABSENT = "00000000-0000-4000-8000-00000000dead"

pytestmark = [pytest.mark.timeout(600), pytest.mark.filterwarnings("ignore::DeprecationWarning")]


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    with openstack_site.running(tmp_path_factory.mktemp("openstack")) as running:
        yield running


@pytest.fixture(scope="module")
def plain(site: Site) -> Any:
    return site.plain_network("plain")


@pytest.fixture(scope="module")
def routed(site: Site) -> Any:
    """Room for one server in the first segment, for five in the second; `fake-3` reaches neither."""
    return site.routed_network("routed", {"physnet1": "10.20.1.0/30", "physnet2": "10.20.2.0/29"}, 110)


@pytest.fixture(autouse=True)
def nothing_is_left(site: Site) -> Iterator[None]:
    """After each test Neutron has the ports of no server that is gone."""
    yield
    site.delete(*site.demo.compute.servers())
    assert [port for port in site.admin.network.ports() if port.device_id] == []


# ---------------------------------------------------------------- plain boots


def test_a_server_gets_a_port_that_is_bound_where_it_runs(site: Site, plain: Any) -> None:
    server = site.booted([{"uuid": plain.id}])
    (port,) = site.ports_of(server)
    assert port.binding_host_id == server.compute_host
    assert port.binding_vif_type == "ovs"
    assert port.device_owner == "compute:nova"
    assert port.project_id == site.lab.demo.project_id
    assert (port.name, port.dns_name) == ("web 1", "web")
    assert sorted(port.tags) == ["moorage", f"moorage-server={server.id}"]
    (shown,) = server.addresses["plain"]
    assert shown["addr"] == port.fixed_ips[0]["ip_address"]
    assert shown["OS-EXT-IPS-MAC:mac_addr"] == port.mac_address
    (interface,) = site.demo.compute.server_interfaces(server)
    assert (interface.port_id, interface.net_id, interface.port_state) == (port.id, plain.id, "ACTIVE")
    assert interface.fixed_ips == port.fixed_ips


def test_the_only_network_is_found_by_itself(site: Site, plain: Any) -> None:
    assert list(site.booted("auto").addresses) == ["plain"]


def test_a_server_may_have_no_network(site: Site, plain: Any) -> None:
    server = site.booted("none")
    assert server.addresses == {}
    assert site.ports_of(server) == []


def test_a_project_without_a_network_gets_one_made_if_neutron_can(site: Site) -> None:
    """It is made once, for all servers that need it, and stays when they are gone."""
    lone = site.lab.keystone.add_person("lone", "member", "lone")
    user = site.lab.connect(lone, compute_default_microversion="2.96")
    wish = {"name": "web", "image_id": site.image_id, "flavor_id": "1", "networks": "auto"}
    with pytest.raises(BadRequestException, match="Unable to automatically allocate a network for project"):
        user.compute.create_server(**wish)
    assert list(user.compute.servers()) == list(user.network.networks()) == []
    with topologies(site, lone.project_id):
        user.compute.create_server(**wish, min_count=2)
        servers = [site.settled(server) for server in user.compute.servers()]
        assert [server.status for server in servers] == ["ACTIVE"] * 2
        (made,) = user.network.networks(is_router_external=False)
        assert {port.network_id for server in servers for port in site.ports_of(server)} == {made.id}
        assert all(list(server.addresses) == [made.name] for server in servers)
        for server in servers:
            user.compute.delete_server(server.id)
            user.compute.wait_for_delete(server, wait=openstack_site.PATIENCE)
        again = site.settled(user.compute.create_server(**wish))
        assert [port.network_id for port in site.ports_of(again)] == [made.id]
        mine = user.network.create_network(name="mine")
        user.network.create_subnet(network_id=mine.id, ip_version=4, cidr="10.11.0.0/24")
        with pytest.raises(ConflictException, match="Multiple possible networks"):
            user.compute.create_server(**wish)
        user.compute.delete_server(again.id)
        user.compute.wait_for_delete(again, wait=openstack_site.PATIENCE)
        user.network.delete_network(mine)


def test_a_port_on_a_network_that_was_made_is_found_again(site: Site) -> None:
    """Also by a conductor that goes on after another one, when the user has made a network meanwhile."""
    project = site.lab.keystone.add_person("alone", "member", "alone").project_id
    network = NeutronNetwork(link_of(site))
    order = PortRequest(ABSENT, project, "web", "auto")
    (refusal,) = network.prepare([order])
    assert "Unable to automatically allocate a network" in str(refusal)
    with topologies(site, project):
        (first,) = ports_in(network.prepare([order])[0])
        mine = site.admin.network.create_network(name="mine", project_id=project)
        site.admin.network.create_subnet(network_id=mine.id, ip_version=4, cidr="10.11.0.0/24")
        (second,) = ports_in(network.prepare([order])[0])
        assert (second.id, second.network_id) == (first.id, first.network_id)
        network.release([ServerPorts(ABSENT, [second])])
        (ambiguous,) = network.prepare([order])
        assert "Multiple possible networks" in str(ambiguous)
        site.admin.network.delete_network(mine)


@contextmanager
def topologies(site: Site, project_id: str) -> Iterator[None]:
    """While Neutron has what it needs to make networks by itself; that of the project goes at the end."""
    neutron = site.admin.network
    outside = neutron.create_network(name="outside", is_router_external=True, is_default=True)
    neutron.create_subnet(network_id=outside.id, ip_version=4, cidr="172.30.0.0/24", is_dhcp_enabled=False)
    pool = neutron.create_subnet_pool(
        name="everybody", prefixes=["10.12.0.0/16"], default_prefix_length=26, is_default=True, is_shared=True
    )
    try:
        yield
    finally:
        neutron.delete_auto_allocated_topology(project_id)
        neutron.delete_subnet_pool(pool)
        neutron.delete_network(outside)


def test_an_address_may_be_chosen(site: Site, plain: Any) -> None:
    server = site.booted([{"uuid": plain.id, "fixed_ip": "10.10.0.77"}, {"uuid": plain.id}])
    assert len(site.ports_of(server)) == 2
    assert site.addresses(server)[0] == "10.10.0.77"
    with pytest.raises(BadRequestException, match="already in use"):
        site.boot([{"uuid": plain.id, "fixed_ip": "10.10.0.77"}])


def test_security_groups_go_by_their_names(site: Site, plain: Any) -> None:
    group = site.demo.network.create_security_group(name="web-only")
    server = site.booted([{"uuid": plain.id}], security_groups=[{"name": "web-only"}])
    (port,) = site.ports_of(server)
    assert port.security_group_ids == [group.id]
    with pytest.raises(BadRequestException, match="Security group nonsense not found"):
        site.boot([{"uuid": plain.id}], security_groups=[{"name": "nonsense"}])
    other = site.demo.network.create_security_group(name="inside-only")
    compute = site.demo.compute
    for change, held in (
        (compute.add_security_group_to_server, {group.id, other.id}),
        (compute.remove_security_group_from_server, {group.id}),
    ):
        change(server, other)
        (port,) = site.ports_of(server)
        assert set(port.security_group_ids) == held
        names = {each["name"] for each in compute.get_server(server).security_groups}
        assert names == {{group.id: "web-only", other.id: "inside-only"}[each] for each in held}
    with pytest.raises(NotFoundException, match="not associated with the instance"):
        compute.remove_security_group_from_server(server, other)

    rules = site.demo.network
    asked = {"security_group_id": group.id, "direction": "ingress", "ether_type": "IPv4"}
    rules.create_security_group_rule(**asked, protocol="tcp", remote_group_id=other.id)
    rules.create_security_group_rule(
        **asked, protocol="udp", port_range_min=53, port_range_max=54, remote_ip_prefix="10.0.0.0/8"
    )
    answer = compute.get(f"/servers/{server.id}/os-security-groups", microversion="2.96")
    (shown,) = answer.json()["security_groups"]
    project = group.project_id
    assert (shown["id"], shown["name"], shown["tenant_id"]) == (group.id, "web-only", project)
    found = {rule["ip_protocol"]: rule for rule in shown["rules"]}
    for rule in found.values():
        assert rule.pop("id")
        assert rule.pop("parent_group_id") == group.id
    assert found == {
        "tcp": {
            "ip_protocol": "tcp",
            "from_port": 1,
            "to_port": 65535,
            "group": {"name": "inside-only", "tenant_id": project},
            "ip_range": {},
        },
        "udp": {
            "ip_protocol": "udp",
            "from_port": 53,
            "to_port": 54,
            "group": {},
            "ip_range": {"cidr": "10.0.0.0/8"},
        },
    }


def test_a_shelved_server_is_kept_in_glance_and_keeps_its_ports(site: Site, plain: Any) -> None:
    server = site.booted([{"uuid": plain.id}])
    (before,) = site.ports_of(server)
    compute = site.demo.compute
    compute.shelve_server(server)
    compute.wait_for_server(server, "SHELVED_OFFLOADED", ["ERROR"], interval=0.2, wait=60)
    (port,) = site.ports_of(server)
    assert (port.id, port.binding_host_id, port.fixed_ips) == (before.id, "", before.fixed_ips)
    (image,) = site.demo.image.images(name=f"{server.name}-shelved")
    assert (image.status, image.owner) == ("active", site.lab.demo.project_id)
    compute.unshelve_server(server)
    back = compute.wait_for_server(server, "ACTIVE", ["ERROR"], interval=0.2, wait=60)
    (port,) = site.ports_of(server)
    assert (port.id, port.fixed_ips) == (before.id, before.fixed_ips)
    assert port.binding_host_id == compute.get_server(back).compute_host
    wait_until(lambda: not list(site.demo.image.images(name=f"{server.name}-shelved")), "its image to go", 30)


# ---------------------------------------------------------------- ports that users bring


def test_a_brought_port_is_used_and_given_back_as_it_was(site: Site, plain: Any) -> None:
    before = site.demo.network.create_port(network_id=plain.id, name="mine")
    server = site.booted([{"port": before.id}])
    assert [port.id for port in site.ports_of(server)] == [before.id]
    assert site.addresses(server) == [before.fixed_ips[0]["ip_address"]]
    with pytest.raises(ConflictException, match="still in use"):
        site.boot([{"port": before.id}])
    site.delete(server)
    after = site.admin.network.get_port(before.id)
    assert (after.device_id, after.device_owner, after.binding_host_id) == ("", "", "")
    assert (after.name, after.fixed_ips, after.mac_address) == ("mine", before.fixed_ips, before.mac_address)
    site.demo.network.delete_port(before)


def test_a_brought_port_without_an_address_gets_one_of_the_segment_and_loses_it(
    site: Site, routed: Any
) -> None:
    before = site.demo.network.create_port(network_id=routed.id)
    assert before.fixed_ips == []
    server = site.booted([{"port": before.id}])
    assert len(site.addresses(server)) == 1
    site.delete(server)
    assert site.admin.network.get_port(before.id).fixed_ips == []
    site.demo.network.delete_port(before)


# ---------------------------------------------------------------- ports that come and go


def test_ports_come_and_go_while_a_server_is_there(site: Site, plain: Any) -> None:
    server = site.booted([{"uuid": plain.id}])
    (first,) = site.ports_of(server)
    mine = site.demo.network.create_port(network_id=plain.id, name="mine")
    compute = site.demo.compute
    address = [{"ip_address": "10.10.0.88"}]
    made = compute.create_server_interface(server, net_id=plain.id, fixed_ips=address, tag="back")
    assert (made.fixed_ips[0]["ip_address"], made.tag) == ("10.10.0.88", "back")
    assert compute.create_server_interface(server, port_id=mine.id).port_id == mine.id
    found = {port.id: port for port in site.ports_of(server)}
    assert set(found) == site.interfaces_on_host(server) == {first.id, made.port_id, mine.id}
    assert {port.binding_host_id for port in found.values()} == {server.compute_host}
    assert found[made.port_id].name == "web 2"
    assert len(site.addresses(compute.get_server(server.id))) == 3
    more = {"addFixedIp": {"networkId": plain.id}}
    assert compute.post(f"/servers/{server.id}/action", json=more, microversion="2.43").status_code == 202
    wait_until(
        lambda: len(site.addresses(compute.get_server(server.id))) == 4, "one more", openstack_site.PATIENCE
    )
    wait_until(lambda: not site.settled(server).task_state, "rest", openstack_site.PATIENCE)
    for port_id in (made.port_id, mine.id):
        compute.delete_server_interface(port_id, server=server)
    wait_until(lambda: site.interfaces_on_host(server) == {first.id}, "both to go", openstack_site.PATIENCE)
    wait_until(lambda: len(site.ports_of(server)) == 1, "both to be let go of", openstack_site.PATIENCE)
    assert site.admin.network.find_port(made.port_id) is None
    after = site.admin.network.get_port(mine.id)
    assert (after.device_id, after.device_owner, after.binding_host_id) == ("", "", "")
    assert (after.name, after.fixed_ips, after.dns_name) == ("mine", mine.fixed_ips, "")
    site.demo.network.delete_port(mine)
    done = [action.action for action in site.admin.compute.server_actions(server)]
    assert sorted(done) == [*["attach_interface"] * 2, "create", *["detach_interface"] * 2]


def test_what_can_not_be_attached_is_told_and_leaves_nothing(site: Site, plain: Any, routed: Any) -> None:
    server = site.booted([{"uuid": plain.id}])
    (first,) = site.ports_of(server)
    attach = partial(site.demo.compute.create_server_interface, server)
    with pytest.raises(NotFoundException, match=f"Port {ABSENT} could not be found"):
        attach(port_id=ABSENT)
    with pytest.raises(NotFoundException, match=f"Network {ABSENT} could not be found"):
        attach(net_id=ABSENT)
    with pytest.raises(ConflictException, match="still in use"):
        attach(port_id=first.id)
    with pytest.raises(ConflictException, match="already in use"):
        attach(net_id=plain.id, fixed_ips=[{"ip_address": first.fixed_ips[0]["ip_address"]}])
    with pytest.raises(BadRequestException, match="Multiple possible networks"):
        attach()
    with pytest.raises(ConflictException, match="Multiple possible networks"):
        site.boot("auto")
    site.admin.network.update_quota(site.lab.demo.project_id, port=1)
    with pytest.raises(ForbiddenException, match="Maximum number of ports exceeded"):
        attach(net_id=plain.id)
    site.admin.network.update_quota(site.lab.demo.project_id, port=-1)
    site.lab.put_host(server.compute_host, alive=False)
    with pytest.raises(BadRequestException, match="could not bind"):
        attach(net_id=plain.id)
    site.lab.put_host(server.compute_host, alive=True)
    assert [port.id for port in site.ports_of(server)] == [first.id]
    assert site.interfaces_on_host(server) == {first.id}


def test_a_port_that_somebody_deletes_goes_from_the_server(site: Site, plain: Any) -> None:
    assert site.demo.network.get("/quotas").status_code == 403, "by this we know whether we see all ports"
    server = site.booted([{"uuid": plain.id}])
    (port,) = site.ports_of(server)
    site.admin.network.delete_port(port)
    wait_until(lambda: site.interfaces_on_host(server) == set(), "the port to go", openstack_site.PATIENCE)
    wait_until(lambda: site.settled(server).addresses == {}, "the address to go", openstack_site.PATIENCE)


def test_the_official_client_adds_and_removes_ports(site: Site, plain: Any) -> None:
    server = site.booted("none")
    port = site.demo.network.create_port(network_id=plain.id, name="mine")
    site.order(f"server add port --tag front {server.id} mine")
    site.order(f"server add network {server.id} plain")
    site.order(f"server add fixed ip --fixed-ip-address 10.10.0.66 {server.id} plain")
    assert len(site.ports_of(server)) == 3
    assert "10.10.0.66" in site.addresses(site.settled(server))
    site.order(f"server remove fixed ip {server.id} 10.10.0.66", version="2.43")
    wait_until(lambda: len(site.addresses(site.settled(server))) == 2, "the address", openstack_site.PATIENCE)
    assert len(site.ports_of(server)) == 3
    site.order(f"server remove port {server.id} mine")
    wait_until(lambda: len(site.ports_of(server)) == 2, "the port to go", openstack_site.PATIENCE)
    site.order(f"server remove network {server.id} plain")
    wait_until(lambda: site.ports_of(server) == [], "the network to go", openstack_site.PATIENCE)
    wait_until(
        lambda: site.interfaces_on_host(server) == set(), "nothing to be left", openstack_site.PATIENCE
    )
    site.demo.network.delete_port(port)


# ---------------------------------------------------------------- refusals


def test_what_nobody_can_have_is_refused_at_once(site: Site, plain: Any) -> None:
    with pytest.raises(BadRequestException, match=f"Port {ABSENT} could not be found"):
        site.boot([{"port": ABSENT}])
    with pytest.raises(BadRequestException, match=f"Network {ABSENT} could not be found"):
        site.boot([{"uuid": ABSENT}])
    foreign = site.admin.network.create_network(name="foreign")
    site.admin.network.create_subnet(network_id=foreign.id, ip_version=4, cidr="10.30.0.0/24")
    port = site.admin.network.create_port(network_id=foreign.id)
    with pytest.raises(BadRequestException, match="could not be found"):
        site.boot([{"uuid": foreign.id}])
    with pytest.raises(BadRequestException, match="could not be found"):
        site.boot([{"port": port.id}])
    bare = site.demo.network.create_network(name="bare")
    with pytest.raises(BadRequestException, match="requires a subnet"):
        site.boot([{"uuid": bare.id}])
    site.demo.network.delete_network(bare)
    assert list(site.demo.compute.servers()) == []


def test_a_quota_of_ports_is_told_at_once(site: Site, plain: Any) -> None:
    site.admin.network.update_quota(site.lab.demo.project_id, port=1)
    try:
        with pytest.raises(ForbiddenException, match="Maximum number of ports exceeded"):
            site.boot([{"uuid": plain.id}, {"uuid": plain.id}])
    finally:
        site.admin.network.update_quota(site.lab.demo.project_id, port=-1)


def test_images_are_those_that_glance_shows_to_the_user(site: Site, plain: Any) -> None:
    hidden = site.admin.image.create_image(
        name="hidden", data=b"0", disk_format="raw", container_format="bare", visibility="private"
    )
    with pytest.raises(BadRequestException, match="Can not find requested image"):
        site.boot([{"uuid": plain.id}], image_id=hidden.id)
    large = site.admin.image.create_image(
        name="large",
        data=b"0",
        disk_format="raw",
        container_format="bare",
        visibility="public",
        min_ram=10**6,
    )
    with pytest.raises(BadRequestException, match="memory is too small"):
        site.boot([{"uuid": plain.id}], image_id=large.id)


def test_records_of_snapshots_are_made_found_and_deleted_in_glance(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(image_link, "_PAGE", 2)  # as Glance pages long lists
    images = GlanceImages(connect_images.link(settings.read([site.directory / "moorage.conf"])))
    project, marks = site.lab.demo.project_id, {"instance_uuid": uuids.generate(), "image_type": "backup"}
    chosen = [uuids.generate() for _ in range(5)]
    for image_id in (*chosen, chosen[0]):
        assert images.create(NewImage("snap", project, id=image_id, properties=marks)) == image_id
    others = images.create(NewImage("snap", site.lab.moorage.project_id, properties=marks))
    found = images.select(marks, project_id=project)
    assert sorted(image.id for image in found) == sorted(chosen)
    assert [image.created_at for image in found] == sorted(
        (image.created_at for image in found), reverse=True
    )
    assert site.demo.image.get_image(chosen[0]).status == "queued", "its owner sees it"
    token = site.demo.session.get_token()
    own = images.create(NewImage("own", project, min_ram=64), token)
    assert images.find(own, token).min_ram == 64
    site.admin.image.update_image(own, is_protected=True)
    with pytest.raises(ImageRefusedError):
        images.delete(own, token)
    site.admin.image.update_image(own, is_protected=False)
    lent = NewImage("lent", "", id=uuids.generate(), visibility="shared", member=project)
    for _ in range(2):  # whoever goes on after a crash asks again
        images.create(lent, site.admin.session.get_token())
    assert images.find(lent.id, token).owner == site.lab.moorage.project_id
    images.delete(lent.id)
    for image_id in (*chosen, others, own, own):
        images.delete(image_id)
    assert images.select(marks) == []


def test_agents_get_images_from_glance_and_put_snapshots_there(
    site: Site, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(image_store, "_PAUSES", (0.01,) * 5)
    read = settings.read([site.directory / "moorage.conf"])
    images = GlanceImages(connect_images.link(read))
    data = random.randbytes(3_000_000)
    (tmp_path / "disk").write_bytes(data)
    snapshot = images.create(NewImage("snap", site.lab.demo.project_id))
    for _ in range(2):
        ApiImageStore(read).upload(snapshot, tmp_path / "disk", "raw", {"kind": "a/b"})
    told = site.demo.image.get_image(snapshot)
    assert (told.status, told.size, told.disk_format) == ("active", len(data), "raw")
    with in_front_of(site.lab.glance.port) as proxy:
        elsewhere = tmp_path / "agent.conf"
        elsewhere.write_text(f"[glance]\nendpoint_override = http://127.0.0.1:{proxy.port}\n")
        store = ApiImageStore(settings.read([site.directory / "moorage.conf", elsewhere]))
        image = store.describe(snapshot)
        assert (image.properties, image.hash_algorithm) == ({"kind": "a/b"}, "sha512")
        proxy.fail(Fault(cut=True, method="GET", path="/file", times=2))
        store.download(image, tmp_path / "back", lambda: None)
        assert (tmp_path / "back").read_bytes() == data
        assert [status for _, path, status in proxy.answered if path.endswith("/file")] == [200, 206, 206]
        images.delete(snapshot)
        with pytest.raises(ImageStoreError, match="not there"):
            store.describe(snapshot)


# ---------------------------------------------------------------- segments


def segment_of(server: Any) -> str:
    return HOSTS[server.compute_host]


def test_a_server_lands_where_a_segment_reaches_and_has_its_address(site: Site, routed: Any) -> None:
    server = site.booted([{"uuid": routed.id}])
    ranges = {"physnet1": "10.20.1.0/30", "physnet2": "10.20.2.0/29"}
    (address,) = site.addresses(server)
    assert ip_address(address) in ip_network(ranges[segment_of(server)])


def test_servers_that_find_a_segment_full_go_on_to_another_with_the_same_ports(
    site: Site, routed: Any
) -> None:
    """Four want to be spread over two segments of which one has a single address: all of them asked before
    any was bound, so that some find out only at the host."""
    site.boot([{"uuid": routed.id}], min_count=4)
    servers = [site.settled(server) for server in site.demo.compute.servers()]
    assert [server.status for server in servers] == ["ACTIVE"] * 4
    assert sorted(segment_of(server) for server in servers) == ["physnet1", *["physnet2"] * 3]
    for server in servers:
        assert len(site.ports_of(server)) == 1
    assert len({address for server in servers for address in site.addresses(server)}) == 4


def test_when_all_segments_are_full_the_server_fails_with_a_reason_and_without_a_port(site: Site) -> None:
    tiny = site.routed_network("tiny", {"physnet1": "10.21.1.0/30", "physnet2": "10.21.2.0/30"}, 130)
    for _ in range(2):
        site.booted([{"uuid": tiny.id}])
    failed = site.settled(site.boot([{"uuid": tiny.id}]))
    assert failed.status == "ERROR"
    assert "No addresses are left on network 'tiny'" in failed.fault["message"]
    assert site.ports_of(failed) == []


def test_a_host_that_can_not_bind_is_left_for_another_with_the_same_ports(site: Site, plain: Any) -> None:
    port = site.demo.network.create_port(network_id=plain.id)
    for host in ("fake-1", "fake-2"):
        site.lab.put_host(host, alive=False)
    try:
        server = site.boot([{"uuid": plain.id}, {"port": port.id}])
        wait_until(lambda: len(site.ports_of(server)) == 2, "phase 1", openstack_site.PATIENCE)
        first = {port.id for port in site.ports_of(server)}
        server = site.settled(server)
    finally:
        for host in ("fake-1", "fake-2"):
            site.lab.put_host(host, alive=True)
    assert (server.status, server.compute_host) == ("ACTIVE", "fake-3")
    assert {port.id for port in site.ports_of(server)} == first
    site.delete(server)
    site.demo.network.delete_port(port)


# ---------------------------------------------------------------- what Neutron tells us


def test_a_server_is_active_when_its_ports_are_up(site: Site, plain: Any) -> None:
    for host in HOSTS:
        site.lab.put_host(host, plugs=False)
    try:
        server = site.boot([{"uuid": plain.id}])
        wait_until(lambda: any(port.binding_host_id for port in site.ports_of(server)), "the binding", 60)
        (port,) = site.ports_of(server)
        assert site.admin.compute.get_server(server.id).status == "BUILD"
        site.lab.plug(port.id, port.binding_host_id)
        assert site.settled(server).compute_host == port.binding_host_id
    finally:
        for host in HOSTS:
            site.lab.put_host(host, plugs=True)


def test_a_host_that_plugs_no_ports_is_left_for_another(site: Site, plain: Any) -> None:
    for host in ("fake-1", "fake-2"):
        site.lab.put_host(host, plugs=False)
    try:
        assert site.booted([{"uuid": plain.id}]).compute_host == "fake-3"
    finally:
        for host in ("fake-1", "fake-2"):
            site.lab.put_host(host, plugs=True)


def test_addresses_follow_what_neutron_has(site: Site, plain: Any) -> None:
    server = site.booted([{"uuid": plain.id}])
    (port,) = site.ports_of(server)
    site.admin.network.update_port(port, fixed_ips=[{"ip_address": "10.10.0.99"}])

    def shown() -> list[str]:
        return site.addresses(site.demo.compute.get_server(server.id))

    wait_until(lambda: shown() == ["10.10.0.99"], "the new address", 60)
    site.admin.network.delete_port(port)
    wait_until(lambda: shown() == [], "the address to go", 60)


def test_a_floating_address_is_shown_beside_the_fixed_one(site: Site) -> None:
    admin = site.admin.network
    outside = admin.create_network(name="outside", is_router_external=True)
    admin.create_subnet(network_id=outside.id, ip_version=4, cidr="192.0.2.0/24")
    inside = site.plain_network("inside", "10.50.0.0/24")
    router = site.demo.network.create_router(name="r", external_gateway_info={"network_id": outside.id})
    (subnet,) = site.demo.network.subnets(network_id=inside.id)
    site.demo.network.add_interface_to_router(router, subnet=subnet.id)
    with pytest.raises(ForbiddenException, match="external network"):
        site.boot([{"uuid": outside.id}])
    server = site.booted([{"uuid": inside.id}])
    (port,) = site.ports_of(server)
    floating = site.demo.network.create_ip(floating_network_id=outside.id)

    def ask(action: str) -> int:
        body = {action: {"address": floating.floating_ip_address}}
        path = f"/servers/{server.id}/action"
        return int(site.demo.compute.post(path, json=body, microversion="2.43").status_code)

    assert ask("addFloatingIp") == 202

    def shown() -> dict[str, str]:
        (found,) = site.demo.compute.get_server(server.id).addresses.values()
        return {address["OS-EXT-IPS:type"]: address["addr"] for address in found}

    expected = {"fixed": port.fixed_ips[0]["ip_address"], "floating": floating.floating_ip_address}
    wait_until(lambda: shown() == expected, "the floating address", 60)
    assert ask("removeFloatingIp") == 202
    assert site.demo.network.get_ip(floating.id).port_id is None
    wait_until(lambda: "floating" not in shown(), "it to be gone", 60)
    assert ask("removeFloatingIp") == 409
    site.delete(server)
    site.demo.network.delete_ip(floating)
    site.demo.network.remove_interface_from_router(router, subnet=subnet.id)
    site.demo.network.delete_router(router)
    site.demo.network.delete_network(inside)
    admin.delete_network(outside)


# ---------------------------------------------------------------- moves


@pytest.mark.parametrize("way", ["cold", "live"])
def test_ports_follow_a_server_that_moves(site: Site, plain: Any, way: str) -> None:
    server = site.booted([{"uuid": plain.id}])
    (before,) = site.ports_of(server)
    target = next(host for host in HOSTS if host != server.compute_host)
    if way == "cold":
        site.admin.compute.migrate_server(server, host=target)
        site.admin.compute.wait_for_server(server, "VERIFY_RESIZE", wait=openstack_site.PATIENCE)
        site.admin.compute.confirm_server_resize(server)
    else:
        site.admin.compute.live_migrate_server(server, host=target, block_migration="auto")
    wait_until(lambda: site.settled(server).compute_host == target, "the move", openstack_site.PATIENCE)
    wait_until(lambda: not site.settled(server).task_state, "the end of the move", openstack_site.PATIENCE)
    (after,) = site.ports_of(server)
    assert (after.id, after.fixed_ips) == (before.id, before.fixed_ips)
    assert after.binding_host_id == target
    assert after.binding_profile == {}
    assert [binding.host for binding in site.admin.network.port_bindings(after.id)] == [target]


def test_a_live_migration_that_neutron_can_not_follow_leaves_all_as_it_was(site: Site, plain: Any) -> None:
    server = site.booted([{"uuid": plain.id}])
    target = next(host for host in HOSTS if host != server.compute_host)
    site.lab.put_host(target, alive=False)
    try:
        site.admin.compute.live_migrate_server(server, host=target, block_migration="auto")
        wait_until(lambda: _migration(site, server).status == "error", "the refusal", openstack_site.PATIENCE)
        wait_until(lambda: not site.settled(server).task_state, "rest", openstack_site.PATIENCE)
    finally:
        site.lab.put_host(target, alive=True)
    assert site.settled(server).compute_host == server.compute_host
    (port,) = site.ports_of(server)
    assert [binding.host for binding in site.admin.network.port_bindings(port.id)] == [server.compute_host]


def _migration(site: Site, server: Any) -> Any:
    return next(iter(site.admin.compute.migrations(instance_uuid=server.id)))


# ---------------------------------------------------------------- bandwidth


@pytest.fixture(scope="module")
def wide(site: Site) -> Callable[[], Any]:
    """Makes ports of a network on which each gets 600 kbit/s."""
    network = site.admin.network.create_network(
        name="wide",
        is_shared=True,
        provider_network_type="vlan",
        provider_physical_network="physnet3",
        provider_segmentation_id=150,
    )
    site.admin.network.create_subnet(network_id=network.id, ip_version=4, cidr="10.40.0.0/24")
    policy = site.admin.network.create_qos_policy(name="wide", is_shared=True)
    site.admin.network.create_qos_minimum_bandwidth_rule(policy, min_kbps=600, direction="egress")
    return partial(site.demo.network.create_port, network_id=network.id, qos_policy_id=policy.id)


def served_by(site: Site, port: Any, server: Any) -> tuple[str, int]:
    """Who gives the port its bandwidth, as Neutron knows it, and how much the server holds of that."""
    ((_, provider),) = site.admin.network.get_port(port.id).binding_profile["allocation"].items()
    held = site.admin.placement.get(f"/allocations/{server.id}").json()["allocations"]
    return provider, held[provider]["resources"]["NET_BW_EGR_KILOBIT_PER_SEC"]


def test_guaranteed_bandwidth_is_found_and_claimed(site: Site, wide: Callable[[], Any]) -> None:
    """Only one host has any to give, and it gives it to one server."""
    site.lab.put_host("fake-3", bandwidth={"br-physnet3": {"egress": 1000, "ingress": 1000}})
    site.await_bandwidth(1000, hosts=1)
    port, second = wide(), wide()
    server = site.booted([{"port": port.id}])
    assert server.compute_host == "fake-3"
    assert served_by(site, port, server)[1] == 600
    failed = site.settled(site.boot([{"port": second.id}]))
    assert failed.status == "ERROR"
    site.delete(server, failed)
    assert site.admin.network.get_port(port.id).binding_profile == {}
    for each in (port, second):
        site.demo.network.delete_port(each)


def test_bandwidth_is_that_of_the_host_where_the_server_is(site: Site, wide: Callable[[], Any]) -> None:
    """Also after a move that failed, and after one that was taken back; and for ports that come later."""
    for host in ("fake-2", "fake-3"):
        gives = {"br-physnet3": {"egress": 1500, "ingress": 1500}}
        site.lab.put_host(host, physnets=[HOSTS[host], "physnet3"], bandwidth=gives)
    site.await_bandwidth(1500, hosts=2)
    port, later, last = wide(), wide(), wide()
    compute, server = site.admin.compute, site.booted([{"port": port.id}])
    target = "fake-2" if server.compute_host == "fake-3" else "fake-3"
    home = served_by(site, port, server)
    compute.set_server_metadata(server, **{"fake:take_over": "fail"})
    compute.migrate_server(server, host=target)
    wait_until(lambda: _migration(site, server).status == "error", "the failure", openstack_site.PATIENCE)
    wait_until(lambda: not site.settled(server).task_state, "rest", openstack_site.PATIENCE)
    assert served_by(site, port, server) == home
    compute.set_server_metadata(server, **{"fake:take_over": ""})
    compute.migrate_server(server, host=target)
    compute.wait_for_server(server, "VERIFY_RESIZE", wait=openstack_site.PATIENCE)
    assert served_by(site, port, server) != home
    compute.revert_server_resize(server)
    compute.wait_for_server(server, "ACTIVE", wait=openstack_site.PATIENCE)
    assert served_by(site, port, server) == home
    site.demo.compute.create_server_interface(server, port_id=later.id)
    assert served_by(site, later, server) == (home[0], 1200)
    with pytest.raises(BadRequestException, match="Failed to allocate additional resources"):
        site.demo.compute.create_server_interface(server, port_id=last.id)
    site.demo.compute.delete_server_interface(later.id, server=server)
    wait_until(lambda: served_by(site, port, server) == home, "the rest", openstack_site.PATIENCE)
    site.delete(server)
    for each in (port, later, last):
        assert site.admin.network.get_port(each.id).binding_profile == {}
        site.demo.network.delete_port(each)


# ---------------------------------------------------------------- lists in pages

MANY = 5
"""Neutron shows two of anything at a time."""


class RacingLink(NeutronLink):
    """Whenever it has read a page that ends with one of these, somebody deletes that one."""

    doomed: frozenset[str] = frozenset()
    gone: frozenset[str] = frozenset()

    def _page(self, resource: str, query: Query, marker: str | None = None) -> Page[dict[str, Any]]:
        page = super()._page(resource, query, marker)
        if page.entries and page.entries[-1].get("id") in self.doomed - self.gone:
            self.gone |= {page.entries[-1]["id"]}
            self.delete(resource, page.entries[-1]["id"])
        return page


def link_of(site: Site) -> RacingLink:
    return RacingLink(adapter(settings.read([site.directory / "moorage.conf"]), "neutron", "network", 60))


def test_a_server_may_have_more_than_a_page_of_everything(site: Site) -> None:
    network = site.plain_network("many", "10.12.0.0/24")
    for number in range(MANY):
        cidr = f"10.11.{number}.0/24"
        site.demo.network.create_subnet(network_id=network.id, ip_version=4, cidr=cidr)
    last = max(site.demo.network.subnets(network_id=network.id), key=lambda subnet: subnet.id)
    groups = [site.demo.network.create_security_group(name=f"group-{number}") for number in range(MANY)]
    chosen = last.cidr.replace("0/24", "77")
    wishes = [*[{"uuid": network.id}] * MANY, {"uuid": network.id, "fixed_ip": chosen}]
    server = site.booted(wishes, security_groups=[{"name": group.name} for group in groups])
    ports = site.ports_of(server)
    assert len(ports) == len(list(site.demo.compute.server_interfaces(server))) == len(wishes)
    assert {port.binding_host_id for port in ports} == {server.compute_host}
    assert {frozenset(port.security_group_ids) for port in ports} == {frozenset(one.id for one in groups)}
    assert chosen in site.addresses(server)
    site.delete(server)
    for group in groups:
        site.demo.network.delete_security_group(group)
    site.demo.network.delete_network(network)


@pytest.mark.parametrize("resource", ["networks", "subnets", "ports", "security-groups", "floatingips"])
def test_what_goes_while_it_is_listed_hides_nothing_else(site: Site, resource: str) -> None:
    neutron = link_of(site)
    network = neutron.create("networks", {"name": "passing", "router:external": True})["id"]
    neutron.create("subnets", {"network_id": network, "ip_version": 4, "cidr": "10.60.0.0/24"})
    made = {neutron.create(resource, _passing(resource, network, number))["id"] for number in range(7)}
    there = {entry["id"] for entry in neutron.find(resource)}
    assert made <= there
    neutron.doomed = frozenset(made)
    found = [entry["id"] for entry in neutron.find(resource)]
    assert neutron.gone
    assert len(found) == len(set(found))
    assert there - neutron.gone <= set(found)
    neutron.doomed = frozenset()
    for uuid in made - neutron.gone:
        neutron.delete(resource, uuid)
    neutron.delete("networks", network)


def _passing(resource: str, network: str, number: int) -> dict[str, Any]:
    bodies: dict[str, dict[str, Any]] = {
        "networks": {"name": f"passing-{number}"},
        "subnets": {"network_id": network, "ip_version": 4, "cidr": f"10.61.{number}.0/24"},
        "ports": {"network_id": network},
        "security-groups": {"name": f"passing-{number}"},
        "floatingips": {"floating_network_id": network},
    }
    return bodies[resource]


def test_a_port_loses_all_its_bindings_but_the_one_that_counts(site: Site, plain: Any) -> None:
    """Neutron's pages of bindings have no end if one follows their links."""
    neutron = link_of(site)
    for host in ("fake-4", "fake-5"):
        site.lab.put_host(host, physnets=["physnet1"])
    hosts = [*HOSTS, "fake-4", "fake-5"]
    values = {"network_id": plain.id, "device_id": ABSENT, "device_owner": "compute:nova"}
    port = neutron.create("ports", {**values, "binding:host_id": hosts[0]})["id"]
    for host in hosts[1:]:
        neutron.add_binding(port, host, {})
    neutron.drop_inactive_bindings(port)
    left = neutron.find_some(f"ports/{port}/bindings")
    assert [(binding["host"], binding["status"]) for binding in left] == [(hosts[0], "ACTIVE")]
    neutron.delete("ports", port)


def test_a_port_tells_how_it_is_plugged_at_either_end_of_a_move(site: Site, plain: Any) -> None:
    """Also if a conductor dies in between, and the next one does it all again."""
    neutron = link_of(site)
    network = NeutronNetwork(neutron)
    here, there, *_ = HOSTS
    order = PortRequest(ABSENT, site.lab.demo.project_id, "told", [{"uuid": plain.id}])
    (prepared,) = network.prepare([order])
    (bound,) = network.bind([Binding(ABSENT, ports_in(prepared), here, "default")])
    (port,) = ports_in(bound)
    assert (port.vif_type, port.vnic_type, port.mtu) == ("ovs", "normal", plain.mtu)
    assert port.vif_details["bridge_name"] == "br-int"
    (subnet,) = port.subnets
    (told,) = neutron.find("subnets", [("network_id", plain.id)])
    assert (subnet.cidr, subnet.gateway_ip, subnet.enable_dhcp) == (told["cidr"], told["gateway_ip"], True)
    for _ in range(2):
        (expected,) = network.expect([Binding(ABSENT, [port], there, "default")])
    (moving,) = ports_in(expected)
    assert moving.expected_binding is not None
    assert moving.expected_binding.vif_type == "ovs"
    assert neutron.show("ports", port.id)["binding:profile"] == {"migrating_to": there}
    for end in (here, there):  # back where it was, then there after all
        if end == there:
            (moving,) = ports_in(network.expect([Binding(ABSENT, [port], there, "default")])[0])
        for _ in range(2):
            (bound,) = network.bind([Binding(ABSENT, [moving], end, "default")])
        shown = neutron.show("ports", port.id)
        assert (shown["binding:host_id"], shown["binding:profile"]) == (end, {})
        assert [row["host"] for row in neutron.find_some(f"ports/{port.id}/bindings")] == [end]
    network.release([ServerPorts(ABSENT, ports_in(bound))])


def ports_in(outcome: list[PortRecord] | NetworkError) -> list[PortRecord]:
    assert not isinstance(outcome, NetworkError), outcome
    return outcome


# ---------------------------------------------------------------- amid an upgrade


@pytest.mark.parametrize("credentials", [True, False])
def test_agents_make_and_bind_ports_until_conductors_can(
    site: Site, plain: Any, tmp_path: Path, credentials: bool
) -> None:
    """A cloud of its own on the same Neutron: its agents are old, its conductor may have no credentials."""
    conf = settings.read([site.directory / "moorage.conf"])
    cloud = Crossing(
        f"sqlite:///{tmp_path / 'moorage.sqlite'}", tmp_path, lambda _who: NeutronNetwork(link(conf))
    )
    try:
        cloud.start_conductor(credentials=credentials)
        for host in ("fake-1", "fake-2"):
            cloud.start_agent(host, AgentVersion.SHARED_NODES)
        mine = site.admin.network.create_port(network_id=plain.id, project_id=PROJECT)
        server = cloud.booted([{"uuid": plain.id}, {"port": mine.id}])
        ports = list(site.admin.network.ports(device_id=server["id"]))
        assert len(ports) == 2
        assert {port.binding_host_id for port in ports} == {server["OS-EXT-SRV-ATTR:host"]}
        assert {port.status for port in ports} == {"ACTIVE"}
        assert {shown["addr"] for shown in server["addresses"]["plain"]} == {
            fixed["ip_address"] for port in ports for fixed in port.fixed_ips
        }
        cloud.delete(server["id"])
        assert list(site.admin.network.ports(device_id=server["id"])) == []
        assert site.admin.network.get_port(mine.id).binding_host_id == ""
        site.admin.network.delete_port(mine)
    finally:
        cloud.stop()


# ---------------------------------------------------------------- the end, at any moment


def test_servers_may_be_deleted_at_any_moment_of_their_boot(site: Site, plain: Any, routed: Any) -> None:
    for _ in range(3):
        servers = [site.boot([{"uuid": network.id}]) for network in (plain, routed)]
        site.delete(*servers)


@pytest.mark.parametrize("phase", ["making", "made", "bound"])
def test_a_kill_in_the_middle_of_boots_leaves_no_port_behind(
    site: Site, plain: Any, routed: Any, phase: str
) -> None:
    networks = [{"uuid": plain.id}, {"uuid": routed.id}]
    accepted = [site.boot(networks) for _ in range(3)]

    def reached() -> bool:
        """At least one server is that far, the others are somewhere."""
        ports = [site.ports_of(server) for server in accepted]
        if phase == "bound":
            return any(port.binding_host_id for each in ports for port in each)
        return any(len(each) >= (1 if phase == "making" else 2) for each in ports)

    wait_until(reached, phase, openstack_site.PATIENCE)
    site.kill()
    site.start()
    for server in accepted:
        settled = site.settled(server)
        assert settled.status == "ACTIVE", settled.fault
        ports = site.ports_of(settled)
        assert len(ports) == 2
        assert {port.binding_host_id for port in ports} == {settled.compute_host}


def test_a_port_that_was_on_its_way_at_a_kill_arrives(site: Site, plain: Any) -> None:
    server = site.booted([{"uuid": plain.id}])

    def attach() -> None:
        with suppress(Exception):  # nobody is there to answer
            site.demo.compute.create_server_interface(server, net_id=plain.id)

    asking = threading.Thread(target=attach)
    asking.start()
    wait_until(lambda: len(site.ports_of(server)) == 2, "the port", openstack_site.PATIENCE)
    site.kill()
    asking.join(openstack_site.PATIENCE)
    site.start()
    wait_until(lambda: not site.settled(server).task_state, "rest", openstack_site.PATIENCE)
    ports = site.ports_of(server)
    assert {port.id for port in ports} == site.interfaces_on_host(server)
    assert [port.binding_host_id for port in ports] == [server.compute_host] * 2
    assert len(site.addresses(site.settled(server))) == 2


def test_an_audit_mends_ports_of_no_server_and_servers_of_no_port(site: Site, plain: Any) -> None:
    """Nobody is there to hear Neutron's event when a port goes, nor to see that one was made too late."""
    server, gone = site.booted([{"uuid": plain.id}]), site.booted("none")
    site.delete(gone)
    site.kill()
    (lost,) = site.ports_of(server)
    site.admin.network.delete_port(lost)
    description = f"Interface 1 of server {gone.id}, made by Moorage"
    late = site.admin.network.create_port(
        network_id=plain.id, description=description, device_id=gone.id, device_owner="compute:nova"
    )
    put_off_sweeping(site)
    site.start()
    found = audited(site, "nothing")
    named = {one["check"]: one["server_id"] for one in found}
    assert named.pop("ports") == gone.id
    assert named in ({"lost-ports": server.id}, {})  # Neutron may tell of it once more, and be quicker
    assert all(one["repaired"] for one in audited(site, "safe"))
    assert site.admin.network.find_port(late.id) is None
    assert list(site.demo.compute.server_interfaces(server)) == []
    assert [one for one in audited(site, "nothing") if not one["repaired"]] == []


def put_off_sweeping(site: Site) -> None:
    """Conductors look for late ports by themselves every five minutes, and may be quicker than the audit."""
    now = utcnow()
    files = engine.connect(f"sqlite:///{site.directory / 'data' / 'moorage.sqlite'}")
    with files.begin() as connection:
        connection.execute(sa.delete(chores).where(chores.c.name == late_ports.CHORE))
        connection.execute(sa.insert(chores).values(name=late_ports.CHORE, leased_until=now, finished_at=now))
    files.dispose()


def audited(site: Site, repair: str) -> list[dict[str, Any]]:
    asked = {"audit": {"only": ["ports", "lost-ports"], "repair": repair}}
    begun = site.admin.compute.post("/moorage-audits", json=asked).json()["audit"]["id"]
    shown: dict[str, Any] = {}

    def is_done() -> bool:
        shown.update(site.admin.compute.get(f"/moorage-audits/{begun}").json())
        return bool(shown["audit"]["stage"] == "done")

    wait_until(is_done, "the audit", openstack_site.PATIENCE)
    assert shown["audit"]["failures"] == {}
    found: list[dict[str, Any]] = shown["findings"]
    return found


def test_kills_at_random_leave_neutron_with_the_ports_of_the_living(site: Site, plain: Any) -> None:
    """A little of what `make chaos` does for longer."""
    seed = random.randrange(10**6)
    print(f"seed {seed}")
    storm = PortStorm(site, [plain], random.Random(seed))
    storm.rage(20)
    assert storm.differences() == []
    storm.clean_up()


def test_a_network_service_that_is_away_is_told_and_waited_for(site: Site, plain: Any) -> None:
    """The last test of the file: Neutron has to come back first."""
    server = site.booted([{"uuid": plain.id}])
    site.lab.neutron.stop()
    with pytest.raises(HttpException) as refused:
        site.boot([{"uuid": plain.id}])
    assert refused.value.response is not None
    assert refused.value.response.status_code == 503
    site.demo.compute.delete_server(server.id)
    site.lab.start_neutron_again()
    for host, physical in HOSTS.items():
        site.lab.put_host(host, physnets=[physical])
    site.demo.compute.wait_for_delete(server, wait=openstack_site.PATIENCE)
    site.booted([{"uuid": plain.id}])
