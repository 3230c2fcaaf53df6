"""Certificates for the consoles of a host, made as docs/operate/security.md says, by its own words."""

from __future__ import annotations

import re
import shutil
import subprocess
import textwrap
from pathlib import Path
from typing import Any

from moorage.consoles.guest_tls import GuestTls
from tests.lab.libvirt.hosts import LibvirtHost
from tests.unit.docs.pages import ROOT

_PAGE = ROOT / "docs" / "operate" / "security.md"


def _written(section: str, language: str) -> list[str]:
    """What an operator is told to type or write."""
    text = _PAGE.read_text().split(f"\n## {section}\n")[1].split("\n## ")[0]
    fenced = re.findall(rf"^ *```{language}\n(.*?)^ *```$", text, re.MULTILINE | re.DOTALL)
    return [textwrap.dedent(block) for block in fenced]


_AUTHORITY = _written("TLS to the broker", "sh")[0]
_CERTIFY, _INSTALL, UNENCRYPTED, RELOAD = _written("TLS to guests' consoles", "sh")
[_QEMU_CONF] = _written("TLS to guests' consoles", "text")
_THERE = "/etc/pki/libvirt-vnc"


class Certificates:
    """Those that the page makes, for a host and another one."""

    def __init__(self, directory: Path, host: str) -> None:
        directory.mkdir()
        self._directory, self._host = directory, host
        self._run(_AUTHORITY + _CERTIFY.replace("hyper-1", host), directory)

    def install(self, target: Path) -> None:
        """Where this host's QEMU looks for them."""
        self._run(_INSTALL.replace(_THERE, str(target)), self._directory / "consoles" / self._host)

    def tls(self, shown: str = "proxy", ca: str = "ca", **more: Any) -> GuestTls:
        cert, key = (self._directory / f"{shown}.{kind}" if shown else None for kind in ("pem", "key"))
        return GuestTls(self._directory / f"{ca}.pem", cert, key, **more)

    def replace(self, others: Certificates) -> None:
        """What the proxy reads is theirs from now on."""
        for name in ("ca.pem", "proxy.pem", "proxy.key"):
            shutil.copy(others._directory / name, self._directory / name)

    def _run(self, script: str, directory: Path) -> None:
        subprocess.run(["bash", "-ec", script], cwd=directory, check=True, capture_output=True)


def have_tls(host: LibvirtHost, certificates: Certificates, directory: Path) -> str:
    """Guests that are started from now on. What `qemu.conf` was before."""
    certificates.install(directory)
    config = host.directory / "etc" / "qemu.conf"
    before = config.read_text()
    restart_with(host, before + _QEMU_CONF.replace(_THERE, str(directory)))
    return before


def restart_with(host: LibvirtHost, qemu_conf: str) -> None:
    (host.directory / "etc" / "qemu.conf").write_text(qemu_conf)
    host.kill_libvirtd(politely=True)
    host.start_libvirtd()
