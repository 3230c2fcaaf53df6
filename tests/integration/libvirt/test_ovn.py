"""Ports of a real Neutron with OVN, plugged on two hosts: they carry traffic, and follow a server that moves.

Guests are namespaces behind the taps: what they get by DHCP, they get of OVN.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

import msgspec
import pytest
from openstack.connection import Connection

from moorage.cli import settings
from moorage.drivers.libvirt.vifs.contract import Vif
from moorage.network.connect import link
from moorage.network.contract import Binding, NetworkError, PortRecord, PortRequest, ServerPorts
from moorage.network.neutron import NeutronNetwork
from tests.integration import openstack_site
from tests.integration.libvirt import plug_worker
from tests.integration.libvirt.plug_worker import Order
from tests.lab.libvirt import hosts, programs
from tests.lab.libvirt.hosts import LibvirtLab
from tests.lab.openstack import service
from tests.lab.openstack.service import OpenStack
from tests.lab.ovn import central, chassis
from tests.support import debian, namespaces
from tests.support.namespaces import Namespace
from tests.support.processes import wait_until
from tests.support.profiles import ini

pytest.importorskip("os_vif")

SERVERS = [f"0c9a9f3e-0000-4000-8000-00000000000{number}" for number in range(3)]
PATIENCE = 120.0


@dataclass
class OvnSite:
    lab: LibvirtLab
    openstack: OpenStack
    network: NeutronNetwork
    network_id: str
    directory: Path

    def namespace(self, host: str) -> Namespace:
        return Namespace(host, Path(f"/proc/{self.lab.hosts[host].pid}/ns/net"))

    def port(self, server: str, host: str) -> PortRecord:
        """A new one, bound to a host."""
        wish = [{"uuid": self.network_id}]
        order = PortRequest(server, self.openstack.demo.project_id, "s", wish)
        (prepared,) = self.network.prepare([order])
        return self.bound(server, only(prepared), host)

    def bound(self, server: str, port: PortRecord, host: str) -> PortRecord:
        (found,) = self.network.bind([Binding(server, [port], host, "default")])
        return only(found)

    def is_up(self, server: str, port: PortRecord) -> bool:
        return self.network.are_up([ServerPorts(server, [port])])[0]

    @contextmanager
    def guest(self, server: str, port: PortRecord, host: str) -> Iterator[Namespace]:
        """One that is plugged there."""
        vif = self._plug("plug", server, port, host)
        with namespaces.guest(self.namespace(host), vif.tap, vif.mac) as inside:
            inside.run("ip", "link", "set", "eth0", "mtu", str(vif.mtu))
            yield inside
        self._plug("unplug", server, port, host)

    def _plug(self, verb: str, server: str, port: PortRecord, host: str) -> Vif:
        connection = f"unix:{chassis.database_of(self.lab.hosts[host])}"
        order = Order(verb, connection, self.directory / f"vifs-{host}", server, msgspec.to_builtins(port))
        ended = subprocess.run(
            [*self.namespace(host).prefix, sys.executable, "-m", plug_worker.__name__],
            input=msgspec.json.encode(order, enc_hook=str),
            capture_output=True,
            check=False,
        )
        assert ended.returncode == 0, ended.stderr.decode()
        return msgspec.json.decode(ended.stdout, type=Vif)


def only(outcome: list[PortRecord] | NetworkError) -> PortRecord:
    assert not isinstance(outcome, NetworkError), outcome
    (port,) = outcome
    return port


def _hosts_known(admin: Connection) -> set[str]:
    """Those that live; OVN's come on one page, but with a link to a next one that has the same."""
    listed = admin.network.get("/agents").json()["agents"]
    return {agent["host"] for agent in listed if agent["alive"]}


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[OvnSite]:
    try:
        programs.install()
        programs.use_binding()
        central.install()
        debian.install("busybox-static", Path("/bin/busybox"))
    except debian.Unavailable as missing:
        pytest.skip(str(missing))
    directory = tmp_path_factory.mktemp("ovn")
    with ExitStack() as stack:
        lab = stack.enter_context(hosts.running(directory / "lab", ("h1", "h2"), connected=True))
        databases = stack.enter_context(central.running(directory / "central", lab.gateway))
        stack.enter_context(chassis.running(lab, databases))
        openstack = stack.enter_context(service.start(directory / "openstack", {}, databases))
        admin = openstack.connect(openstack.moorage)
        wait_until(lambda: _hosts_known(admin) >= set(lab.hosts), "Neutron to know the hosts", PATIENCE)
        made = admin.network.create_network(name="ovn", project_id=openstack.demo.project_id)
        admin.network.create_subnet(network_id=made.id, ip_version=4, cidr="192.168.7.0/24")
        written = directory / "moorage.conf"
        written.write_text(ini(openstack_site.sections(openstack)))
        conf = settings.read([written])
        yield OvnSite(lab, openstack, NeutronNetwork(link(conf)), made.id, directory)


@pytest.fixture
def script(tmp_path: Path) -> str:
    path = tmp_path / "lease"
    path.write_text('#!/bin/sh\n[ "$1" = bound ] && ip addr replace $ip/$mask dev eth0\nexit 0\n')
    path.chmod(0o755)
    return str(path)


def test_a_port_carries_traffic_once_it_is_plugged_and_follows_its_server(site: OvnSite, script: str) -> None:
    here, there = site.lab.hosts
    port = site.port(SERVERS[0], here)
    other = site.port(SERVERS[1], there)
    assert port.vif_type == "ovs"
    assert not site.is_up(SERVERS[0], port)
    with ExitStack() as stack:
        guest = stack.enter_context(site.guest(SERVERS[0], port, here))
        wait_until(lambda: site.is_up(SERVERS[0], port), "Neutron to say so", PATIENCE)
        neighbour = stack.enter_context(site.guest(SERVERS[1], other, there))
        for inside in (guest, neighbour):
            inside.run("busybox", *f"udhcpc -i eth0 -n -q -f -t 20 -T 1 -s {script}".split())
        assert port.addresses[0] in guest.run("ip", "addr", "show", "eth0")
        ping = ("ping", "-c", "1", "-W", "5", port.addresses[0])
        wait_until(lambda: neighbour.succeeds(*ping), "the neighbour to hear it", PATIENCE)

        (expected,) = site.network.expect([Binding(SERVERS[0], [port], there, "default")])
        moving = only(expected)
        arrived = stack.enter_context(site.guest(SERVERS[0], moving.arriving(), there))
        arrived.run("ip", "addr", "add", f"{port.addresses[0]}/24", "dev", "eth0")
        guest.run("ip", "link", "set", "eth0", "down")
        moved = site.bound(SERVERS[0], moving, there)
        assert (moved.vif_type, moved.expected) == ("ovs", "")
        wait_until(lambda: neighbour.succeeds(*ping), "the neighbour to hear it again", PATIENCE)
        wait_until(lambda: site.is_up(SERVERS[0], moved), "Neutron to say so", PATIENCE)
    for server, held in ((SERVERS[0], moved), (SERVERS[1], other)):
        site.network.release([ServerPorts(server, [held])])
    assert "tap" not in site.lab.hosts[here].run("ovs-vsctl", "list-ports", "br-int")
