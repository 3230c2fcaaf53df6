"""What guests can be given, as traits: buses, screens, network cards, firmware."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator

from moorage.drivers.libvirt.host.guest_hardware import GuestHardware

_VIF_MODELS = ("virtio", "e1000", "e1000e", "rtl8139", "ne2k_pci", "pcnet")
"""Libvirt lists no network cards; these are in every QEMU for PCs."""
_IGB_SINCE = 8_000_000
"""The version of QEMU that brought this card."""
_X86 = ("x86_64", "i686")


def of_hardware(hardware: Iterable[GuestHardware], version: int, *, tpm: bool) -> set[str]:
    """Of all machine types together. `tpm`: whether guests may be given one."""
    found: set[str] = set()
    for one in hardware:
        found |= {f"COMPUTE_STORAGE_BUS_{_name(bus)}" for bus in one.disk_buses}
        found |= {f"COMPUTE_GRAPHICS_MODEL_{_name(model)}" for model in one.video_models}
        found |= set(_vif_traits(one, version))
        found |= set(_firmware_traits(one))
        if tpm:
            found |= set(_tpm_traits(one))
    return found


def of_architectures(architectures: Collection[str]) -> set[str]:
    return {f"COMPUTE_ARCH_{_name(architecture)}" for architecture in architectures}


def _vif_traits(hardware: GuestHardware, version: int) -> Iterator[str]:
    models = _VIF_MODELS if hardware.architecture in _X86 else ("virtio",)
    for model in (*models, "igb") if version >= _IGB_SINCE and hardware.architecture in _X86 else models:
        yield f"COMPUTE_NET_VIF_MODEL_{_name(model)}"


def _firmware_traits(hardware: GuestHardware) -> Iterator[str]:
    if hardware.architecture in _X86:
        yield "COMPUTE_FIRMWARE_BIOS"
    if "efi" in hardware.firmwares:
        yield "COMPUTE_FIRMWARE_UEFI"
        if hardware.secure_loader:
            yield "COMPUTE_SECURITY_UEFI_SECURE_BOOT"


def _tpm_traits(hardware: GuestHardware) -> Iterator[str]:
    """Only an emulated one can be given to several guests."""
    if "emulator" not in hardware.tpm_backends:
        return
    for version in hardware.tpm_versions or {"1.2", "2.0"}:
        yield f"COMPUTE_SECURITY_TPM_{_name(version)}"
    for model in hardware.tpm_models:
        yield f"COMPUTE_SECURITY_{_name(model)}"


def _name(text: str) -> str:
    return text.upper().replace("-", "_").replace(".", "_")
