"""Whether guests may arrive here before all of their memory has.

QEMU then needs the kernel's help for each page that is missing, which kernels refuse to any account but root
unless they are told otherwise; and a migration that asks for it in vain does not even begin.
"""

from __future__ import annotations

from pathlib import Path

from moorage.drivers.libvirt import qemu_account

SETTING = "vm.unprivileged_userfaultfd"
_VALUE = Path("/proc/sys") / SETTING.replace(".", "/")


def objection(value: Path = _VALUE) -> str | None:
    """Why they may not; None if they may."""
    try:
        allowed = value.read_text().strip() == "1"
    except OSError:
        return "this kernel can't tell QEMU which pages of memory are missing (userfaultfd)"
    account = qemu_account.find()
    if allowed or (account is not None and account.pw_uid == 0):
        return None
    return f"QEMU does not run as root, and {SETTING} is 0"
