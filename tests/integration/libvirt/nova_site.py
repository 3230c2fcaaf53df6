"""A real Nova with its libvirt driver, beside Keystone, Glance and Neutron with OVN; and what takes it over.

Nothing of Moorage runs at the beginning. Each step of the page `docs/compute/migrate.md` is a method here,
and does what that says.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from openstack.connection import Connection

from tests.integration.clouds import keystone_clouds
from tests.integration.libvirt.cloud_guests import GuestCloud, address_of
from tests.integration.libvirt.guest_site import GENTLE
from tests.integration.libvirt.ovn_site import CIDR, NETWORK, PATIENCE, OvnNeighbours, hosts_known
from tests.lab.libvirt import hosts, programs
from tests.lab.libvirt.hosts import LibvirtHost, LibvirtLab
from tests.lab.nova import libvirt_compute
from tests.lab.nova import service as nova_service
from tests.lab.nova.libvirt_compute import LibvirtComputes
from tests.lab.nova.service import Nova
from tests.lab.openstack import service
from tests.lab.openstack.service import OpenStack
from tests.lab.ovn import central, chassis, metadata
from tests.lab.pristine import KIND
from tests.support import moorage, postgres, rabbitmq, reference
from tests.support.guest_deployment import GuestDeployment, GuestShape
from tests.support.guest_image import GuestImage
from tests.support.moorage import PROGRAMS
from tests.support.processes import Service, free_port, wait_until

HOSTS = ("h1", "h2")
_PAGE = "1000"
"""Of lists: operators who look for endpoints want to see all of them."""


@dataclass
class NovaSite:
    nova: Nova
    deployment: GuestDeployment
    """Ours: written down, and not started."""
    openstack: OpenStack
    operator: GuestCloud
    user: GuestCloud
    """Somebody without rights, to whom all servers belong."""
    neutron: Connection
    placement: Service
    """Nova's."""
    placement_database: str
    network_id: str

    @property
    def lab(self) -> LibvirtLab:
        return self.deployment.lab

    def host_of(self, name: str) -> LibvirtHost:
        """Users are not told."""
        shown = self.operator.show(self.user.show(name)["id"])
        return self.lab.hosts[str(shown["OS-EXT-SRV-ATTR:host"])]

    def ssh(self, name: str, host: LibvirtHost, command: str, *, check: bool = True) -> str:
        """From the host that the guest is on, and there from the network's own namespace."""
        inside = ("ip", "netns", "exec", metadata.namespace_of(self.network_id))
        return self.user.ssh(host, address_of(self.user.show(name)), command, inside=inside, check=check)

    def metadata_of(self, name: str, host: LibvirtHost) -> dict[str, Any]:
        """As the guest itself hears it from Neutron's metadata agent."""
        address = "http://169.254.169.254/openstack/latest/meta_data.json"
        told: dict[str, Any] = json.loads(self.ssh(name, host, f"wget -q -O - {address}"))
        return told

    def ports(self, server_id: str) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = self.neutron.network.get(f"/ports?device_id={server_id}").json()[
            "ports"
        ]
        return found

    # ------------------------------------------------------------ the walk

    def set_up(self) -> None:
        moorage.sync_database(self.deployment.config)

    def rehearse(self) -> subprocess.CompletedProcess[str]:
        return self.manage("compute", "import", "--nova-conf", self._nova_conf, "--dry-run")

    def stop_nova(self) -> None:
        self.nova.control.pop("api").stop()
        assert self.rehearse().returncode == 0
        for compute in self.nova.computes.values():
            _end(compute)
        for compute in self.nova.computes.values():
            compute.process.wait(PATIENCE)
        for name in ("scheduler", "conductor", "metadata"):
            self.nova.control.pop(name).stop()
        self.placement.stop()

    def bring_over(self) -> list[subprocess.CompletedProcess[str]]:
        return [
            self.manage("placement", "import", "--from", self.placement_database),
            self.manage("compute", "import", "--nova-conf", self._nova_conf),
        ]

    def start_control_plane(self) -> str:
        """What the check says."""
        deployment = self.deployment
        deployment.placement.start()
        self._point("placement", deployment.placement_url)
        checked = self._run("moorage-status", "upgrade", "check")
        for part in (*deployment.apis, *deployment.conductors, *deployment.for_users):
            part.start()
        self.restart_neutron()
        return checked.stdout + checked.stderr

    def restart_neutron(self) -> None:
        self.openstack.neutron.kill()
        self.openstack.start_neutron_again()

    def adopt(self, host: str, *more: str) -> subprocess.CompletedProcess[str]:
        """On the host, with its agent's file; its node's UUID is brought before."""
        state = self.deployment.directory / host
        state.mkdir(mode=0o700, exist_ok=True)
        shutil.copy(self.nova.directory / f"compute-{host}" / "compute_id", state)
        config = self.deployment.directory / f"{host}.conf"
        words = ("env", f"PYTHONPATH={programs.binding()}", PROGRAMS / "moorage", "adopt-guests")
        command = self.lab.hosts[host].command(*words, "--config-file", config, *more)
        return subprocess.run(command, capture_output=True, text=True, check=False)

    def start_agent(self, host: str) -> None:
        self.deployment.agents[host].start()
        wait_until(lambda: host in self.deployment.hosts_up(), f"{host} to be up", PATIENCE)

    def look(self) -> GuestCloud:
        """The operator's, while the catalogue still names Nova."""
        told = json.loads(self.operator.clouds_file.read_text())
        cloud = told["clouds"][self.operator.user]
        cloud["compute_endpoint_override"] = f"{self.deployment.urls[0]}/v2.1"
        path = self.operator.clouds_file.with_name("looking.yaml")
        path.write_text(json.dumps(told))
        return GuestCloud(path, self.operator.directory, self.operator.user)

    def audit(self, cloud: GuestCloud) -> subprocess.CompletedProcess[str]:
        chosen = {"OS_CLIENT_CONFIG_FILE": str(cloud.clouds_file), "OS_CLOUD": cloud.user}
        command = [str(PROGRAMS / "moorage"), "audit"]
        environment = {**os.environ, **chosen}
        return subprocess.run(command, capture_output=True, text=True, check=False, env=environment)

    def open(self) -> None:
        """Clients that were connected have Nova's address still."""
        self._point("compute", f"{self.deployment.urls[0]}/v2.1")
        self.restart_neutron()
        self.operator, self.user = replace(self.operator), replace(self.user)

    def go_back(self) -> None:
        """Our agents end first, and Nova's come last."""
        deployment, port = self.deployment, urlsplit(self.nova.url).port
        for part in (*deployment.agents.values(), *deployment.parts):
            if part.service is not None:
                part.service.stop()
                part.service = None
        self.placement = reference.start(self.placement.log.parent, port=self.placement.port)
        self._point("placement", self.placement.url)
        self._point("compute", self.nova.url)
        self.restart_neutron()
        nova_service.start_again(self.nova, LibvirtComputes(self.lab), port or 0)
        nova_service.serve_metadata(self.nova, deployment.metadata_port)
        self.operator, self.user = replace(self.operator), replace(self.user)

    def manage(self, *words: str) -> subprocess.CompletedProcess[str]:
        return self._run("moorage-manage", *words)

    @property
    def _nova_conf(self) -> str:
        return str(self.nova.directory / "nova.conf")

    def _run(self, program: str, *words: str) -> subprocess.CompletedProcess[str]:
        command = [str(PROGRAMS / program), "--config-file", str(self.deployment.config), *words]
        return subprocess.run(command, capture_output=True, text=True, check=False)

    def _point(self, kind: str, url: str) -> None:
        """All endpoints of a service in the catalogue."""
        for endpoint in self.operator.ask("endpoint", "list", "--service", kind):
            self.operator.order("endpoint", "set", "--url", url, endpoint["ID"])

    def logs(self) -> str:
        return f"{self.nova.logs()}\n{self.deployment.logs(40)}"


