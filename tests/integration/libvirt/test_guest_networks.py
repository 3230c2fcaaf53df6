"""The built-in network on a host: bridges, rules, leases and tunnels, in namespaces that stand for hosts.

A guest here is a namespace behind the tap that was plugged for it: it asks for its address as any guest does.
"""

from __future__ import annotations

import os
import struct
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from moorage.drivers.contract import DriverError, ServerSpec
from moorage.drivers.libvirt.vifs.bridge import BridgeSettings, BridgeVifs
from moorage.drivers.libvirt.vifs.contract import Vif
from moorage.drivers.libvirt.vifs.guest_network import GuestNetwork
from moorage.drivers.libvirt.vifs.links import Tunnels
from moorage.drivers.libvirt.vifs.system_commands import SystemCommandError, SystemCommands
from tests.support import debian, namespaces
from tests.support.namespaces import Namespace
from tests.support.processes import wait_until

GATEWAY = "10.99.0.1"
NETWORK = GuestNetwork("4b1f7d0a-0000-4000-8000-000000000001", "10.99.0.0/24", GATEWAY, 1450)
BROADCAST = "ff:ff:ff:ff:ff:ff"
_ASK = "udhcpc -i eth0 -n -q -f -O mtu -t 5 -T 1 -s"
PACKAGES = ("nftables", "dnsmasq-base", "busybox-static")


@pytest.fixture(scope="module", autouse=True)
def programs() -> None:
    if not namespaces.can_be_made():
        pytest.skip("this needs root, and a kernel with namespaces and taps")
    try:
        debian.install(*PACKAGES)
    except debian.Unavailable as error:
        pytest.skip(str(error))


class Host:
    """A host of the built-in network, in a namespace."""

    def __init__(self, namespace: Namespace, directory: Path, tunnels: Tunnels) -> None:
        self.namespace = namespace
        self.settings = BridgeSettings(
            namespace.name,
            directory / "ports",
            directory / "run",
            tunnels,
            SystemCommands(namespace.prefix),
        )
        directory.chmod(0o755)
        self.vifs = BridgeVifs(self.settings)
        self.plugged: dict[str, Vif] = {}

    def plug(self, number: int) -> Vif:
        port = port_of_guest(number)
        vif = self.vifs.plug(spec(number), port)
        self.plugged[vif.port_id] = vif
        return vif

    def unplug(self, vif: Vif) -> None:
        self.vifs.unplug("", vif)
        self.plugged.pop(vif.port_id, None)

    def devices(self) -> set[str]:
        names = self.namespace.run("ip", "-o", "link", "show").splitlines()
        return {line.split(":")[1].strip().split("@")[0] for line in names} - {"lo"}

    def forwards(self, *vifs: Vif) -> bool:
        """Whether the kernel has noticed that there is somebody at these taps."""
        shown = self.namespace.run("bridge", "link", "show")
        return all(f"{vif.tap}:" in shown for vif in vifs) and shown.count("state forwarding") >= len(vifs)

    def clean(self) -> None:
        for vif in list(self.plugged.values()):
            self.unplug(vif)


def spec(number: int) -> ServerSpec:
    return ServerSpec(f"server-{number}", f"s{number}", "p", "u", "n", {})


def port_of_guest(number: int, **differences: Any) -> dict[str, Any]:
    subnet = {"cidr": NETWORK.cidr, "ip_version": 4, "gateway_ip": GATEWAY, "dns_nameservers": [GATEWAY]}
    return {
        "id": f"{number:08x}-0000-4000-8000-00000000000a",
        "network_id": NETWORK.id,
        "mac": f"02:00:00:00:00:{number:02x}",
        "addresses": [f"10.99.0.{number}"],
        "mtu": 1450,
        "subnets": [subnet],
        **differences,
    }


@pytest.fixture
def stack() -> Iterator[ExitStack]:
    with ExitStack() as stack:
        yield stack


