"""Who took a Nova over and looked around goes back to it: it goes on with its guests, which run all the
while.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from moorage.drivers.libvirt.vifs.contract import tap_of
from tests.integration.libvirt import cloud_guests, nova_site
from tests.integration.libvirt.nova_site import HOSTS, NovaSite
from tests.integration.libvirt.ovn_site import NETWORK, PATIENCE
from tests.lab.libvirt import programs
from tests.support.debian import Unavailable
from tests.support.processes import wait_until

pytest.importorskip("os_vif")
pytestmark = [
    pytest.mark.timeout(1200),
    pytest.mark.skipif(
        not os.environ.get("MOORAGE_MACHINES"),
        reason="a Nova and its guests cost minutes of processor time: make machines",
    ),
]
NAME = "guest"


def test_nova_goes_on_with_guests_that_were_adopted(tmp_path: Path) -> None:
    image = cloud_guests.needed_programs()
    programs.use_binding()
    try:
        with nova_site.running(tmp_path / "nova", image) as site:
            try:
                _go_there_and_back(site)
            finally:
                print(site.logs())
    except Unavailable as missing:
        pytest.skip(str(missing))


def _go_there_and_back(site: NovaSite) -> None:
    user = site.user
    user.create(NAME, "--network", NETWORK)
    user.await_status(NAME, "ACTIVE", PATIENCE)
    user.await_log(NAME, "guest: root /dev/vda1 boots=1")
    server, host = user.show(NAME)["id"], site.host_of(NAME)
    shown, pid, [port] = site.operator.show(server), host.guest_pids()[server], site.ports(server)
    _take_over(site)
    assert site.user.status(NAME) == "ACTIVE"

    site.go_back()
    user = site.user
    assert host.guest_pids()[server] == pid
    told = site.operator.show(server)
    assert {**told, "updated": ""} == {**shown, "updated": ""}
    user.order("server", "stop", NAME)
    user.await_status(NAME, "SHUTOFF")
    user.order("server", "start", NAME)
    user.await_status(NAME, "ACTIVE")
    user.await_log(NAME, "guest: root /dev/vda1 boots=2")
    user.create("new", "--network", NETWORK)
    user.await_status("new", "ACTIVE", PATIENCE)
    user.order("server", "delete", "--wait", NAME, "new")
    directory = site.lab.private(host.name) / server
    wait_until(lambda: not directory.exists(), "Nova to remove what is left", PATIENCE)
    assert server not in host.guest_pids()
    assert tap_of(port["id"]) not in host.run("ovs-vsctl", "list-ports", "br-int").split()


def _take_over(site: NovaSite) -> None:
    site.set_up()
    site.stop_nova()
    assert [each.returncode for each in site.bring_over()] == [0, 0]
    site.start_control_plane()
    for host in HOSTS:
        assert site.adopt(host).returncode == 0
        site.start_agent(host)
    site.open()
