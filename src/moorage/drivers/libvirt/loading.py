"""The driver `libvirt`, as it is configured."""

from __future__ import annotations

import os
from collections.abc import Iterable
from functools import partial
from pathlib import Path

import msgspec

from moorage.core.config import ConfigError
from moorage.drivers.contract import Node, ServerSpec
from moorage.drivers.image_store import ImageStore
from moorage.drivers.libvirt.backend import Backend
from moorage.drivers.libvirt.connection import Connection
from moorage.drivers.libvirt.domains import Domains, speaking
from moorage.drivers.libvirt.driver import LibvirtDriver
from moorage.drivers.libvirt.forgotten_guests import ForgottenGuests
from moorage.drivers.libvirt.guest_places import GuestPlaces, topologies
from moorage.drivers.libvirt.host.inventory import HostInventory
from moorage.drivers.libvirt.host.node_identity import node_uuid
from moorage.drivers.libvirt.host.settings import GuestSettings, HostSettings
from moorage.drivers.libvirt.host.topology import GuestTopology
from moorage.drivers.libvirt.settings import LibvirtSettings
from moorage.drivers.libvirt.start_gate import StartGate
from moorage.drivers.libvirt.status_files import LAST_WORDS, StatusFiles
from moorage.drivers.libvirt.storage import server_directory
from moorage.drivers.libvirt.storage.image_cache import DIRECTORY, ImageCache
from moorage.drivers.libvirt.stuck_starts import StuckStarts
from moorage.drivers.libvirt.vifs.connect import connect
from moorage.drivers.libvirt.vifs.contract import Vifs
from moorage.drivers.plugin import DriverContext, Loaded


def load(context: DriverContext) -> Loaded:
    settings = LibvirtSettings.from_conf(context.conf)
    host_settings = HostSettings.from_conf(context.conf, guest_settings(settings))
    vifs = connect(context.conf, context.host, context.directory)
    return Loaded(driver(context.host, context.directory, settings, host_settings, context.images, vifs))


def driver(
    host: str,
    directory: Path,
    settings: LibvirtSettings,
    host_settings: HostSettings,
    images: ImageStore,
    vifs: Vifs,
) -> LibvirtDriver:
    """`directory` is where the agent keeps what has to survive a restart."""
    _prepare(settings.instances_path)
    connection = Connection(settings.connection_uri, settings.reconnect_seconds)
    uuid = node_uuid(directory)
    files = StatusFiles(settings.state_path, uuid)
    connection.on_loss(partial(files.mend, LAST_WORDS))
    guests = partial(topologies, settings.instances_path, uuid)
    inventory = HostInventory(host, connection.current, host_settings, directory, guests)

    def choose(spec: ServerSpec, others: Iterable[GuestTopology]) -> GuestTopology:
        with speaking("choose a place for a guest"):
            return connection.run(lambda _: inventory.topology(spec, others))

    cache = ImageCache(settings.instances_path, images, host)
    cache.remove_interrupted()
    server_directory.remove_interrupted(settings.instances_path, uuid)
    backend = Backend(
        host=host,
        node_uuid=uuid,
        settings=settings,
        domains=Domains(
            connection,
            uuid,
            StartGate(settings.client_timeout),
            StuckStarts(settings.state_path),
            ForgottenGuests(files),
        ),
        store=images,
        images=cache,
        vifs=vifs,
        places=GuestPlaces(choose, guests),
    )

    def node() -> Node:
        with speaking("say what this host is"):
            return connection.run(lambda _: inventory.node(), patience=0.0)

    return LibvirtDriver(backend, lambda: msgspec.structs.replace(node(), starts_paused=True))


def guest_settings(settings: LibvirtSettings) -> GuestSettings:
    return GuestSettings(
        virt_type=settings.virt_type,
        instances_path=settings.instances_path,
        cpu_mode=settings.cpu_mode,
        cpu_models=settings.cpu_models,
        cpu_features=tuple(settings.cpu_features),
        host_ip=settings.console_address,
    )


def _prepare(instances: Path) -> None:
    try:
        (instances / DIRECTORY).mkdir(mode=0o755, parents=True, exist_ok=True)
    except OSError as error:
        raise ConfigError(f"[libvirt] instances_path: {error}") from error
    if not os.access(instances, os.W_OK):
        raise ConfigError(f"[libvirt] instances_path: {instances} can't be written to")
