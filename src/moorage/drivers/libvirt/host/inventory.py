"""What this host offers: its node, with all that Placement and the hypervisor list are told of it."""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

import msgspec
import os_traits

from moorage.core.config import ConfigError
from moorage.drivers.contract import DriverError, Inventory, Node, ServerSpec
from moorage.drivers.libvirt.host import (
    children,
    cpu_traits,
    device_traits,
    guest_hardware,
    machine,
    pci_devices,
    pinning,
)
from moorage.drivers.libvirt.host.guest_hardware import GuestHardware
from moorage.drivers.libvirt.host.hypervisor import (
    ALL_CELLS,
    EXPAND_FEATURES,
    PCI_DEVICES,
    HypervisorConnection,
)
from moorage.drivers.libvirt.host.machine import Emulator, Machine
from moorage.drivers.libvirt.host.node_identity import node_uuid
from moorage.drivers.libvirt.host.pci_devices import OfferedDevice
from moorage.drivers.libvirt.host.pinning import HostLayout
from moorage.drivers.libvirt.host.settings import HostSettings
from moorage.drivers.libvirt.host.topology import GuestTopology
from moorage.drivers.machine_uptime import machine_uptime
from moorage.topology.cpu_set import format_cpu_set
from moorage.topology.errors import BadTopologyError
from moorage.topology.parse import parse_topology

LOG = logging.getLogger(__name__)

HYPERVISOR_TYPE = "QEMU"
_LOOK_AGAIN = 600.0
"""Seconds after which libvirt is asked again for what hardly ever changes."""
_KIB_PER_MB = 1024
_MB_PER_GB = 1024
_X86_64 = "x86_64"


class HostFeatures(msgspec.Struct, frozen=True):
    """What hardly ever changes."""

    machine: Machine
    devices: list[OfferedDevice]
    traits: tuple[str, ...]
    facts: dict[str, Any]


