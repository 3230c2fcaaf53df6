"""What of a connection to libvirt is needed to know the host, in libvirt's own words."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

ALL_CELLS = -1
EXPAND_FEATURES = 1
"""VIR_CONNECT_BASELINE_CPU_EXPAND_FEATURES"""
PCI_DEVICES = 1 << 1
"""VIR_CONNECT_LIST_NODE_DEVICES_CAP_PCI_DEV"""


class NodeDevice(Protocol):
    def XMLDesc(self, flags: int = 0) -> str: ...  # noqa: N802


class HypervisorConnection(Protocol):
    """A `virConnect`, or what stands for one."""

    def getCapabilities(self) -> str: ...  # noqa: N802

    def getDomainCapabilities(  # noqa: N802
        self, emulatorbin: str | None, arch: str, machine: str, virttype: str, flags: int = 0
    ) -> str: ...

    def baselineHypervisorCPU(  # noqa: N802
        self,
        emulator: str | None,
        arch: str,
        machine: str,
        virttype: str,
        xmlCPUs: Sequence[str],  # noqa: N803
        flags: int = 0,
    ) -> str: ...

    def getMemoryStats(self, cellNum: int, flags: int = 0) -> dict[str, int]: ...  # noqa: N802, N803

    def getVersion(self) -> int: ...  # noqa: N802

    def listAllDevices(self, flags: int = 0) -> Sequence[NodeDevice]: ...  # noqa: N802
