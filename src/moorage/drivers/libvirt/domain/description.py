"""A guest, described: all that becomes its domain's XML."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path

import msgspec

from moorage.drivers.libvirt.host.topology import GuestTopology
from moorage.drivers.libvirt.vifs.contract import Vif


class DomainMark(msgspec.Struct, frozen=True):
    """By which we know a domain for ours: no other is ever touched."""

    node_uuid: str
    """The node that it is on. Another agent's domains, on the same libvirt, have another one."""
    server_name: str = ""
    project_id: str = ""
    user_id: str = ""
    flavor: str = ""
    image_id: str = ""


class DiskRole(StrEnum):
    DISK = "disk"
    CDROM = "cdrom"


class DiskDevice(msgspec.Struct, frozen=True):
    source: Path
    format: str
    bus: str
    """`virtio`, `scsi`, `sata`, `ide`, `usb`, …"""
    target: str
    """What the guest may call it: `vda`."""
    role: DiskRole = DiskRole.DISK
    serial: str = ""
    boot_order: int = 0
    """0: it is not booted from."""
    cache: str = "none"
    limits: dict[str, int] = {}
    """Of I/O, as `iotune` names them."""


class CpuModel(msgspec.Struct, frozen=True):
    mode: str = "none"
    """`none`: QEMU's default."""
    model: str = ""
    features: list[str] = []
    sockets: int = 0
    """0: as many as processors, of one core each."""
    cores: int = 1
    threads: int = 1


class DirectBoot(msgspec.Struct, frozen=True):
    kernel: Path
    ramdisk: Path | None
    command_line: str


class SerialConsole(msgspec.Struct, frozen=True):
    log: Path
    address: str = ""
    """Where it can be reached over TCP; empty if nowhere."""
    port: int = 0
    count: int = 1
    """Serial lines that the guest has; what is said here is of the first."""


class Graphics(msgspec.Struct, frozen=True):
    listen: str
    video: str = "virtio"
    video_memory_kib: int = 0
    keymap: str = ""


class CpuTuning(msgspec.Struct, frozen=True):
    shares: int = 0
    period: int = 0
    quota: int = 0


class GuestDescription(msgspec.Struct, frozen=True):
    uuid: str
    name: str
    title: str
    mark: DomainMark
    memory_mb: int
    vcpus: int
    virt_type: str
    architecture: str
    machine: str
    """Versioned, so that a newer QEMU makes the same machine."""
    disks: list[DiskDevice]
    vifs: list[Vif]
    console: SerialConsole
    cpu: CpuModel = CpuModel()
    boot: DirectBoot | None = None
    boot_menu: bool = False
    uefi: bool = False
    graphics: Graphics | None = None
    tuning: CpuTuning = CpuTuning()
    vif_model: str = "virtio"
    vif_queues: int = 0
    scsi_model: str = ""
    pci_ports: int = 16
    memory_statistics_period: int = 10
    guest_agent: bool = False
    random_device: str = "/dev/urandom"
    """Empty: the guest has no random number generator."""
    random_bytes: int = 0
    random_period: int = 0
    watchdog: str = ""
    """What happens when the guest stops to answer; empty: nobody watches."""
    tablet: bool = True
    hpet: bool = False
    hide_hypervisor: bool = False
    pmu: bool | None = None
    locked_memory: bool = False
    """None of it is ever written to the host's swap."""
    localtime: bool = False
    topology: GuestTopology = GuestTopology()
    """Where on the host it is."""
    extra: list[str] = []
    """Elements of further kinds, as XML, below `domain`: memory backing, NUMA, devices of the host."""
    extra_devices: list[str] = []
    """Likewise below `devices`."""