class HostInventory:
    """Asks libvirt; `connection` gives the one that is open now, or raises."""

    def __init__(
        self,
        host: str,
        connection: Callable[[], HypervisorConnection],
        settings: HostSettings,
        directory: Path,
        guests: Callable[[], Mapping[str, GuestTopology]] = dict,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """`directory` is where the node's UUID is kept; `guests` tells where the guests are, by server."""
        self._host = host
        self._connection = connection
        self._settings = settings
        self._uuid = node_uuid(directory)
        self._guests = guests
        self._clock = clock
        self._features: HostFeatures | None = None
        self._looked_at = 0.0

    def node(self) -> Node:
        """As it is now."""
        connection = self._connection()
        features = self._current_features(connection)
        settings = self._settings
        cells = features.machine.cells
        memory_kib = connection.getMemoryStats(ALL_CELLS)["total"]
        memory_mb = (memory_kib - children.huge_pages_kib(cells)) // _KIB_PER_MB
        disk_gb = _disk_gb(settings.guests.instances_path)
        shared, dedicated = self._cpus(features.machine)
        below = children.of_host(self._host, cells, dedicated, settings.reserved_pages, features.devices)
        inventories = {
            "VCPU": _inventory(len(shared), settings.reserved_cpus, settings.cpu_ratio),
            "MEMORY_MB": _inventory(memory_mb, settings.reserved_memory_mb, settings.ram_ratio),
            "DISK_GB": _inventory(disk_gb, -(-settings.reserved_disk_mb // _MB_PER_GB), settings.disk_ratio),
        }
        return Node(
            uuid=self._uuid,
            name=self._host,
            hypervisor_type=HYPERVISOR_TYPE,
            inventories={name: found for name, found in inventories.items() if found.total},
            traits=list(features.traits),
            facts={
                **features.facts,
                "vcpus": len(shared) + len(dedicated),
                "memory_mb": memory_kib // _KIB_PER_MB,
                "local_gb": disk_gb,
            },
            children=below,
            holdings=children.holdings(self._host, self._uuid, cells, features.devices, self._guests())
            if below
            else (),
        )

    def topology(self, spec: ServerSpec, others: Iterable[GuestTopology]) -> GuestTopology:
        """Where on the host the guest of a server goes, with `others` all other guests that are here.

        The next one may be asked for only once this one is among them: see `pinning.py`.
        """
        features = self._current_features(self._connection())
        shared, dedicated = self._cpus(features.machine)
        chooses = bool(self._settings.cpu_shared_set or dedicated)
        layout = HostLayout(
            host=self._host,
            node_uuid=self._uuid,
            cells=features.machine.cells,
            shared=shared if chooses else frozenset(),
            dedicated=dedicated,
            devices=features.devices,
        )
        try:
            request = parse_topology(spec.flavor, (spec.image or {}).get("properties") or {})
        except BadTopologyError as error:
            raise DriverError(str(error)) from error
        return pinning.place(request, layout, spec.allocations, others)

    def _cpus(self, machine: Machine) -> tuple[frozenset[int], frozenset[int]]:
        """Those that guests share, and those that are dedicated."""
        settings = self._settings
        missing = (settings.cpu_shared_set | settings.cpu_dedicated_set) - machine.cpu_ids
        if missing:
            raise ConfigError(f"[compute] names processors that are not there: {format_cpu_set(missing)}")
        dedicated = settings.cpu_dedicated_set
        return settings.cpu_shared_set or machine.cpu_ids - dedicated, dedicated

    def _current_features(self, connection: HypervisorConnection) -> HostFeatures:
        if self._features is None or self._clock() - self._looked_at > _LOOK_AGAIN:
            self._features = self._look(connection)
            self._looked_at = self._clock()
        return self._features

    def _look(self, connection: HypervisorConnection) -> HostFeatures:
        guests = self._settings.guests
        found = machine.parse_capabilities(connection.getCapabilities())
        version = connection.getVersion()
        usable = [emulator for emulator in found.emulators if guests.virt_type in emulator.virt_types]
        own = next((emulator for emulator in usable if emulator.architecture == found.architecture), None)
        if own is None:
            raise ConfigError(
                f"libvirt can run no {found.architecture} guests of [libvirt] virt_type = {guests.virt_type}"
            )
        hardware = self._hardware(connection, own)
        traits = {
            *guests.traits,
            *device_traits.of_hardware(hardware, version, tpm=guests.tpm),
            *device_traits.of_architectures({emulator.architecture for emulator in usable}),
            *cpu_traits.of_features(self._cpu_features(connection, hardware[0])),
        }
        if found.has_hyperthreading:
            traits.add("HW_CPU_HYPERTHREADING")
        return HostFeatures(
            machine=found,
            devices=self._devices(connection),
            traits=tuple(sorted(traits.intersection(os_traits.get_traits()))),
            facts={
                "host_ip": guests.host_ip,
                "hypervisor_version": version,
                "cpu_info": found.cpu_info(),
                "supported_instances": [
                    [emulator.architecture, guests.virt_type, emulator.os_type] for emulator in usable
                ],
                "uptime": machine_uptime(),
            },
        )

    def _devices(self, connection: HypervisorConnection) -> list[OfferedDevice]:
        if not self._settings.device_specs:
            return []
        found = [
            pci_devices.parse_node_device(one.XMLDesc()) for one in connection.listAllDevices(PCI_DEVICES)
        ]
        return pci_devices.offered(filter(None, found), self._settings.device_specs)

    def _hardware(self, connection: HypervisorConnection, own: Emulator) -> list[GuestHardware]:
        guests = self._settings.guests
        types = [name for name in guests.machine_types if name in own.machines] or list(own.machines)[:1]
        return [
            guest_hardware.parse_domain_capabilities(
                connection.getDomainCapabilities(own.path, own.architecture, name, guests.virt_type)
            )
            for name in types
        ]

    def _cpu_features(self, connection: HypervisorConnection, hardware: GuestHardware) -> frozenset[str]:
        """Those that guests can have, whatever host-model or the first of the named models stands for."""
        guests = self._settings.guests
        if hardware.architecture != _X86_64:
            return frozenset()
        if guests.cpu_mode == "custom":
            models = [guest_hardware.named_cpu(model) for model in guests.cpu_models[:1]]
        elif guests.cpu_mode == "none":
            models = [guest_hardware.named_cpu("qemu64")]
        else:
            models = [hardware.host_model] if hardware.host_model else []
        found = [
            guest_hardware.parse_cpu_features(
                connection.baselineHypervisorCPU(
                    hardware.emulator,
                    hardware.architecture,
                    hardware.machine,
                    hardware.virt_type,
                    [model],
                    EXPAND_FEATURES,
                )
            )
            for model in models
        ]
        features = set().union(*found)
        for feature in guests.cpu_features:
            (features.discard if feature.startswith("-") else features.add)(feature.lstrip("+-"))
        return frozenset(features)


def _inventory(total: int, reserved: int, ratio: float) -> Inventory:
    return Inventory(
        total=total, reserved=min(reserved, total), max_unit=max(total, 1), allocation_ratio=ratio
    )


def _disk_gb(path: Path) -> int:
    found = os.statvfs(path)
    return found.f_frsize * found.f_blocks // 1024**3