@pytest.fixture
def open_host(stack: ExitStack, tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Host]:
    def make(tunnels: Tunnels | None = None) -> Host:
        namespace = stack.enter_context(namespaces.namespace())
        directory = Path("/run") / namespace.name
        directory.mkdir()
        stack.callback(_forget, directory)
        host = Host(namespace, directory, tunnels or Tunnels())
        stack.callback(host.clean)
        return host

    return make


def _forget(directory: Path) -> None:
    for path in sorted(directory.rglob("*"), reverse=True):
        path.rmdir() if path.is_dir() else path.unlink()
    directory.rmdir()


@pytest.fixture
def host(open_host: Callable[..., Host]) -> Host:
    return open_host()


@pytest.fixture
def script(tmp_path: Path) -> str:
    """What a DHCP client does with its answer."""
    path = tmp_path / "lease"
    path.write_text(
        "#!/bin/sh\n"
        '[ "$1" = bound ] || exit 0\n'
        f'echo "ip=$ip mask=$mask router=$router dns=$dns mtu=$mtu" >{tmp_path}/told\n'
        "ip addr replace $ip/$mask dev eth0\n"
        "ip link set eth0 mtu $mtu\n"
        "ip route replace default via $router\n"
    )
    path.chmod(0o755)
    return str(path)


def lease(guest: Namespace, script: str) -> str:
    """Ask for an address, and take it; answers with what was told."""
    guest.run("busybox", *_ASK.split(), script)
    return (Path(script).parent / "told").read_text().strip()


def test_a_guest_gets_its_address_and_answers_its_host(host: Host, stack: ExitStack, script: str) -> None:
    vif = host.plug(5)
    guest = stack.enter_context(namespaces.guest(host.namespace, vif.tap, vif.mac))
    assert lease(guest, script) == f"ip=10.99.0.5 mask=24 router={GATEWAY} dns={GATEWAY} mtu=1450"
    assert host.namespace.succeeds("ping", "-c", "1", "-W", "5", "10.99.0.5")
    assert guest.succeeds("ping", "-c", "1", "-W", "5", GATEWAY)
    host.plug(6)
    known = host.namespace.run("ip", "neigh", "show", "10.99.0.5")
    assert vif.mac in known, "what comes and goes beside it makes nobody lose sight of it"


def test_guests_of_a_network_reach_each_other_and_the_world_but_not_the_hosts_services(
    host: Host, stack: ExitStack, script: str
) -> None:
    world = stack.enter_context(namespaces.namespace("world"))
    stack.enter_context(namespaces.cable(host.namespace, "192.0.2.1/24", world, "192.0.2.2/24"))
    one, other = host.plug(5), host.plug(6)
    guest = stack.enter_context(namespaces.guest(host.namespace, one.tap, one.mac))
    neighbour = stack.enter_context(namespaces.guest(host.namespace, other.tap, other.mac))
    lease(guest, script)
    lease(neighbour, script)
    assert guest.succeeds("ping", "-c", "1", "-W", "5", "10.99.0.6")
    assert guest.succeeds("ping", "-c", "1", "-W", "5", "192.0.2.2")  # which knows no route back: it is NAT
    assert not world.succeeds("ping", "-c", "1", "-W", "1", "10.99.0.5")
    world.run("ip", "route", "add", "10.99.0.0/24", "via", "192.0.2.1")
    assert not world.succeeds("ping", "-c", "1", "-W", "1", "10.99.0.5")
    for where, expected in (("8022", False), ("80", True)):
        address = "169.254.169.254" if expected else GATEWAY
        assert answers(stack, host.namespace, guest, address, where) is expected


def answers(stack: ExitStack, host: Namespace, guest: Namespace, address: str, port: str) -> bool:
    """Whether a service of the host's is reached by a guest."""
    import socket

    def serve() -> socket.socket:
        return socket.create_server((address, int(port)))

    stack.enter_context(host.call(serve))
    return guest.succeeds("busybox", "nc", "-w", "1", address, port, "-e", "true")


def frame(source: str, target: str, kind: int, content: bytes) -> bytes:
    return _mac(target) + _mac(source) + struct.pack("!H", kind) + content


