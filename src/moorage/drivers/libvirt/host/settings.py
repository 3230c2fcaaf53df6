"""How much of a host its guests get, and what kind of guests they are."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import Path

from oslo_config import cfg

from moorage.core.config import ConfigError
from moorage.drivers.libvirt.host.children import ReservedPages
from moorage.drivers.libvirt.host.pci_spec import DeviceSpec, parse_device_specs
from moorage.topology import pages
from moorage.topology.cpu_set import parse_cpu_set

_RESERVED_PAGES = re.compile(r"node:(\d+),size:(\w+),count:(\d+)")


@dataclass(frozen=True, kw_only=True)
class GuestSettings:
    """What the driver knows of its guests."""

    virt_type: str
    instances_path: Path
    """Where their disks are."""
    host_ip: str = ""
    cpu_mode: str = "host-model"
    cpu_models: tuple[str, ...] = ()
    """For the mode `custom`: guests get the first."""
    cpu_features: tuple[str, ...] = ()
    """That guests shall have besides, or, with a `-` before them, not have."""
    machine_types: tuple[str, ...] = ("q35", "pc")
    """Those that images may ask for; what the host's architecture does not have is left out."""
    tpm: bool = False
    """Whether guests are given emulated ones."""
    traits: tuple[str, ...] = (
        "COMPUTE_NODE",
        "COMPUTE_NET_ATTACH_INTERFACE",
        *(
            f"COMPUTE_IMAGE_TYPE_{name}"
            for name in ("RAW", "QCOW2", "VMDK", "VDI", "VHD", "VHDX", "ISO", "AKI", "ARI")
        ),
    )
    """What the driver can do."""


@dataclass(frozen=True, kw_only=True)
class HostSettings:
    guests: GuestSettings
    cpu_shared_set: frozenset[int] = frozenset()
    """Empty for all that are not dedicated."""
    cpu_dedicated_set: frozenset[int] = frozenset()
    reserved_cpus: int = 0
    reserved_memory_mb: int = 512
    reserved_disk_mb: int = 0
    reserved_pages: ReservedPages = field(default_factory=dict)
    device_specs: tuple[DeviceSpec, ...] = ()
    cpu_ratio: float = 4.0
    ram_ratio: float = 1.0
    disk_ratio: float = 1.0

    @classmethod
    def from_conf(cls, conf: cfg.ConfigOpts, guests: GuestSettings) -> HostSettings:
        options = conf.compute
        shared = _cpu_set(conf, "cpu_shared_set")
        dedicated = _cpu_set(conf, "cpu_dedicated_set")
        if shared & dedicated:
            raise ConfigError("[compute] cpu_shared_set and cpu_dedicated_set have processors in common")
        return cls(
            guests=guests,
            cpu_shared_set=shared,
            cpu_dedicated_set=dedicated,
            reserved_cpus=options.reserved_host_cpus,
            reserved_memory_mb=options.reserved_host_memory_mb,
            reserved_disk_mb=options.reserved_host_disk_mb,
            reserved_pages=dict(_reserved_pages(text) for text in options.reserved_huge_pages),
            device_specs=parse_device_specs(conf.pci.device_spec),
            cpu_ratio=options.initial_cpu_allocation_ratio,
            ram_ratio=options.initial_ram_allocation_ratio,
            disk_ratio=options.initial_disk_allocation_ratio,
        )


def _cpu_set(conf: cfg.ConfigOpts, name: str) -> frozenset[int]:
    text = conf.compute[name]
    try:
        return parse_cpu_set(text)
    except ValueError as error:
        raise ConfigError(f"[compute] {name}: {error}") from error


def _reserved_pages(text: str) -> tuple[tuple[int, int], int]:
    match = _RESERVED_PAGES.fullmatch(text.replace(" ", ""))
    if match is None:
        raise ConfigError(f"[compute] reserved_huge_pages: '{text}' is not as node:0,size:2048,count:64")
    try:
        return (int(match[1]), pages.parse_size(match[2])), int(match[3])
    except ValueError as error:
        raise ConfigError(f"[compute] reserved_huge_pages: {error}") from error
