"""A libvirt driver on one host of the lab, with images from a directory and taps that lead nowhere."""

from __future__ import annotations

import hashlib
import shutil
import subprocess
import uuid
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec

from moorage.drivers.contract import Driver, ServerSpec
from moorage.drivers.image_store import ImageStoreError, StoredImage
from moorage.drivers.libvirt.host.settings import HostSettings
from moorage.drivers.libvirt.moves.settings import MoveSettings
from moorage.drivers.libvirt.settings import LibvirtSettings
from moorage.drivers.libvirt.vifs.contract import Vif, tap_of
from moorage.drivers.testing import DriverStand
from tests.lab.libvirt.hosts import CLIENT_TIMEOUT, LibvirtHost

MEMORY_MB = 128


class DirectoryImages:
    """Images as files: what an Image service would keep, without one."""

    def __init__(self, directory: Path) -> None:
        directory.mkdir(parents=True, exist_ok=True)
        self._directory = directory
        self._list = directory / "images.json"
        self.images: dict[str, StoredImage] = {}
        self.load()
        self.hold: Callable[[], None] = lambda: None
        """Called while an image is downloaded."""

    def add(self, source: Path, disk_format: str, **properties: str) -> str:
        image_id = str(uuid.uuid4())
        shutil.copy(source, self._directory / image_id)
        self.describe_as(image_id, disk_format, **properties)
        return image_id

    def reserve(self) -> str:
        """An image that waits for data."""
        image_id = str(uuid.uuid4())
        self.images[image_id] = StoredImage(image_id, "snapshot", "queued", "", "", 0, "", "")
        return image_id

    def describe_as(self, image_id: str, disk_format: str, **properties: str) -> None:
        data = self.path(image_id).read_bytes()
        digest = hashlib.sha256(data).hexdigest()
        self.images[image_id] = StoredImage(
            image_id, "image", "active", disk_format, "bare", len(data), "sha256", digest, properties
        )

    def save(self) -> None:
        """For another process that looks into the same directory."""
        self._list.write_bytes(msgspec.json.encode(self.images))

    def load(self) -> None:
        if self._list.exists():
            self.images = msgspec.json.decode(self._list.read_bytes(), type=dict[str, StoredImage])

    def path(self, image_id: str) -> Path:
        return self._directory / image_id

    def describe(self, image_id: str) -> StoredImage:
        if image_id not in self.images:
            raise ImageStoreError(f"image {image_id} is not there")
        return self.images[image_id]

    def download(self, image: StoredImage, target: Path, check: Callable[[], None]) -> None:
        with target.open("wb") as file:
            data = self.path(image.id).read_bytes()
            file.write(data[: len(data) // 2])
            file.flush()
            self.hold()
            check()
            file.write(data[len(data) // 2 :])
        if hashlib.sha256(data).hexdigest() != image.hash_value:
            raise ImageStoreError(f"image {image.id} does not match its checksum")

    def upload(self, image_id: str, source: Path, disk_format: str, properties: Mapping[str, str]) -> None:
        if not self.images[image_id].size:
            shutil.copy(source, self.path(image_id))
            self.describe_as(image_id, disk_format, **properties)


@dataclass
class PlainTaps:
    """Devices on the host that nothing is connected to."""

    host: LibvirtHost

    def plugged(self) -> list[str]:
        lines = self.host.run("ip", "-o", "link").splitlines()
        return [line.split()[1].rstrip(":") for line in lines if line.split()[1].startswith("tap")]

    def plug(self, server: ServerSpec, port: Mapping[str, Any]) -> Vif:
        tap = tap_of(str(port["id"]))
        if tap not in self.plugged():
            self.host.run("ip", "tuntap", "add", tap, "mode", "tap")
            self.host.run("ip", "link", "set", tap, "up")
        return Vif(str(port["id"]), str(port["mac"]), tap, int(port.get("mtu") or 0))

    def unplug(self, server_uuid: str, vif: Vif) -> None:
        self.host.run("ip", "link", "del", vif.tap, check=False)

    def close(self) -> None:
        """What is plugged stays so."""


class LibvirtStand(DriverStand):
    def __init__(
        self, host: LibvirtHost, directory: Path, images: DirectoryImages, image_id: str, **settings: Any
    ) -> None:
        self.host = host
        self.images = images
        self.image_id = image_id
        self.directory = directory
        self.taps = PlainTaps(host)
        self.settings = quick_settings(host, directory / "instances", **settings)
        (directory / "state").mkdir(parents=True, exist_ok=True)
        self.driver: Driver = self._make()

    @classmethod
    def again(cls, directory: Path, told: Mapping[str, Any]) -> LibvirtStand:
        """The same, in another process."""
        found = told["host"]
        host = LibvirtHost(found["name"], found["address"], Path(found["directory"]), found["first_pid"])
        return cls(host, directory, DirectoryImages(directory / "images"), told["image"])

    def spec(self, driver: Driver | None = None, **more: Any) -> ServerSpec:
        node = (driver or self.driver).nodes()[0].uuid
        flavor = {"name": "tiny", "vcpus": 1, "ram": MEMORY_MB, "disk": 1, **more.pop("flavor", {})}
        image = {"id": more.pop("image_id", self.image_id), "properties": more.pop("properties", {})}
        return ServerSpec(str(uuid.uuid4()), "s", "p", "u", node, flavor, image, work="1-1", **more)

    def close(self) -> None:
        self.driver.close()

    def restart(self) -> None:
        self.close()
        self.driver = self._make()

    def tidy_up(self) -> None:
        """What the driver does by itself every minute, now."""
        from moorage.drivers.libvirt.driver import LibvirtDriver

        assert isinstance(self.driver, LibvirtDriver)
        self.driver.tidy_up()

    def port(self) -> Mapping[str, Any]:
        mac = "fa:16:3e:" + ":".join(uuid.uuid4().hex[number : number + 2] for number in (0, 2, 4))
        return {"id": str(uuid.uuid4()), "mac": mac, "addresses": ["10.0.0.6"]}

    def rescue_spec(self, spec: ServerSpec) -> ServerSpec:
        image_id = self.images.add(empty_image(self.directory, "32M"), "qcow2")
        return msgspec.structs.replace(spec, image={"id": image_id, "properties": {}})

    def waiting_image(self) -> str:
        return self.images.reserve()

    def has_data(self, image_id: str) -> bool:
        return self.images.describe(image_id).size > 0

    def leftovers(self) -> list[str]:
        """What is on the host of servers, whoever's."""
        instances = self.settings.instances_path
        directories = [path.name for path in instances.iterdir() if path.name != "_base"]
        domains = self.host.run("virsh", "list", "--all", "--name").split()
        return [*directories, *domains, *self.host.guest_pids(), *self.taps.plugged()]

    def _make(self) -> Driver:
        from moorage.drivers.libvirt import loading

        host_settings = HostSettings(guests=loading.guest_settings(self.settings), reserved_memory_mb=0)
        return loading.driver(
            self.host.name, self.directory / "state", self.settings, host_settings, self.images, self.taps
        )


def quick_settings(host: LibvirtHost, instances: Path, **differences: Any) -> LibvirtSettings:
    """Emulated guests that nobody waits for: what does not follow at once is forced."""
    usual: dict[str, Any] = {
        "instances_path": instances,
        "connection_uri": host.uri,
        "virt_type": "qemu",
        "shutdown_timeout": 0.5,
        "soft_reboot_timeout": 0.5,
        "shutdown_retry_interval": 2.0,
        "detach_timeout": 2.0,
        "detach_attempts": 3,
        "client_timeout": CLIENT_TIMEOUT,
        "state_path": host.directory / "run" / "qemu",
        "moves": MoveSettings("qemu+tcp://%s/system", host.address, unsafe=True),
    }
    return LibvirtSettings(**(usual | differences))


def empty_image(directory: Path, size: str = "64M") -> Path:
    """A disk that nothing boots from: its guest costs no processor time."""
    path = directory / "empty.qcow2"
    subprocess.run(["qemu-img", "create", "-q", "-f", "qcow2", str(path), size], check=True)
    return path