def _mac(text: str) -> bytes:
    return bytes.fromhex(text.replace(":", ""))


def arp(mac: str, address: str) -> bytes:
    """That this address is at this hardware address."""
    sender = _mac(mac) + bytes(map(int, address.split(".")))
    return struct.pack("!HHBBH", 1, 0x0800, 6, 4, 2) + sender + sender


def ip(source: str, target: str, protocol: int = 253, content: bytes = b"hello") -> bytes:
    addresses = bytes(map(int, f"{source}.{target}".split(".")))
    head = struct.pack("!BBHHHBBH", 0x45, 0, 20 + len(content), 1, 0, 64, protocol, 0) + addresses
    total = sum(struct.unpack("!10H", head))
    total = (total & 0xFFFF) + (total >> 16)
    total = ~((total & 0xFFFF) + (total >> 16)) & 0xFFFF
    return head[:10] + struct.pack("!H", total) + head[12:] + content


def udp(source_port: int, target_port: int) -> bytes:
    return struct.pack("!HHHH", source_port, target_port, 13, 0) + b"hello"


MINE, NEIGHBOURS = "02:00:00:00:00:05", "02:00:00:00:00:06"
HONEST = frame(MINE, NEIGHBOURS, 0x0800, ip("10.99.0.5", "10.99.0.6"))
LIES = {
    "another hardware address": frame("02:00:00:00:00:77", NEIGHBOURS, 0x0800, ip("10.99.0.5", "10.99.0.6")),
    "another address": frame(MINE, NEIGHBOURS, 0x0800, ip("10.99.0.7", "10.99.0.6")),
    "the neighbour's": frame(NEIGHBOURS, BROADCAST, 0x0800, ip("10.99.0.6", "10.99.0.255")),
    "to be the gateway": frame(MINE, BROADCAST, 0x0806, arp(MINE, GATEWAY)),
    "somebody else to be the gateway": frame(MINE, BROADCAST, 0x0806, arp(NEIGHBOURS, "10.99.0.5")),
    "a DHCP server": frame(MINE, BROADCAST, 0x0800, ip("10.99.0.5", "10.99.0.255", 17, udp(67, 68))),
    "IPv6": frame(MINE, NEIGHBOURS, 0x86DD, bytes(40)),
    "a VLAN": frame(MINE, NEIGHBOURS, 0x8100, struct.pack("!HH", 7, 0x0800) + ip("10.99.0.5", "10.99.0.6")),
}
TRUTHS = {
    "its address": HONEST,
    "that it has its address": frame(MINE, BROADCAST, 0x0806, arp(MINE, "10.99.0.5")),
    "whether its address is free": frame(MINE, BROADCAST, 0x0806, arp(MINE, "0.0.0.0")),
    "that it has moved": frame(MINE, BROADCAST, 0x8035, arp(MINE, "0.0.0.0")),
}


def heard(tap: int, wanted: bytes, other: int, sent: bytes) -> bool:
    """Whether a frame that goes into one tap comes out at the other, before an honest one that follows it."""
    os.write(other, sent)
    os.write(other, wanted)
    deadline = time.monotonic() + 10
    found = False
    while time.monotonic() < deadline:
        try:
            got = os.read(tap, 65_536)
        except BlockingIOError:
            time.sleep(0.005)
            continue
        found = found or got == sent
        if got == wanted:
            return found
    raise AssertionError("the honest frame is lost")


def test_a_guest_can_not_say_that_it_is_somebody_else(host: Host) -> None:
    one, other = host.plug(5), host.plug(6)
    mine, neighbours = (host.namespace.open_tap(vif.tap) for vif in (one, other))
    wait_until(lambda: host.forwards(one, other), "the bridge to see both", 10)
    end = frame(MINE, BROADCAST, 0x0800, ip("10.99.0.5", "10.99.0.255", 253, b"end"))
    try:
        for said in TRUTHS:
            assert heard(neighbours, end, mine, TRUTHS[said]), said
        for said in LIES:
            assert not heard(neighbours, end, mine, LIES[said]), said
    finally:
        os.close(mine)
        os.close(neighbours)


