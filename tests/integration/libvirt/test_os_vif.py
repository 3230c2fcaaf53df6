"""Ports that Neutron has bound, plugged by os-vif into a real Open vSwitch, in a namespace of its own."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from moorage.drivers.contract import DriverError, ServerSpec
from moorage.drivers.libvirt.vifs.contract import Vif
from moorage.drivers.libvirt.vifs.os_vif import OsVifs, OsVifSettings
from tests.support import debian, namespaces
from tests.support.namespaces import Namespace
from tests.support.processes import wait_until

pytest.importorskip("os_vif")

SERVER = ServerSpec("0c9a9f3e-0000-4000-8000-000000000001", "s", "p", "u", "n", {})
PORT = "7d5e31d2-1b5c-4000-8000-000000000001"
TAP = "tap7d5e31d2-1b"
MAC = "fa:16:3e:00:00:05"
MAKES_TAP: dict[str, Any] = {"ovs_create_tap": True, "bridge_name": "br-int", "datapath_type": "netdev"}
SCHEMA = Path("/usr/share/openvswitch/vswitch.ovsschema")


class Switch:
    """An Open vSwitch that needs no help of the kernel's."""

    def __init__(self, namespace: Namespace, directory: Path) -> None:
        self.connection = f"unix:{directory}/db.sock"
        self._environment = {**os.environ, "OVS_RUNDIR": str(directory), "OVS_LOGDIR": str(directory)}
        self._running: list[subprocess.Popen[bytes]] = []
        subprocess.run(["ovsdb-tool", "create", directory / "conf.db", SCHEMA], check=True)
        self._start(namespace, "ovsdb-server", f"--remote=p{self.connection}", str(directory / "conf.db"))
        wait_until((directory / "db.sock").exists, "the database", 30)
        self.control("--no-wait", "init")
        self._start(namespace, "ovs-vswitchd", self.connection)
        self.control("add-br", "br-int", "--", "set", "bridge", "br-int", "datapath_type=netdev")

    def _start(self, namespace: Namespace, program: str, *words: str) -> None:
        command = [*namespace.prefix, program, "--no-chdir", "--pidfile", *words]
        self._running.append(subprocess.Popen(command, env=self._environment, stderr=subprocess.DEVNULL))

    def control(self, *words: str) -> str:
        command = ["ovs-vsctl", "--retry", "--timeout=30", f"--db={self.connection}", *words]
        return subprocess.run(command, check=True, capture_output=True, text=True).stdout

    def names(self) -> list[str]:
        return self.control("list-ports", "br-int").split()

    def of_interface(self, name: str) -> dict[str, str]:
        (told,) = json.loads(
            self.control("--format=json", "--columns=external_ids", "find", "Interface", f"name={name}")
        )["data"]
        return dict(told[0][1])

    def stop(self) -> None:
        for process in reversed(self._running):
            process.terminate()
            process.wait()


@pytest.fixture(scope="module")
def host() -> Iterator[Namespace]:
    if not namespaces.can_be_made():
        pytest.skip("this needs root, and a kernel with namespaces and taps")
    try:
        debian.install("openvswitch-switch")
    except debian.Unavailable as error:
        pytest.skip(str(error))
    with namespaces.namespace() as made:
        yield made


@pytest.fixture(scope="module")
def switch(host: Namespace, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Switch]:
    running = Switch(host, tmp_path_factory.mktemp("ovs"))
    yield running
    running.stop()


def vifs_at(switch: Switch, directory: Path, *, offloads_off: bool = False) -> OsVifs:
    vifs = OsVifs(OsVifSettings(directory / "vifs", switch.connection, offloads_off))
    vifs.load()
    return vifs


def port(vif_type: str = "ovs", /, **details: Any) -> dict[str, Any]:
    return {
        "id": PORT,
        "network_id": "5c1d7a52-aaaa-4000-8000-000000000001",
        "mac": MAC,
        "mtu": 1442,
        "vif_type": vif_type,
        "vif_details": details,
    }


