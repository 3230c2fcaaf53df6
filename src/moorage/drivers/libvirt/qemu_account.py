"""The account that libvirt runs QEMU as, which is seldom root."""

from __future__ import annotations

import contextlib
import os
import pwd
import re
from pathlib import Path

_PACKAGED = ("libvirt-qemu", "qemu")
"""By Debian's and by Fedora's packages."""
_SETTINGS = Path("/etc/libvirt/qemu.conf")
_USER_SETTING = re.compile(r'^\s*user\s*=\s*"\+?([^"]+)"', re.MULTILINE)


def find(settings: Path = _SETTINGS) -> pwd.struct_passwd | None:
    """The one that libvirt's settings name, else its packagers'; None if that can't be told."""
    said = _USER_SETTING.search(settings.read_text()) if os.access(settings, os.R_OK) else None
    for name in (said.group(1),) if said else _PACKAGED:
        with contextlib.suppress(KeyError):
            return pwd.getpwuid(int(name)) if name.isdecimal() else pwd.getpwnam(name)
    return None
