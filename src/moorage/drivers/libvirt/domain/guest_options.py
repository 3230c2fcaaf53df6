"""What a flavor's extra specs and an image's properties ask of a guest's machine.

What we know and can't give is refused here, with a sentence, rather than left out: a guest would not be what
its user ordered. What nobody knows is left alone, as everywhere in the field.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from moorage.drivers.contract import DriverError, ServerSpec

DISK_BUSES = frozenset({"virtio", "scsi", "sata", "ide", "usb"})
CDROM_BUSES = frozenset({"scsi", "sata", "ide", "usb", "virtio"})
VIF_MODELS = frozenset({"virtio", "e1000", "e1000e", "rtl8139", "ne2k_pci", "pcnet", "igb"})
VIDEO_MODELS = frozenset({"vga", "cirrus", "qxl", "virtio", "bochs", "none"})
SCSI_MODELS = frozenset({"virtio-scsi", "lsilogic", "buslogic", "lsisas1068", "lsisas1078"})
WATCHDOG_ACTIONS = frozenset({"poweroff", "reset", "pause", "none", "disabled"})
FIRMWARES = frozenset({"bios", "uefi"})
RESCUE_DEVICES = frozenset({"disk", "cdrom"})

REFUSED = {
    "os_secure_boot": "secure boot",
    "os:secure_boot": "secure boot",
    "hw_tpm_version": "a TPM",
    "hw:tpm_version": "a TPM",
    "hw_mem_encryption": "encrypted memory",
    "hw:mem_encryption": "encrypted memory",
    "hw_viommu_model": "a virtual IOMMU",
    "hw:viommu_model": "a virtual IOMMU",
    "hw:pmem": "persistent memory",
    "hw:cpu_realtime": "real-time processors",
    "hw:cpu_realtime_mask": "real-time processors",
    "hw_cpu_realtime_mask": "real-time processors",
    "hw_emulation_architecture": "the emulation of another architecture",
    "accel:device_profile": "accelerators",
    "hw_ephemeral_encryption": "encrypted disks",
    "hw:ephemeral_encryption": "encrypted disks",
    "hw_sound_model": "a sound card",
    "hw:sound_model": "a sound card",
    **{
        f"quota:vif_{direction}_{amount}": "network cards with limits"
        for direction in ("inbound", "outbound")
        for amount in ("average", "peak", "burst")
    },
    "hw_firmware_stateless": "stateless firmware",
    "hw:redirected_usb_ports": "USB ports that are redirected",
    "hw_redirected_usb_ports": "USB ports that are redirected",
    "hw_usb_model": "a choice of USB controllers",
    "hw:usb_model": "a choice of USB controllers",
}
"""What we know, and don't give, with what it stands for."""
_HARMLESS = frozenset({"", "0", "false", "no", "off", "disabled", "none"})
"""Values that ask for nothing."""

_DISK_LIMITS = ("read_bytes_sec", "read_iops_sec", "write_bytes_sec", "write_iops_sec", "total_bytes_sec")
_IOTUNE = {f"quota:disk_{name}": name for name in (*_DISK_LIMITS, "total_iops_sec")}


class GuestOptions(msgspec.Struct, frozen=True):
    """Empty and 0: as the host's settings say, or as is usual for the machine type."""

    machine_type: str = ""
    uefi: bool = False
    disk_bus: str = ""
    cdrom_bus: str = ""
    scsi_model: str = ""
    vif_model: str = ""
    vif_multiqueue: bool = False
    video_model: str = ""
    video_memory_mb: int = 0
    sockets: int = 0
    cores: int = 0
    threads: int = 0
    max_sockets: int = 0
    max_cores: int = 0
    max_threads: int = 0
    guest_agent: bool = False
    quiesce: bool = False
    random_generator: bool = True
    random_bytes: int = 0
    """Of randomness that the guest may have in `random_period` milliseconds; 0: as much as it wants."""
    random_period: int = 0
    watchdog: str = ""
    tablet: bool = True
    boot_menu: bool = False
    serial_ports: int = 1
    hpet: bool = False
    hide_hypervisor: bool = False
    pmu: bool | None = None
    """Whether it can count what its processors do; None: as QEMU thinks."""
    locked_memory: bool = False
    localtime: bool = False
    kernel_id: str = ""
    ramdisk_id: str = ""
    command_line: str = ""
    shutdown_seconds: float | None = None
    cpu_shares: int = 0
    cpu_period: int = 0
    cpu_quota: int = 0
    disk_limits: dict[str, int] = {}
    rescue_device: str = ""
    rescue_bus: str = ""
    admin_user: str = ""
    cpu_features: list[str] = []

    @property
    def has_rescue_device(self) -> bool:
        """Whether a rescue image of this kind is one more disk, rather than the first."""
        return bool(self.rescue_device or self.rescue_bus)


def of(spec: ServerSpec) -> GuestOptions:
    """DriverError if they ask for what can't be, or for what this driver does not give."""
    return _Reading(
        spec.flavor.get("extra_specs") or {}, (spec.image or {}).get("properties") or {}
    ).options()


