"""The machine itself, as libvirt's `capabilities` describe it: processors by NUMA cell, pages, emulators."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any
from xml.etree import ElementTree
from xml.etree.ElementTree import Element

import msgspec

from moorage.topology.cpu_set import parse_cpu_set


class HostCpu(msgspec.Struct, frozen=True):
    """A processor as the kernel counts them: with hyperthreading, one thread of a core."""

    id: int
    socket: int
    siblings: frozenset[int]
    """The threads of its core, itself among them."""


class HostCell(msgspec.Struct, frozen=True):
    id: int
    memory_kib: int
    cpus: tuple[HostCpu, ...]
    pages: dict[int, int] = {}
    """How many there are, by size in KiB: ordinary ones and huge ones."""

    @property
    def cpu_ids(self) -> frozenset[int]:
        return frozenset(cpu.id for cpu in self.cpus)

    @property
    def huge_pages(self) -> dict[int, int]:
        """How many there are, by size in KiB; the smallest size is the ordinary one."""
        return {kib: count for kib, count in sorted(self.pages.items())[1:] if count}


class Emulator(msgspec.Struct, frozen=True):
    """What runs guests of one architecture."""

    architecture: str
    os_type: str
    path: str
    virt_types: frozenset[str]
    machines: dict[str, str]
    """By machine type, the versioned one that it stands for."""


class Machine(msgspec.Struct, frozen=True):
    architecture: str
    cpu_model: str
    cpu_vendor: str
    cpu_features: tuple[str, ...]
    """Of the host itself: what guests have of them, only `guest_hardware` can tell."""
    sockets: int
    cores: int
    threads: int
    cells: tuple[HostCell, ...]
    emulators: tuple[Emulator, ...]

    @property
    def cpu_ids(self) -> frozenset[int]:
        return frozenset().union(*(cell.cpu_ids for cell in self.cells))

    @property
    def has_hyperthreading(self) -> bool:
        return any(len(cpu.siblings) > 1 for cell in self.cells for cpu in cell.cpus)

    def cpu_info(self) -> dict[str, Any]:
        """As the API shows it."""
        return {
            "arch": self.architecture,
            "model": self.cpu_model,
            "vendor": self.cpu_vendor,
            "features": list(self.cpu_features),
            "topology": {
                "cells": len(self.cells),
                "sockets": self.sockets,
                "cores": self.cores,
                "threads": self.threads,
            },
        }


def parse_capabilities(xml: str) -> Machine:
    root = ElementTree.fromstring(xml)
    cpu = root.find("./host/cpu")
    if cpu is None:
        cpu = Element("cpu")
    topology = cpu.find("topology")
    counted = {} if topology is None else topology.attrib
    return Machine(
        architecture=cpu.findtext("arch", ""),
        cpu_model=cpu.findtext("model", ""),
        cpu_vendor=cpu.findtext("vendor", ""),
        cpu_features=tuple(feature.get("name", "") for feature in cpu.iterfind("feature")),
        sockets=int(counted.get("sockets", 1)),
        cores=int(counted.get("cores", 1)),
        threads=int(counted.get("threads", 1)),
        cells=tuple(_cell(cell) for cell in root.iterfind("./host/topology/cells/cell")),
        emulators=tuple(_emulators(root)),
    )


def _cell(cell: Element) -> HostCell:
    """A processor that is off line says nothing but its number, and is left out."""
    return HostCell(
        id=int(cell.get("id", 0)),
        memory_kib=int(cell.findtext("memory", "0")),
        cpus=tuple(
            HostCpu(
                int(cpu.get("id", 0)), int(cpu.get("socket_id", 0)), parse_cpu_set(cpu.get("siblings", ""))
            )
            for cpu in cell.iterfind("./cpus/cpu")
            if cpu.get("siblings")
        ),
        pages={int(pages.get("size", 0)): int(pages.text or 0) for pages in cell.iterfind("pages")},
    )


def _emulators(root: Element) -> Iterator[Emulator]:
    for guest in root.iterfind("guest"):
        for arch in guest.iterfind("arch"):
            machines = {
                machine.text or "": machine.get("canonical", machine.text or "")
                for machine in arch.iterfind("machine")
            }
            yield Emulator(
                architecture=arch.get("name", ""),
                os_type=guest.findtext("os_type", ""),
                path=arch.findtext("emulator", ""),
                virt_types=frozenset(domain.get("type", "") for domain in arch.iterfind("domain")),
                machines=machines,
            )