@contextmanager
def running(directory: Path, image: GuestImage) -> Iterator[NovaSite]:
    """`debian.Unavailable` where what it needs can neither be found nor installed."""
    for part in (central, metadata, libvirt_compute):
        part.install()
    with ExitStack() as stack:
        lab = stack.enter_context(hosts.running(directory / "lab", HOSTS, connected=True))
        databases = stack.enter_context(central.running(directory / "central", lab.gateway))
        stack.enter_context(chassis.running(lab, databases))
        kind = stack.enter_context(postgres.start(KIND))
        placement_database = kind.create_database("placement_reference")
        placement = stack.enter_context(_placement(directory / "placement", placement_database))
        port = free_port()
        services = {"compute": f"http://127.0.0.1:{port}/v2.1", "placement": placement.url}
        openstack = stack.enter_context(
            service.start(directory / "openstack", services, databases, page=_PAGE)
        )
        deployment = _deployment(stack, lab, directory / "moorage", openstack)
        reached = (openstack.keystone.port, openstack.ports["glance"], openstack.ports["neutron"])
        for name, host in lab.hosts.items():
            deployment.lead(name, (*reached, placement.port))
            metadata.start(host, databases, deployment.metadata_port, deployment.metadata_secret)
        neutron = openstack.connect(openstack.moorage)
        wait_until(lambda: hosts_known(neutron) >= set(HOSTS), "Neutron to know the hosts", PATIENCE)
        secret = {
            "service_metadata_proxy": "true",
            "metadata_proxy_shared_secret": deployment.metadata_secret,
        }
        started = nova_service.running(
            *(directory / "nova", kind, openstack, placement.url, HOSTS),
            port=port,
            start_compute=LibvirtComputes(lab),
            more={"neutron": secret},
        )
        nova = stack.enter_context(started)
        nova_service.serve_metadata(nova, deployment.metadata_port)
        stack.callback(_kill_all, nova)
        clouds = directory / "clouds.yaml"
        clouds.write_text(keystone_clouds(openstack.keystone, openstack.moorage, openstack.demo))
        operator, user = (
            GuestCloud(clouds, directory, each.name) for each in (openstack.moorage, openstack.demo)
        )
        network = _furnish(operator, user, image)
        yield NovaSite(
            nova, deployment, openstack, operator, user, neutron, placement, placement_database, network
        )


