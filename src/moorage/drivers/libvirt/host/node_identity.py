"""The UUID of this host's node, kept in a file: libvirt's own changes with the machine's board."""

from __future__ import annotations

import os
from pathlib import Path

from moorage.core import uuids
from moorage.core.config import ConfigError

FILE = "compute_id"


def node_uuid(directory: Path) -> str:
    """The one that the file says; a new one, once, if there is no file."""
    path = directory / FILE
    if not path.exists():
        _write(path, uuids.generate())
    try:
        return uuids.normal(path.read_text().strip())
    except ValueError as error:
        raise ConfigError(f"{path} holds no UUID: put back the one that this host's node has") from error


def _write(path: Path, text: str) -> None:
    """Whole or not at all, and still there after a power cut; of two that write at once, the first wins."""
    draft = path.with_name(f"{path.name}.{os.getpid()}")
    with draft.open("w") as file:
        file.write(f"{text}\n")
        file.flush()
        os.fsync(file.fileno())
    try:
        os.link(draft, path)
    except FileExistsError:
        return
    finally:
        draft.unlink()
