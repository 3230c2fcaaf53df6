"""What OVN has on a host of the libvirt lab: Open vSwitch in user space, and its controller."""

from __future__ import annotations

import secrets
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.lab.libvirt.hosts import LibvirtHost, LibvirtLab
from tests.lab.ovn.central import OvnCentral
from tests.support.processes import wait_until

_TUNNEL_NET = "192.168.254"
_RUN, _LOGS = "/run/openvswitch", "/var/log/openvswitch"


@contextmanager
def running(lab: LibvirtLab, central: OvnCentral) -> Iterator[None]:
    """On all hosts of the lab, which have a second cable for the tunnels; ends with the hosts.

    The tunnels' addresses have to be on bridges of Open vSwitch, whose own routes they use in user space.
    """
    fabric = f"ovn-{secrets.token_hex(2)}"
    _ip("netns", "add", fabric)
    try:
        _ip("-n", fabric, "link", "add", "br1", "type", "bridge", "forward_delay", "0")
        _ip("-n", fabric, "link", "set", "br1", "up")
        for number, host in enumerate(lab.hosts.values(), 1):
            far = ("peer", "name", "phy0", "netns", str(host.pid))
            _ip("link", "add", f"p{number}", "netns", fabric, "type", "veth", *far)
            _ip("-n", fabric, "link", "set", f"p{number}", "master", "br1", "up")
            host.run("ip", "link", "set", "phy0", "up")
            _start(host, central, f"{_TUNNEL_NET}.{10 + number}")
        yield
    finally:
        _ip("netns", "del", fabric)


def database_of(host: LibvirtHost) -> Path:
    """The socket of its Open vSwitch, as it is called outside the host."""
    return host.directory / "ovs" / "run" / "db.sock"


def freeze(host: LibvirtHost) -> None:
    """OVN does not notice what is plugged here, until `thaw`."""
    _signal(host, "STOP")


def thaw(host: LibvirtHost) -> None:
    _signal(host, "CONT")


def _signal(host: LibvirtHost, name: str) -> None:
    host.run("sh", "-c", f"kill -{name} $(cat {_RUN}/ovn/ovn-controller.pid)")


def _start(host: LibvirtHost, central: OvnCentral, address: str) -> None:
    logs = host.directory / "ovs" / "log"
    host.run("ovsdb-tool", "create", "/etc/openvswitch/conf.db", "/usr/share/openvswitch/vswitch.ovsschema")
    host.start(
        ["ovsdb-server", f"--remote=punix:{_RUN}/db.sock", "--pidfile", "/etc/openvswitch/conf.db"],
        logs / "ovsdb.log",
    )
    wait_until(database_of(host).exists, f"the database of {host.name}'s switch", 60)
    host.run("ovs-vsctl", "--retry", "--timeout=60", "--no-wait", "init")  # it may not listen yet
    told = {
        "system-id": host.name,
        "hostname": host.name,
        "ovn-remote": central.southbound,
        "ovn-encap-type": "geneve",
        "ovn-encap-ip": address,
        "ovn-bridge-datapath-type": "netdev",
    }
    words = [f"external_ids:{name}={value}" for name, value in told.items()]
    host.run("ovs-vsctl", "--no-wait", "set", "open", ".", *words)
    host.start(["ovs-vswitchd", "--pidfile", f"unix:{_RUN}/db.sock"], logs / "vswitchd.log")
    _bridge(host, "br-phy", "--", "add-port", "br-phy", "phy0")
    host.run("ip", "addr", "add", f"{address}/24", "dev", "br-phy")
    host.run("ip", "link", "set", "br-phy", "up")
    _bridge(host, "br-int", "--", "set", "bridge", "br-int", "fail_mode=secure")
    host.run("ip", "link", "set", "br-int", "up")
    host.run("mkdir", "-p", f"{_RUN}/ovn")
    # In the background: who starts it from outside would be frozen with it, and wake up alone.
    words = ["--detach", "--pidfile", f"--log-file={_LOGS}/ovn-controller.log", f"unix:{_RUN}/db.sock"]
    host.run("env", f"OVN_RUNDIR={_RUN}/ovn", "ovn-controller", *words)


def _bridge(host: LibvirtHost, name: str, *more: str) -> None:
    words = ["--timeout=60", "add-br", name, "--", "set", "bridge", name, "datapath_type=netdev"]
    host.run("ovs-vsctl", *words, *more)


def _ip(*words: str) -> None:
    subprocess.run(["ip", *words], check=True, capture_output=True)
