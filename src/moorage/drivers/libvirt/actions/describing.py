"""From what the driver remembers of a server to the description of its guest."""

from __future__ import annotations

from pathlib import Path

from moorage.drivers.contract import ServerSpec
from moorage.drivers.libvirt.domain import cpu_shape, guest_options
from moorage.drivers.libvirt.domain.description import (
    CpuModel,
    CpuTuning,
    DirectBoot,
    DiskDevice,
    DiskRole,
    DomainMark,
    Graphics,
    GuestDescription,
    SerialConsole,
)
from moorage.drivers.libvirt.domain.guest_options import GuestOptions
from moorage.drivers.libvirt.host.topology import GuestThreads
from moorage.drivers.libvirt.settings import LibvirtSettings
from moorage.drivers.libvirt.storage.server_directory import ServerDirectory, ServerRecord

MACHINE_TYPE = "machine_type"
_PREFIXES = {"virtio": "vd", "scsi": "sd", "sata": "sd", "usb": "sd", "ide": "hd"}
_MULTIQUEUE_MOST = 8


def hardware(options: GuestOptions, settings: LibvirtSettings, machine: str) -> dict[str, str]:
    """What stays with a server for its life, whatever later settings and releases prefer."""
    return {
        MACHINE_TYPE: machine,
        "architecture": settings.architecture,
        "disk_bus": options.disk_bus or "virtio",
        "cdrom_bus": options.cdrom_bus or ("sata" if "q35" in machine else "ide"),
        "vif_model": options.vif_model or "virtio",
        "video_model": options.video_model or settings.video_model,
    }


def describe(
    record: ServerRecord, directory: ServerDirectory, settings: LibvirtSettings, *, serial_port: int = 0
) -> GuestDescription:
    """`serial_port`: where its console listens, if it does."""
    spec, options = record.spec, guest_options.of(record.spec)
    machine = record.hardware[MACHINE_TYPE]
    disks = _disks(record, directory, settings, options)
    vcpus = int(spec.flavor.get("vcpus", 1))
    return GuestDescription(
        uuid=spec.uuid,
        name=spec.instance_name or f"instance-{spec.uuid}",
        title=_title(spec),
        mark=mark(spec),
        memory_mb=int(spec.flavor.get("ram", 512)),
        vcpus=vcpus,
        virt_type=settings.virt_type,
        architecture=record.hardware.get("architecture", settings.architecture),
        machine=machine,
        disks=disks,
        vifs=record.vifs,
        console=SerialConsole(
            directory.console_log,
            settings.serial_listen if serial_port else "",
            serial_port,
            options.serial_ports,
        ),
        cpu=_cpu(settings, options, vcpus, record.topology.threads),
        boot=_direct_boot(directory, settings, options) if record.rescue is None else None,
        boot_menu=options.boot_menu,
        uefi=options.uefi,
        graphics=_graphics(record, settings, options),
        tuning=CpuTuning(options.cpu_shares, options.cpu_period, options.cpu_quota),
        vif_model=record.hardware.get("vif_model", "virtio"),
        vif_queues=min(vcpus, _MULTIQUEUE_MOST) if options.vif_multiqueue else 0,
        scsi_model=_scsi_model(disks, options),
        pci_ports=settings.pcie_ports,
        memory_statistics_period=settings.memory_statistics_period,
        guest_agent=options.guest_agent,
        random_device=settings.rng_device if options.random_generator else "",
        random_bytes=options.random_bytes,
        random_period=options.random_period,
        watchdog=options.watchdog,
        tablet=options.tablet,
        hpet=options.hpet,
        hide_hypervisor=options.hide_hypervisor,
        pmu=options.pmu,
        locked_memory=options.locked_memory,
        localtime=options.localtime,
        topology=record.topology,
    )


class _Targets:
    """Names of disks, in the order in which they come: `vda`, `vdb`, beside `sda`."""

    def __init__(self) -> None:
        self._used: dict[str, int] = {}

    def next(self, bus: str) -> str:
        prefix = _PREFIXES[bus]
        number = self._used.get(prefix, 0)
        self._used[prefix] = number + 1
        return f"{prefix}{chr(ord('a') + number)}"


