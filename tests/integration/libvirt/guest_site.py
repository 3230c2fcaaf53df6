"""Moorage in pieces on this machine, with agents on the hosts of a libvirt lab, and people who use it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.integration.libvirt.cloud_guests import GuestCloud
from tests.lab.libvirt.hosts import LibvirtHost, LibvirtLab
from tests.support import guest_deployment
from tests.support.guest_deployment import GuestDeployment, GuestShape
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
    shared = {"instances_path": str(lab.shared / "instances"), "live_migration_unsafe": "true"}
    shape = GuestShape(
        conductors=1,
        names=tuple(lab.hosts),
        for_users=True,
        options=tuple({**GENTLE, **shared}.items()),
    )
    with guest_deployment.running_on(lab, directory, shape) as made:
        site = GuestSite(made, GuestCloud(made.clouds_file(0), directory))
        site.cloud.furnish()
        site.cloud.add_image(image)
        yield site
