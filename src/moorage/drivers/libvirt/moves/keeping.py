"""Copies of a server's disks as they were, beside those that it goes on with."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import msgspec

from moorage.drivers.contract import DriverError
from moorage.drivers.libvirt.storage.qemu_img import Check
from moorage.drivers.libvirt.storage.server_directory import ServerDirectory, ServerRecord


def writable(directory: ServerDirectory) -> list[Path]:
    """What guests write to."""
    return [directory.disk, directory.ephemeral, directory.swap]


def keep(directory: ServerDirectory, check: Check) -> None:
    """Of what the guest is about to change; where the file system can, they share its blocks."""
    directory.before.mkdir(exist_ok=True)
    for path in writable(directory):
        kept = directory.before / path.name
        if not path.exists() or kept.exists():
            continue
        check()
        made = directory.temporary(path.name)
        words = ["cp", "--reflink=auto", "--sparse=always", str(path), str(made)]
        ended = subprocess.run(words, check=False, capture_output=True, text=True)
        if ended.returncode:
            made.unlink(missing_ok=True)
            raise DriverError(f"the disk could not be kept: {ended.stderr[-300:]}", retry_elsewhere=True)
        os.replace(made, kept)


def put_back(directory: ServerDirectory) -> None:
    """All that is still kept: an earlier try may have put some back."""
    for path in directory.before.glob("*"):
        os.replace(path, directory.path / path.name)


def forget(directory: ServerDirectory) -> ServerRecord:
    """The server stays what it is. Copies of a resize that was killed go, too; not those of a move, which are
    for another host, or from one.
    """
    record = directory.require()
    is_ours = record.earlier is not None or not (record.origin or directory.others())
    if record.earlier is not None:
        record = directory.write(msgspec.structs.replace(record, earlier=None))
    if is_ours:
        shutil.rmtree(directory.before, ignore_errors=True)
    return record