def test_what_is_plugged_twice_is_there_once_and_nothing_stays(host: Host) -> None:
    before = host.devices()
    vif = host.plug(5)
    assert host.plug(5) == vif
    assert host.devices() - before == {vif.tap, NETWORK.bridge}
    host.plug(6)
    host.unplug(vif)
    assert vif.tap not in host.devices()
    assert NETWORK.bridge in host.devices()
    host.clean()
    host.unplug(vif)
    assert host.devices() == before
    assert "moorage" not in host.namespace.run("nft", "list", "tables")
    assert not list(host.settings.runtime.iterdir())


def test_after_a_reboot_and_after_a_crash_all_is_as_it_was(host: Host, stack: ExitStack, script: str) -> None:
    vif = host.plug(5)
    host.namespace.run("ip", "link", "del", vif.tap)
    host.namespace.run("ip", "link", "del", NETWORK.bridge)
    host.namespace.run("nft", "flush", "ruleset")
    pid = int((host.settings.runtime / NETWORK.bridge / "pid").read_text())
    os.kill(pid, 9)
    wait_until(lambda: not Path(f"/proc/{pid}").exists(), "dnsmasq to be dead", 10)
    for name in ("tap-of-nobody", NETWORK.tunnel):
        host.namespace.run("ip", "link", "add", name, "type", "bridge")
    mark = f"moorage {host.namespace.name}"
    host.namespace.run("ip", "link", "set", "tap-of-nobody", "alias", mark)
    again = BridgeVifs(host.settings)
    again.mend()
    again.mend()
    assert "tap-of-nobody" not in host.devices()
    guest = stack.enter_context(namespaces.guest(host.namespace, vif.tap, vif.mac))
    assert lease(guest, script).startswith("ip=10.99.0.5 ")
    assert host.namespace.succeeds("ping", "-c", "1", "-W", "5", "10.99.0.5")


def test_guests_on_two_hosts_are_on_one_network(
    open_host: Callable[..., Host], stack: ExitStack, script: str
) -> None:
    both = ("192.0.2.1", "192.0.2.2")
    hosts = [open_host(Tunnels(address, both)) for address in both]
    one, other = hosts
    stack.enter_context(namespaces.cable(one.namespace, f"{both[0]}/24", other.namespace, f"{both[1]}/24"))
    guests = []
    for host, number in zip(hosts, (5, 6), strict=True):
        vif = host.plug(number)
        guests.append(stack.enter_context(namespaces.guest(host.namespace, vif.tap, vif.mac)))
        lease(guests[-1], script)
    assert guests[0].succeeds("ping", "-c", "1", "-W", "5", "10.99.0.6")
    assert guests[0].succeeds("ping", "-c", "1", "-W", "5", "-M", "do", "-s", "1422", "10.99.0.6")
    for guest, host in zip(guests, hosts, strict=True):
        assert guest.succeeds("ping", "-c", "1", "-W", "5", GATEWAY)
        seen = guest.run("ip", "neigh", "show", GATEWAY)
        assert NETWORK.gateway_mac in seen
        assert host.namespace.succeeds(
            "ping", "-c", "1", "-W", "5", "10.99.0.5" if host is one else "10.99.0.6"
        )


def test_a_range_without_a_gateway_is_refused(host: Host) -> None:
    subnet = {"cidr": "10.99.0.0/24", "ip_version": 4, "gateway_ip": ""}
    with pytest.raises(DriverError, match="no address for a gateway"):
        host.vifs.plug(spec(5), port_of_guest(5, subnets=[subnet]))
    six = {"cidr": "fd00::/64", "ip_version": 6, "gateway_ip": "fd00::1"}
    with pytest.raises(DriverError, match="not IPv4"):
        host.vifs.plug(spec(5), port_of_guest(5, subnets=[six]))
    assert host.devices() == set()


def test_a_program_that_is_missing_is_named() -> None:
    with pytest.raises(SystemCommandError, match="no-such-program is not installed"):
        SystemCommands().run("no-such-program")
