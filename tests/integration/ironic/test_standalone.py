"""Bare metal with an Ironic and nothing else: `moorage up` on it, images by URL, the client; and SIGKILL."""

from __future__ import annotations

import hashlib
import json
import os
import pty
import signal
import subprocess
import threading
from collections.abc import Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from moorage.core import uuids
from tests.lab.client.openstack import CLIENT, ClientError, openstack, order, without_cloud
from tests.lab.ironic import service as ironic
from tests.lab.ironic.nodes import Nodes
from tests.support import postgres
from tests.support.moorage import PROGRAMS
from tests.support.processes import Service, free_port, start_service, wait_until
from tests.support.profiles import ini
from tests.support.websockets import WebSocketClient

pytestmark = pytest.mark.timeout(900)
"""The first test waits until Ironic has started."""

CLOUD = "moorage"
HASH = hashlib.sha512(b"an image").hexdigest()


class QuietFiles(SimpleHTTPRequestHandler):
    def log_message(self, format: str, *args: Any) -> None:
        """Nobody reads it."""


class Standalone:
    """An operator's shell."""

    def __init__(self, directory: Path, metal: Nodes, files: str) -> None:
        self.metal = metal
        self._files = files
        self._data = directory / "data"
        self._log = directory / "up.log"
        self._config = directory / "moorage.conf"
        self._ports = free_port(), free_port(), free_port()
        self.serve("a")
        self.service: Service | None = None

    def serve(self, group: str) -> None:
        reached = {"auth_type": "none", "endpoint": self.metal.url, "poll_interval": "0.3"}
        sections = {"ironic": {**reached, "partition_key": group}, "agent": {"inventory_interval": "1.5"}}
        self._config.write_text(ini(sections))
        self._config.chmod(0o600)

    def serve_from_now_on(self, group: str) -> None:
        self.serve(group)
        assert self.service is not None
        self.service.process.send_signal(signal.SIGHUP)

    def machine(self, name: str) -> str:
        return next(uuid for uuid, one in self.metal.all().items() if one["name"] == name)

    def await_owned(self, *names: str) -> None:
        """By some host: these, and no others."""

        def owned() -> bool:
            return {one["name"] for one in self.machines()["nodes"] if one["host"]} == set(names)

        wait_until(owned, f"{names} to be owned", 60)

    def up(self) -> None:
        placement, compute, console = map(str, self._ports)
        command: list[str | Path] = [
            *(PROGRAMS / "moorage", "up", "--driver", "ironic", "--config", self._config),
            *("--data", self._data, "--hosts", "2", "--placement-port", placement),
            *("--compute-port", compute, "--console-port", console),
        ]
        self.service = start_service(command, self._ports[1], self._log, timeout=180)

    @property
    def greeting(self) -> str:
        return self._log.read_text()

    def command(self, *arguments: str) -> str:
        ran = subprocess.run(
            [str(PROGRAMS / "moorage"), *arguments],
            env=without_cloud(os.environ),
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )
        assert ran.returncode == 0, ran.stdout + ran.stderr
        return ran.stdout

    def doctor(self) -> str:
        return self.command("doctor", "--driver", "ironic", "--config", str(self._config))

    def listed(self, *options: str) -> str:
        return self.command("nodes", "--config-file", str(self._config), "--data", str(self._data), *options)

    def machines(self, *filters: str) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(self.listed("--json", *filters))
        return found

    def add_image(self, name: str, **properties: str) -> None:
        """By a URL, with what the machine gets held against its checksum."""
        given = [f"--property=baremetal:{key}={value}" for key, value in properties.items()]
        where = ("--url", self.url(name), "--checksum", f"sha512:{HASH}", "--data", str(self._data))
        self.command("image", "add", name, *where, *given)

    def create_image(self, name: str, *more: str) -> None:
        """Without data: the client takes its standard input for such, unless that is a terminal."""
        command = [str(CLIENT.bin() / "openstack"), "image", "create", *more, name]
        command += ["--disk-format", "raw", "--container-format", "bare"]
        cloud = {"OS_CLIENT_CONFIG_FILE": str(self._data / "clouds.yaml"), "OS_CLOUD": CLOUD}
        ours, terminal = pty.openpty()
        try:
            subprocess.run(command, env={**without_cloud(os.environ), **cloud}, stdin=terminal, check=True)
        finally:
            os.close(ours)
            os.close(terminal)

    def url(self, name: str) -> str:
        """Where a machine would fetch it from."""
        self.metal.image(name)
        return f"{self._files}/{name}"

    def openstack(self, *arguments: str) -> Any:
        return openstack(self._data / "clouds.yaml", CLOUD, *arguments)

    def order(self, *arguments: str) -> str:
        return order(self._data / "clouds.yaml", CLOUD, *arguments)

    def boot(self, name: str, *more: str) -> str:
        command = ("server", "create", "--flavor", "gold", "--image", "whole", "--nic", "none")
        return str(self.openstack(*command, *more, name)["id"])

    def await_status(self, server: str, status: str) -> dict[str, Any]:
        shown: dict[str, Any] = {}

        def there() -> bool:
            shown.update(self.openstack("server", "show", server))
            assert status == "ERROR" or shown["status"] != "ERROR", shown
            return shown["status"] == status and shown["OS-EXT-STS:task_state"] is None

        wait_until(there, status, 240)
        return shown

    def serial_line(self, server: str) -> WebSocketClient:
        shown = self.openstack("console", "url", "show", "--serial", server)
        return WebSocketClient(str(shown["url"]), timeout=30)

    def delete(self, server: str) -> None:
        self.order("server", "delete", "--wait", server)

    def await_free(self, node: str) -> None:
        wait_until(lambda: self.metal.show(node)["provision_state"] == "available", "the node", 120)


