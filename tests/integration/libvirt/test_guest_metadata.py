"""A guest on a built-in network asks 169.254.169.254 who it is: the agent of its host vouches for it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from moorage.agent.metadata_forwarder import ForwarderSettings, GuestOnHost, MetadataForwarder
from moorage.cli.embedded.cloud import METADATA_PATH
from moorage.drivers.contract import ServerSpec
from moorage.drivers.libvirt.vifs.bridge import BridgeSettings, BridgeVifs
from moorage.drivers.libvirt.vifs.system_commands import SystemCommands
from moorage.http.server import HttpServer
from tests.functional.conductor.conftest import Yard
from tests.integration.libvirt.test_guest_networks import PACKAGES, port_of_guest
from tests.support import debian, namespaces
from tests.support.namespaces import Namespace
from tests.support.processes import free_port, wait_until

SECRET = "sesame"


@pytest.fixture
def stack(tmp_path: Path) -> Iterator[ExitStack]:
    """Ends before the directory goes by which dnsmasq is found."""
    if not namespaces.can_be_made():
        pytest.skip("this needs root, and a kernel with namespaces and taps")
    try:
        debian.install(*PACKAGES)
    except debian.Unavailable as error:
        pytest.skip(str(error))
    with ExitStack() as made:
        yield made


@pytest.fixture
def cloud(tmp_path: Path) -> Iterator[Yard]:
    options: dict[str, Any] = {"metadata.shared_secret": SECRET}
    yard = Yard(f"sqlite:///{tmp_path / 'moorage.sqlite'}", tmp_path / "agents", 1, **options)
    yield yard
    yard.stop()


def asked(guest: Namespace, path: str) -> str:
    return guest.run("busybox", "wget", "-q", "-O", "-", f"http://169.254.169.254{path}", check=False)


def test_a_guest_learns_who_it_is_from_the_agent_of_its_host(
    stack: ExitStack, cloud: Yard, tmp_path: Path
) -> None:
    [server] = cloud.boot(name="one", hostname="uno")
    cloud.await_status([server], "ACTIVE")
    port = free_port()
    api = HttpServer("127.0.0.1", port, cloud.cloud.application(), threads=2, longest_body=10_000)
    api.start()
    stack.callback(api.stop, 5)
    host = stack.enter_context(namespaces.namespace())
    settings = BridgeSettings(
        host.name, tmp_path / "ports", tmp_path / "run", commands=SystemCommands(host.prefix)
    )
    tmp_path.chmod(0o755)
    vifs = BridgeVifs(settings)

    def find(address: str) -> GuestOnHost | None:
        uuid = vifs.server_at(address)
        return None if uuid is None else GuestOnHost(uuid, "fake-1")

    url = f"http://127.0.0.1:{port}{METADATA_PATH}"
    forwarder = host.call(lambda: MetadataForwarder(ForwarderSettings(url, SECRET), find))
    forwarder.start()
    stack.callback(forwarder.stop)
    guests = {}
    for number, uuid in ((5, server), (6, "66666666-0000-4000-8000-000000000000")):
        vif = vifs.plug(ServerSpec(uuid, "s", "p", "u", "n", {}), port_of_guest(number))
        stack.callback(vifs.unplug, uuid, vif)
        guest = stack.enter_context(namespaces.guest(host, vif.tap, vif.mac))
        guest.run("ip", "address", "replace", f"10.99.0.{number}/24", "dev", "eth0")
        guest.run("ip", "route", "replace", "default", "via", "10.99.0.1")
        guests[number] = guest
    wait_until(lambda: asked(guests[5], "/latest/meta-data/hostname") == "uno", "an answer", 20)
    assert server in asked(guests[5], "/openstack/latest/meta_data.json")
    assert asked(guests[6], "/latest/meta-data/hostname") == ""
    guests[6].run("ip", "address", "add", "10.99.0.5/24", "dev", "eth0")
    guests[6].run("ip", "route", "add", "169.254.169.254", "via", "10.99.0.1", "src", "10.99.0.5")
    stolen = (
        "busybox",
        "wget",
        "-q",
        "-T",
        "3",
        "-O",
        "-",
        "http://169.254.169.254/latest/meta-data/hostname",
    )
    assert guests[6].run(*stolen, check=False) == ""