def test_a_tap_is_made_that_ovn_finds_by_its_port(switch: Switch, host: Namespace, tmp_path: Path) -> None:
    vifs = vifs_at(switch, tmp_path)
    vif = host.call(lambda: vifs.plug(SERVER, port(**MAKES_TAP)))
    assert vif == Vif(PORT, MAC, TAP, 1442)
    assert switch.names() == [TAP]
    told = switch.of_interface(TAP)
    assert (told["iface-id"], told["attached-mac"], told["vm-uuid"]) == (PORT, MAC, SERVER.uuid)
    shown = host.run("ip", "link", "show", TAP)
    assert "mtu 1442" in shown
    assert host.call(lambda: vifs.plug(SERVER, port(**MAKES_TAP))) == vif
    assert switch.names() == [TAP]
    after_a_restart = vifs_at(switch, tmp_path)
    for _ in range(2):
        host.call(lambda: after_a_restart.unplug(SERVER.uuid, vif))
        assert switch.names() == []
        assert TAP not in host.run("ip", "link", "show")
    assert switch.control("get", "bridge", "br-int", "datapath_type").strip() == "netdev"


def test_a_port_without_a_word_about_it_leaves_the_bridge_its_datapath(
    switch: Switch, host: Namespace, tmp_path: Path
) -> None:
    """Else Open vSwitch would make the bridge anew, and all ports on it were cut off."""
    vifs, told = vifs_at(switch, tmp_path), port(ovs_create_tap=True)
    identity = switch.control("get", "bridge", "br-int", "datapath_id")
    vif = host.call(lambda: vifs.plug(SERVER, told))
    assert switch.control("get", "bridge", "br-int", "datapath_type").strip() == "netdev"
    assert switch.control("get", "bridge", "br-int", "datapath_id") == identity
    assert switch.names() == [TAP]
    host.call(lambda: vifs.unplug(SERVER.uuid, vif))


def test_what_somebody_else_has_plugged_is_unplugged_once_it_is_adopted(
    switch: Switch, host: Namespace, tmp_path: Path
) -> None:
    somebody, ours = vifs_at(switch, tmp_path / "somebody"), vifs_at(switch, tmp_path / "ours")
    vif = host.call(lambda: somebody.plug(SERVER, port(**MAKES_TAP)))
    host.call(lambda: ours.unplug(SERVER.uuid, vif))
    assert switch.names() == [TAP]
    ours.adopt(SERVER, port(ovs_create_tap=True))
    host.call(lambda: ours.unplug(SERVER.uuid, vif))
    assert switch.names() == []
    assert TAP not in host.run("ip", "link", "show")


def test_what_libvirt_plugs_is_left_to_it(switch: Switch, tmp_path: Path) -> None:
    vifs = vifs_at(switch, tmp_path, offloads_off=True)
    vif = vifs.plug(SERVER, port(bridge_name="br-ovn"))
    assert vif == Vif(PORT, MAC, TAP, 1442, bridge="br-ovn", interface_id=PORT, offloads_off=True)
    assert vifs.plug(SERVER, port()).bridge == "br-int"
    assert vifs.plug(SERVER, port("bridge")).bridge == "brq5c1d7a52-aa"
    vifs.unplug(SERVER.uuid, vif)
    assert switch.names() == []


@pytest.mark.parametrize(
    ("told", "reason"),
    [
        (port("binding_failed"), "could not bind it to this host"),
        (port("unbound"), "bound it to no host"),
        (port(""), "has not said how"),
        (port("vhostuser"), "knows its type, vhostuser"),
        (port("ovs", ovs_hybrid_plug=True), "firewall driver"),
    ],
)
def test_what_can_not_be_plugged_is_refused_with_a_reason(
    told: dict[str, Any], reason: str, tmp_path: Path
) -> None:
    with pytest.raises(DriverError, match=reason) as refused:
        OsVifs(OsVifSettings(tmp_path / "vifs")).plug(SERVER, told)
    assert refused.value.retry_elsewhere