@pytest.fixture(scope="module")
def metal(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Nodes]:
    directory = tmp_path_factory.mktemp("ironic")
    with postgres.start() as database, ironic.running(directory, database, ("a", ""), 1) as made:
        for number in range(3):
            line = {"lab_console_port": free_port()}
            made.enrol(f"a-{number}", "a", console_interface="lab", driver_info=line)
        made.enrol("b-0", "")
        yield made


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory, metal: Nodes) -> Iterator[Standalone]:
    files = ThreadingHTTPServer(("127.0.0.1", 0), partial(QuietFiles, directory=str(metal.directory)))
    threading.Thread(target=files.serve_forever, daemon=True).start()
    at = f"http://127.0.0.1:{files.server_address[1]}"
    made = Standalone(tmp_path_factory.mktemp("moorage"), metal, at)
    made.up()
    wait_until(lambda: len(made.openstack("hypervisor", "list")) == 3, "the nodes", 120)
    flavor = "flavor create --vcpus 1 --ram 1024 --disk 10 --property resources:CUSTOM_GOLD=1"
    for name in ("VCPU", "MEMORY_MB", "DISK_GB"):
        flavor += f" --property resources:{name}=0"
    assert flavor in made.doctor(), "what an operator has to type is said"
    made.order(*flavor.split(), "gold")
    made.add_image("whole", image_type="whole-disk")
    yield made
    if made.service is not None:
        made.service.stop()
    files.shutdown()


def test_an_operator_is_told_what_to_do_and_sees_every_machine(site: Standalone) -> None:
    assert "doctor --driver ironic" in site.greeting
    found = site.machines()["nodes"]
    assert {one["name"]: one["state"] for one in found} == {
        f"{name}": "free" for name in ("a-0", "a-1", "a-2", "b-0")
    }
    assert {one["host"] for one in found if one["name"] != "b-0"} <= {"ironic-1", "ironic-2"}
    assert [one["name"] for one in site.machines("--unserved")["nodes"]] == ["b-0"]