def _deployment(stack: ExitStack, lab: LibvirtLab, directory: Path, openstack: OpenStack) -> GuestDeployment:
    directory.mkdir()
    broker = stack.enter_context(rabbitmq.room())
    database = stack.enter_context(postgres.start())
    shape = GuestShape(
        conductors=1,
        names=tuple(lab.hosts),
        for_users=True,
        # Open vSwitch works without the kernel here.
        options=tuple({**GENTLE, "guest_offloads": "false"}.items()),
    )
    made = GuestDeployment(directory, database, broker, lab, shape, OvnNeighbours(openstack))
    stack.callback(made.stop)
    return made


def _furnish(operator: GuestCloud, user: GuestCloud, image: GuestImage) -> str:
    """With what a user needs to boot guests that can be reached by SSH; the network's id."""
    flavor = ("--vcpus", "1", "--ram", "192", "--disk", "1", "--swap", "16")
    operator.ask("flavor", "create", *flavor, "m1.guest")
    shape = ("--disk-format", "qcow2", "--container-format", "bare", "--public")
    agent = ("--property", "hw_qemu_guest_agent=yes")
    operator.ask("image", "create", "--file", str(image.disk), *shape, *agent, "moorage-guest")
    user.add_key()
    network = str(user.ask("network", "create", NETWORK)["id"])
    user.order("subnet", "create", "--network", NETWORK, "--subnet-range", CIDR, NETWORK)
    user.order("security", "group", "rule", "create", "--protocol", "tcp", "--dst-port", "22", "default")
    return network


@contextmanager
def _placement(directory: Path, database_url: str) -> Iterator[Service]:
    directory.mkdir()
    reference.configure(directory, database_url)
    reference.sync_database(directory)
    with reference.start(directory) as started:
        yield started


def _end(compute: Service) -> None:
    """As its unit does: what it was started by, from outside the host, would not pass that on."""
    for pid in compute.pids()[1:]:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGTERM)


def _kill_all(nova: Nova) -> None:
    for each in (*nova.control.values(), *nova.computes.values()):
        each.kill()
