"""Moorage in pieces on this machine, with agents on the hosts of a libvirt lab, and people who use it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.integration.libvirt.cloud_guests import GuestCloud
from tests.lab.libvirt.hosts import CLIENT_TIMEOUT, LibvirtHost, LibvirtLab
from tests.support import moorage, postgres, rabbitmq
from tests.support.guest_image import GuestImage

GENTLE = {"shutdown_timeout": "60", "soft_reboot_timeout": "60"}
"""These guests know their power button."""


@dataclass
class GuestSite:
    deployment: GuestDeployment
    cloud: GuestCloud

    @property
    def lab(self) -> LibvirtLab:
        return self.deployment.lab

    @property
    def instances(self) -> Path:
        """The storage that hosts share."""
        return self.lab.shared / "instances"

    def host_of(self, name: str) -> LibvirtHost:
        return self.lab.hosts[str(self.cloud.show(name)["OS-EXT-SRV-ATTR:host"])]


@contextmanager
def running(lab: LibvirtLab, directory: Path, image: GuestImage) -> Iterator[GuestSite]:
    """With PostgreSQL and RabbitMQ; `debian.Unavailable` without."""
    address = lab.gateway
    ports = _Ports(address, free_port(), free_port(), free_port())
    with ExitStack() as stack:
        broker = stack.enter_context(rabbitmq.start(rabbitmq.CONFIGURATION + _BROKER.format(address=address)))
        database = stack.enter_context(postgres.start())
        admin = credentials.of_directory(directory)
        everywhere = _everywhere(f"rabbit://guest:guest@{address}:{broker.port}/", ports, admin)
        server = directory / "moorage.conf"
        server.write_text(
            ini({**everywhere, **_of_servers(database.create_database("moorage"), directory, admin)})
        )
        moorage.sync_database(server)
        clouds = directory / "clouds.yaml"
        endpoints = Endpoints(placement=ports.url(ports.placement), compute=ports.url(ports.api))
        clouds.write_text(credentials.clouds_yaml(endpoints, admin))
        site = GuestSite(lab, directory, {}, {}, GuestCloud(clouds, directory))
        for name, port in (("api", ports.api), ("placement", ports.placement), ("metadata", ports.metadata)):
            more = ("--listen", address, "--port", str(port))
            site.services[name] = stack.enter_context(_start(f"moorage-{name}", server, directory, more))
        site.services["conductor"] = stack.enter_context(_start("moorage-conductor", server, directory))
        for host in lab.hosts.values():
            runtime = stack.enter_context(cloud_guests.network_directory())
            config = directory / f"{host.name}.conf"
            text = ini({**everywhere, **_of_agent(site, host, runtime)})
            config.write_text(text.replace("%%", "%"))  # which is escaped for other readers than ours
            agent = host.start(
                [PROGRAMS / "moorage-agent", "--config-file", config],
                directory / f"{host.name}.log",
                cloud_guests.environment(),
            )
            site.agents[host.name] = stack.enter_context(agent)
        try:
            _furnish(site, image)
            yield site
        except NotReadyError as error:
            error.add_note(site.logs())
            raise


def _everywhere(broker_url: str, ports: _Ports, admin: Credentials) -> Settings:
    """What services and agents say alike."""
    access = {"auth_type": "http_basic", "username": admin.user, "password": admin.password}
    return {
        **_SHORT,
        "DEFAULT": {"transport_url": broker_url},
        "placement_client": {**access, "endpoint": ports.url(ports.placement)},
        "glance": {**access, "endpoint": f"{ports.url(ports.api)}/image"},
        "metadata": {"url": ports.url(ports.metadata), "shared_secret": secrets.token_hex()},
    }


def _of_servers(database_url: str, directory: Path, admin: Credentials) -> Settings:
    return {
        "database": {"connection": database_url},
        "auth": {"strategy": "basic", "basic_auth_file": str(admin.password_file)},
        "images": {"directory": str(directory / "images")},
    }


def _of_agent(site: GuestSite, host: LibvirtHost, runtime: Path) -> Settings:
    return {
        "agent": {
            "driver": "libvirt",
            "host": host.name,
            "state_directory": str(site.directory / f"state-{host.name}"),
            "heartbeat_interval": "1",
        },
        "libvirt": {
            "virt_type": "qemu",
            "instances_path": str(site.instances),
            "vnc_listen": host.address,
            "migration_uri": "qemu+tcp://%s/system",
            "client_timeout": str(CLIENT_TIMEOUT),
            "live_migration_inbound_addr": host.address,
            "live_migration_unsafe": "true",
            "network_directory": str(runtime),
            "tunnel_address": host.address,
            "tunnel_peers": ",".join(each.address for each in site.lab.hosts.values()),
        },
    }


def _start(program: str, config: Path, directory: Path, more: tuple[str, ...] = ()) -> Service:
    command: list[str | Path] = [PROGRAMS / program, "--config-file", config, *more]
    return start_service(command, 0, directory / f"{program}.log", ready=lambda: True)


def _furnish(site: GuestSite, image: GuestImage) -> None:
    cloud = site.cloud
    wait_until(cloud.answers, "the APIs", 120)
    cloud.furnish()
    shape = ("--disk-format", "qcow2", "--container-format", "bare", "--public")
    cloud.ask("image", "create", "--file", str(image.disk), *shape, "moorage-guest")

    def hosts_up() -> set[str]:
        services = cloud.ask("compute", "service", "list", "--service", "nova-compute")
        return {service["Host"] for service in services if service["State"] == "up"}

    wait_until(lambda: hosts_up() == set(site.lab.hosts), "all hosts to be up", 120)
    wait_until(
        lambda: len(cloud.ask("resource", "provider", "list")) == len(site.lab.hosts), "their nodes", 60
    )
    with guest_deployment.running_on(lab, directory, shape) as made:
        site = GuestSite(made, GuestCloud(made.clouds_file(0), directory))
        site.cloud.furnish()
        site.cloud.add_image(image)
        yield site