def test_what_operators_do_to_machines_is_seen(site: Standalone) -> None:
    """One is mended, one retired, one somebody's, and one deployed by hand; then all are as before."""
    mended, old, lent, by_hand = (site.machine(name) for name in ("a-0", "a-1", "a-2", "b-0"))
    site.metal.ask("PUT", f"nodes/{mended}/maintenance", {"reason": "a new disk"})
    site.metal.provision(old, "manage", "manageable")
    site.metal.change(old, retired=True)
    stranger = uuids.generate()
    site.metal.change(lent, instance_uuid=stranger)
    whole = {"image_source": site.metal.image("own"), "image_type": "whole-disk"}
    site.metal.change(by_hand, instance_info=whole)
    site.metal.provision(by_hand, "active", "active")
    assert {one["name"]: (one["state"], one["reason"]) for one in site.machines()["nodes"]} == {
        "a-0": ("maintenance", "a new disk"),
        "a-1": ("retired", ""),
        "a-2": ("of others", stranger),
        "b-0": ("deployed for nobody", ""),
    }
    assert [one["name"] for one in site.machines("--state", "retired")["nodes"]] == ["a-1"]
    refused = site.boot("nowhere")
    assert "No valid host" in str(site.await_status(refused, "ERROR")["fault"])
    site.delete(refused)
    site.metal.ask("DELETE", f"nodes/{mended}/maintenance")
    site.metal.change(old, retired=False)
    site.metal.provision(old, "provide", "available")
    site.metal.ask("PATCH", f"nodes/{lent}", [{"op": "remove", "path": "/instance_uuid"}])
    site.metal.provision(by_hand, "deleted", "available")
    assert {one["state"] for one in site.machines()["nodes"]} == {"free"}
    for node in (mended, old, lent):
        wait_until(partial(has_room, site, node), "the machine to be offered", 60)


def has_room(site: Standalone, node: str) -> bool:
    """As Placement says, which the agent tells."""
    found = site.openstack("resource", "provider", "inventory", "list", node)
    return bool(found) and all(unit["reserved"] == 0 for unit in found)


def test_a_machine_is_deployed_rebuilt_and_given_back_without_glance(site: Standalone) -> None:
    server = site.boot("life")
    node = site.await_status(server, "ACTIVE")["OS-EXT-SRV-ATTR:hypervisor_hostname"]
    line = site.serial_line(server)
    line.send(b"anybody there?\n")
    assert b"anybody there?" in line.receive(14), "through our own proxy, by our own token"
    info = site.metal.show(node)["instance_info"]
    deployable(info)
    assert info["image_type"] == "whole-disk"
    assert (info["image_os_hash_algo"], info["image_os_hash_value"]) == ("sha512", HASH)
    parts = {name: site.url(name) for name in ("kernel", "ramdisk")}
    site.add_image("parts", image_type="partition", **parts)
    site.order("server", "rebuild", "--image", "parts", "life")
    wait_until(
        lambda: site.metal.show(node)["instance_info"].get("image_type") == "partition", "rebuild", 120
    )
    site.await_status(server, "ACTIVE")
    info = site.metal.show(node)["instance_info"]
    deployable(info)
    assert {name: info[name] for name in parts} == parts
    assert info["image_source"].endswith("/parts")
    site.delete(server)
    line.await_end()
    site.await_free(node)


def test_a_machine_is_deployed_from_an_image_that_the_client_imported(site: Standalone) -> None:
    """What it fetches itself is held against the checksum of what we have fetched."""
    site.create_image("imported", "--property", "baremetal:image_type=whole-disk")
    site.order("image", "import", "--method", "web-download", "--uri", site.url("imported"), "imported")
    wait_until(lambda: site.openstack("image", "show", "imported")["status"] == "active", "the import", 60)
    server = site.boot("from-afar", "--image", "imported")
    node = site.await_status(server, "ACTIVE")["OS-EXT-SRV-ATTR:hypervisor_hostname"]
    info = site.metal.show(node)["instance_info"]
    deployable(info)
    assert info["image_source"] == site.url("imported")
    assert (info["image_os_hash_algo"], info["image_os_hash_value"]) == ("sha512", HASH)
    site.delete(server)
    site.await_free(node)


def deployable(info: dict[str, Any]) -> None:
    """What Ironic's `direct` deploy asks for if there is no Glance: the lab's fake one asks for nothing."""
    assert info["image_source"].startswith("http://")
    assert info.get("image_checksum") or (info["image_os_hash_algo"] and info["image_os_hash_value"])
    if info["image_type"] == "partition":
        assert info["kernel"]
        assert info["ramdisk"]
        assert int(info["root_gb"]) > 0


