"""What each package of Debian says of itself."""

from __future__ import annotations

from dataclasses import dataclass

from moorage.cli.packaging.programs import PROGRAMS

COMMON = "moorage-common"
TOOLS = ("moorage", "moorage-manage", "moorage-status")
"""Commands that are in the package of what all have in common."""
HOST_TOOLS = (
    "dnsmasq-base",
    "libvirt-daemon-system",
    "nftables",
    "python3-libvirt",
    "qemu-system-x86 | qemu-system-arm",
    "qemu-utils",
)
"""For agents of virtual machines."""


@dataclass(frozen=True)
class DebianPackage:
    name: str
    summary: str
    explanation: str
    depends: tuple[str, ...]
    recommends: tuple[str, ...] = ()
    conffiles: tuple[str, ...] = ()

    def control(self, version: str, architecture: str, size: int) -> str:
        lines = [
            f"Package: {self.name}",
            "Source: moorage",
            f"Version: {version}",
            f"Architecture: {architecture}",
            "Maintainer: The Moorage authors <moorage@example.com>",
            f"Installed-Size: {size}",
            f"Depends: {', '.join(self.depends)}",
            *([f"Recommends: {', '.join(self.recommends)}"] if self.recommends else []),
            "Section: net",
            "Priority: optional",
            f"Description: {self.summary}",
            *(f" {line}" for line in self.explanation.splitlines()),
        ]
        return "\n".join(lines) + "\n"


def packages(version: str, python: tuple[int, int]) -> list[DebianPackage]:
    """What has a service of its own is one, so that a machine has what it runs and nothing else."""
    major, minor = python
    common = DebianPackage(
        COMMON,
        "compute control plane that speaks the OpenStack APIs",
        "Moorage decides where servers go and makes them run there.\n"
        "This package has what its services have in common, with all that they need of\n"
        "Python, and the commands of operators. Each service is a package of its own.",
        (f"python3 (>= {major}.{minor})", f"python3 (<< {major}.{minor + 1})", "adduser", "ca-certificates"),
        conffiles=("/etc/moorage/moorage.conf",),
    )
    services = [
        DebianPackage(
            program.name,
            f"compute control plane: {program.summary}",
            f"A service of Moorage: {program.summary}. It is installed, but neither enabled nor\n"
            "started: it has to be configured first.",
            (f"{COMMON} (= {version})",),
            HOST_TOOLS if program.name == "moorage-agent" else (),
            ("/etc/moorage/agent.conf",) if program.name == "moorage-agent" else (),
        )
        for program in PROGRAMS
        if program.is_service
    ]
    return [common, *services]
