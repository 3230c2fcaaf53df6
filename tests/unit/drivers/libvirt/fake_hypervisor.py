"""A libvirt that answers with documents that real ones gave."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

SAMPLES = Path(__file__).parent / "samples"


def sample(name: str) -> str:
    return (SAMPLES / f"{name}.xml").read_text()


class SampleDevice:
    def __init__(self, xml: str) -> None:
        self._xml = xml

    def XMLDesc(self, flags: int = 0) -> str:  # noqa: N802
        return self._xml


@dataclass
class SampleHypervisor:
    capabilities: str = "capabilities_one_cell"
    memory_kib: int = 24_684_100
    devices: list[str] = field(default_factory=list)
    asked: int = 0

    def getCapabilities(self) -> str:  # noqa: N802
        self.asked += 1
        return sample(self.capabilities)

    def getDomainCapabilities(  # noqa: N802
        self, emulatorbin: str | None, arch: str, machine: str, virttype: str, flags: int = 0
    ) -> str:
        assert arch == "x86_64"
        return sample(f"domcapabilities_{virttype}_q35")

    def baselineHypervisorCPU(  # noqa: N802
        self,
        emulator: str | None,
        arch: str,
        machine: str,
        virttype: str,
        xmlCPUs: Sequence[str],  # noqa: N803
        flags: int = 0,
    ) -> str:
        (cpu,) = xmlCPUs
        return sample("cpu_qemu_host_model") if "EPYC" in cpu else cpu

    def getMemoryStats(self, cellNum: int, flags: int = 0) -> dict[str, int]:  # noqa: N802, N803
        return {"total": self.memory_kib, "free": 20_722_620}

    def getVersion(self) -> int:  # noqa: N802
        return 7_002_022

    def listAllDevices(self, flags: int = 0) -> list[SampleDevice]:  # noqa: N802
        return [SampleDevice(xml) for xml in self.devices]