@pytest.mark.parametrize("by", ["hint", "zone", "hypervisor"])
def test_one_certain_machine_can_be_asked_for(site: Standalone, by: str) -> None:
    node = next(uuid for uuid, one in site.metal.all().items() if one["name"] == "a-1")
    host = site.openstack("hypervisor", "show", node)["service_host"]
    asked = {
        "hint": ("--hint", "candidate_node=a-1"),
        "zone": ("--availability-zone", f"nova:{host}:{node}"),
        "hypervisor": ("--hypervisor-hostname", node),
    }[by]
    server = site.boot("certain", *asked)
    assert site.await_status(server, "ACTIVE")["OS-EXT-SRV-ATTR:hypervisor_hostname"] == node
    second = site.boot("second", *asked)
    site.await_status(second, "ERROR")
    site.delete(second)
    site.delete(server)
    site.await_free(node)
    wait_until(partial(offered, site, node), "the machine to be offered", 60)


def offered(site: Standalone, node: str) -> bool:
    (machine,) = [one for one in site.machines()["nodes"] if one["uuid"] == node]
    return bool(machine["state"] == "free")


def test_a_machine_that_does_not_exist_is_refused(site: Standalone) -> None:
    server = site.boot("nowhere", "--hint", "candidate_node=no-such-machine")
    shown = site.await_status(server, "ERROR")
    assert "There is no machine no-such-machine" in str(shown["fault"])
    site.delete(server)
    with pytest.raises(ClientError, match="could not be found"):
        site.boot("nowhere", "--hypervisor-hostname", "no-such-machine")


def test_a_process_that_is_killed_in_mid_deploy_goes_on(site: Standalone) -> None:
    server = site.boot("survivor")

    def deploying() -> bool:
        on = [one for one in site.metal.all().values() if one["instance_uuid"] == server]
        return any(one["provision_state"] in ("deploying", "wait call-back") for one in on)

    wait_until(deploying, "the deployment", 120)
    assert site.service is not None
    site.service.kill()
    site.up()
    node = site.await_status(server, "ACTIVE")["OS-EXT-SRV-ATTR:hypervisor_hostname"]
    assert site.metal.show(node)["instance_uuid"] == server
    site.delete(server)
    site.await_free(node)


def test_the_unnamed_group_is_served_by_itself(site: Standalone) -> None:
    """A changed file applies with a hangup. `partition_key =` is not the same as no such line."""
    site.serve_from_now_on("")
    site.await_owned("b-0")
    found = site.machines()
    assert {one["name"] for one in found["nodes"] if not one["served"]} == {"a-0", "a-1", "a-2"}
    assert found["warnings"] == ["no host that is up serves 3 of these machines"]
    assert site.metal.show(site.machine("b-0"))["conductor_group"] == ""
    wait_until(partial(offered, site, site.machine("b-0")), "the machine to be offered", 60)
    server = site.boot("unnamed")
    node = site.await_status(server, "ACTIVE")["OS-EXT-SRV-ATTR:hypervisor_hostname"]
    assert node == site.machine("b-0")
    (listed,) = site.machines("--group", "")["nodes"]
    assert (listed["state"], listed["server"], listed["served"]) == ("in use", server, True)
    site.delete(server)
    site.await_free(node)


def test_a_group_without_machines_is_told_and_so_are_machines_that_nobody_serves(site: Standalone) -> None:
    site.serve_from_now_on("no-such-rack")
    site.await_owned()
    found = site.machines()
    assert {(one["served"], one["host"]) for one in found["nodes"]} == {(False, None)}
    assert {one["name"] for one in found["nodes"]} == {"a-0", "a-1", "a-2", "b-0"}
    assert found["warnings"] == [
        "no host that is up serves 4 of these machines",
        "host ironic-1 serves group no-such-rack, which has no machines",
        "host ironic-2 serves group no-such-rack, which has no machines",
    ]
    shown = site.listed()
    assert shown.count("served by nobody") == 4
    assert "there are no nodes of group no-such-rack" in site.doctor()
    site.serve_from_now_on("a")
    site.await_owned("a-0", "a-1", "a-2")