class _Reading:
    def __init__(self, specs: Mapping[str, Any], properties: Mapping[str, Any]) -> None:
        self._specs = {str(name): str(value) for name, value in specs.items()}
        self._properties = {str(name): str(value) for name, value in properties.items()}

    def options(self) -> GuestOptions:
        self._refuse()
        return GuestOptions(
            machine_type=self._image("hw_machine_type"),
            uefi=self._image_choice("hw_firmware_type", FIRMWARES) == "uefi",
            disk_bus=self._image_choice("hw_disk_bus", DISK_BUSES),
            cdrom_bus=self._image_choice("hw_cdrom_bus", CDROM_BUSES),
            scsi_model=self._image_choice("hw_scsi_model", SCSI_MODELS),
            vif_model=self._image_choice("hw_vif_model", VIF_MODELS),
            vif_multiqueue=self._both_flags("vif_multiqueue_enabled"),
            video_model=self._image_choice("hw_video_model", VIDEO_MODELS),
            video_memory_mb=self._video_memory(),
            sockets=self._topology("sockets"),
            cores=self._topology("cores"),
            threads=self._topology("threads"),
            max_sockets=self._topology("max_sockets"),
            max_cores=self._topology("max_cores"),
            max_threads=self._topology("max_threads"),
            guest_agent=self._image_flag("hw_qemu_guest_agent"),
            quiesce=self._image_flag("os_require_quiesce"),
            random_generator=_flag(self._specs.get("hw_rng:allowed", "true")),
            random_bytes=self._number("hw_rng:rate_bytes"),
            random_period=self._number("hw_rng:rate_period"),
            watchdog=self._watchdog(),
            tablet=self._image("hw_pointer_model") in ("", "usbtablet"),
            boot_menu=self._both_flags("boot_menu"),
            serial_ports=self._serial_ports(),
            hpet=self._image_flag("hw_time_hpet"),
            hide_hypervisor=self._hides_hypervisor(),
            pmu=self._both_flags("pmu") if self._says("pmu") else None,
            locked_memory=self._both_flags("locked_memory"),
            localtime=self._image("os_type") == "windows",
            kernel_id=self._image("kernel_id"),
            ramdisk_id=self._image("ramdisk_id"),
            command_line=self._image("os_command_line"),
            shutdown_seconds=self._seconds("os_shutdown_timeout"),
            cpu_shares=self._number("quota:cpu_shares"),
            cpu_period=self._number("quota:cpu_period"),
            cpu_quota=self._number("quota:cpu_quota"),
            disk_limits={name: self._number(key) for key, name in _IOTUNE.items() if self._number(key)},
            rescue_device=self._image_choice("hw_rescue_device", RESCUE_DEVICES),
            rescue_bus=self._image_choice("hw_rescue_bus", DISK_BUSES),
            admin_user=self._image("os_admin_user"),
        )

    def _refuse(self) -> None:
        for name, what in REFUSED.items():
            value = self._specs.get(name, self._properties.get(name, ""))
            if value.strip().lower() not in _HARMLESS:
                raise DriverError(
                    f"{name}={value}: this host's driver gives no guest {what}", retry_elsewhere=True
                )

    def _image(self, name: str) -> str:
        return self._properties.get(name, "").strip()

    def _image_choice(self, name: str, allowed: frozenset[str]) -> str:
        value = self._image(name).lower()
        if value and value not in allowed:
            raise DriverError(f"{name}={value} of the image: it may be {', '.join(sorted(allowed))}")
        return value

    def _image_flag(self, name: str) -> bool:
        return _flag(self._image(name))

    def _both_flags(self, name: str) -> bool:
        """Of the flavor, else of the image."""
        return _flag(self._specs.get(f"hw:{name}", self._properties.get(f"hw_{name}", "")))

    def _says(self, name: str) -> bool:
        return f"hw:{name}" in self._specs or f"hw_{name}" in self._properties

    def _topology(self, name: str) -> int:
        return self._number(f"hw:cpu_{name}") or _number(f"hw_cpu_{name}", self._image(f"hw_cpu_{name}"))

    def _number(self, name: str) -> int:
        return _number(name, self._specs.get(name, ""))

    def _seconds(self, name: str) -> float | None:
        return float(_number(name, self._image(name))) if self._image(name) else None

    def _video_memory(self) -> int:
        """What the image asks for, up to what the flavor allows, which is nothing unless it says so."""
        asked = _number("hw_video_ram", self._image("hw_video_ram"))
        allowed = self._number("hw_video:ram_max_mb")
        if asked > allowed:
            raise DriverError(f"hw_video_ram={asked} of the image: the flavor allows {allowed} MiB")
        return asked

    def _watchdog(self) -> str:
        value = (self._image("hw_watchdog_action") or self._specs.get("hw:watchdog_action", "")).lower()
        if value and value not in WATCHDOG_ACTIONS:
            raise DriverError(f"hw_watchdog_action={value}: it may be {', '.join(sorted(WATCHDOG_ACTIONS))}")
        return "" if value == "disabled" else value

    def _serial_ports(self) -> int:
        """An image may ask for fewer than its flavor allows."""
        allowed = self._number("hw:serial_port_count")
        asked = _number("hw_serial_port_count", self._image("hw_serial_port_count"))
        if allowed and asked > allowed:
            raise DriverError(f"hw_serial_port_count={asked} of the image: the flavor allows {allowed}")
        return min(asked or allowed or 1, 4)

    def _hides_hypervisor(self) -> bool:
        """By its older name, too."""
        said = (self._specs.get("hw:hide_hypervisor_id"), self._specs.get("hide_hypervisor_id"))
        return any(_flag(value or "") for value in (*said, self._image("img_hide_hypervisor_id")))


def _flag(value: str) -> bool:
    return value.strip().lower() in ("1", "true", "yes", "on", "y", "t")


def _number(name: str, value: str) -> int:
    try:
        number = int(value or 0)
    except ValueError:
        number = -1
    if number < 0:
        raise DriverError(f"{name}={value} is no number")
    return number