def _disks(
    record: ServerRecord, directory: ServerDirectory, settings: LibvirtSettings, options: GuestOptions
) -> list[DiskDevice]:
    """The root disk first; of a rescued server, the rescue disk, unless it is the last and booted first."""
    targets, bus = _Targets(), record.hardware.get("disk_bus", "virtio")
    cdrom_bus = record.hardware.get("cdrom_bus", "sata")
    rescue = None if record.rescue is None else guest_options.of(record.rescue)
    found: list[DiskDevice] = []

    def add(
        path: Path, image_format: str, on: str, role: DiskRole = DiskRole.DISK, boot_order: int = 0
    ) -> None:
        limits = options.disk_limits if role is DiskRole.DISK else {}
        cache, serial = settings.disk_cache, spec_serial if path == directory.disk else ""
        found.append(
            DiskDevice(path, image_format, on, targets.next(on), role, serial, boot_order, cache, limits)
        )

    spec_serial = record.spec.uuid
    if rescue is not None and not rescue.has_rescue_device:
        add(directory.rescue_disk, "qcow2", rescue.disk_bus or bus, boot_order=1)
    add(
        directory.disk,
        "qcow2",
        bus,
        boot_order=0 if options.kernel_id and rescue is None else 1 + bool(rescue),
    )
    if record.spec.flavor.get("ephemeral"):
        add(directory.ephemeral, "raw", bus)
    if record.spec.flavor.get("swap"):
        add(directory.swap, "raw", bus)
    if rescue is not None and rescue.has_rescue_device:
        as_cdrom = rescue.rescue_device == "cdrom"
        rescue_bus = rescue.rescue_bus or (cdrom_bus if as_cdrom else bus)
        role = DiskRole.CDROM if as_cdrom else DiskRole.DISK
        add(directory.rescue_disk, "qcow2", rescue_bus, role, boot_order=1)
    if record.spec.config_drive:
        role = DiskRole.DISK if cdrom_bus == "virtio" else DiskRole.CDROM
        add(directory.config_drive, "raw", cdrom_bus, role)
    return found


def _scsi_model(disks: list[DiskDevice], options: GuestOptions) -> str:
    used = any(disk.bus == "scsi" for disk in disks)
    return (options.scsi_model or "virtio-scsi") if used else ""


def _direct_boot(
    directory: ServerDirectory, settings: LibvirtSettings, options: GuestOptions
) -> DirectBoot | None:
    if not options.kernel_id:
        return None
    words = options.command_line or "root=/dev/vda console=tty0 console=ttyS0"
    if settings.virt_type == "qemu" and "no_timer_check" not in words:
        words += " no_timer_check"  # on a busy machine the test fails under emulation
    return DirectBoot(directory.kernel, directory.ramdisk if options.ramdisk_id else None, words)


def _cpu(
    settings: LibvirtSettings, options: GuestOptions, vcpus: int, pinned: GuestThreads | None
) -> CpuModel:
    """What flavor or image say of sockets, cores and threads wins over how its processors really are."""
    model = settings.cpu_models[0] if settings.cpu_models else ""
    cpu = CpuModel(settings.cpu_mode, model, list(settings.cpu_features))
    if pinned is not None and not cpu_shape.is_asked_for(options):
        return CpuModel(cpu.mode, cpu.model, cpu.features, pinned.sockets, pinned.cores, pinned.threads)
    return CpuModel(cpu.mode, cpu.model, cpu.features, *cpu_shape.of(options, vcpus))


def _graphics(record: ServerRecord, settings: LibvirtSettings, options: GuestOptions) -> Graphics | None:
    model = record.hardware.get("video_model", settings.video_model)
    if not settings.vnc_listen or model == "none":
        return None
    return Graphics(settings.vnc_listen, model, options.video_memory_mb * 1024)


def mark(spec: ServerSpec) -> DomainMark:
    return DomainMark(
        node_uuid=spec.node_uuid,
        server_name=_printable(spec.name),
        project_id=spec.project_id,
        user_id=spec.user_id,
        flavor=str(spec.flavor.get("name", "")),
        image_id=str((spec.image or {}).get("id", "")),
    )


def _title(spec: ServerSpec) -> str:
    return " ".join(_printable(spec.name).split()) or spec.uuid


def _printable(text: str) -> str:
    """Users name servers as they like; XML knows no control characters."""
    return "".join(character for character in text if character.isprintable())
