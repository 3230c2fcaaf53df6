"""The contract of drivers, held by the libvirt driver on a real libvirt and QEMU."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from moorage.drivers.contract import Driver, ServerSpec
from moorage.drivers.testing import DriverContract
from tests.integration.libvirt.stand import DirectoryImages, LibvirtStand, empty_image
from tests.lab.libvirt.hosts import LibvirtHost, LibvirtLab
from tests.support.guest_image import guest_image


class SlowStand(LibvirtStand):
    """The download of an image takes as long as a test wants; there is another host to go to."""

    neighbour: LibvirtHost

    def other(self) -> Driver:
        if self._other is None:
            self._other = LibvirtStand(self.neighbour, self.directory / "other", self.images, self.image_id)
        return self._other.driver

    def leftovers(self) -> list[str]:
        return [*super().leftovers(), *([] if self._other is None else self._other.leftovers())]

    def close(self) -> None:
        super().close()
        if self._other is not None:
            self._other.close()

    _other: LibvirtStand | None = None

    def slow_spec(self) -> ServerSpec:
        image = self.images.add(empty_image(self.directory), "qcow2")
        self._begun = threading.Event()

        def hold() -> None:
            self._begun.set()
            threading.Event().wait(0.3)

        self.images.hold = hold
        return self.spec(image_id=image)

    def is_at_work(self, spec: ServerSpec) -> bool:
        return self._begun.is_set()


class BootingStand(LibvirtStand):
    """Its servers have a system, which lets go of devices."""

    def __init__(self, host: LibvirtHost, directory: Path, images: DirectoryImages) -> None:
        image = guest_image()
        super().__init__(host, directory, images, images.add(image.disk, "qcow2"), detach_attempts=60)
        self._properties = {
            "kernel_id": images.add(image.kernel, "aki"),
            "ramdisk_id": images.add(image.ramdisk, "ari"),
            "os_command_line": image.command_line,
        }

    def spec(self, driver: Driver | None = None, **more: Any) -> ServerSpec:
        return super().spec(driver, properties=self._properties, **more)


class TestLibvirt(DriverContract):
    """Most of it with servers whose disks are empty: they cost no processor time."""

    @pytest.fixture
    def stand(
        self, pair: LibvirtLab, tmp_path: Path, request: pytest.FixtureRequest
    ) -> Iterator[LibvirtStand]:
        images = DirectoryImages(tmp_path / "images")
        made: LibvirtStand
        if request.node.name == self.test_ports_come_and_go_once.__name__:
            try:
                made = BootingStand(pair.hosts["h1"], tmp_path, images)
            except RuntimeError as missing:
                pytest.skip(str(missing))
        else:
            image_id = images.add(empty_image(tmp_path), "qcow2")
            made = SlowStand(pair.hosts["h1"], tmp_path, images, image_id)
            made.neighbour = pair.hosts["h2"]
        yield made
        made.close()
        assert made.leftovers() == []
