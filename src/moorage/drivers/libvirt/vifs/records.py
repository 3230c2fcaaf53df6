"""What is plugged on this host, in a file each: who comes after a crash or a reboot reads what was meant."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Generic, TypeVar

import msgspec

from moorage.core import private

R = TypeVar("R", bound=msgspec.Struct)
_ENDING = ".json"


class PortRecords(Generic[R]):
    """Records of one type, by the port's ID."""

    def __init__(self, directory: Path, kind: type[R]) -> None:
        private.directory(directory)
        self._directory = directory
        self._kind = kind

    def put(self, port_id: str, record: R) -> None:
        """Whole, or not at all."""
        write(self._path(port_id), msgspec.json.encode(record))

    def get(self, port_id: str) -> R | None:
        try:
            return msgspec.json.decode(self._path(port_id).read_bytes(), type=self._kind)
        except FileNotFoundError:
            return None

    def remove(self, port_id: str) -> None:
        self._path(port_id).unlink(missing_ok=True)

    def all(self) -> dict[str, R]:
        """By port."""
        found = {path.stem: self.get(path.stem) for path in sorted(self._directory.glob(f"*{_ENDING}"))}
        return {port_id: record for port_id, record in found.items() if record is not None}

    def _path(self, port_id: str) -> Path:
        return self._directory / f"{port_id}{_ENDING}"


def write(path: Path, content: bytes) -> None:
    """In place of what was there; nobody ever reads half of it."""
    unfinished = path.with_name(f"{path.name}.part")
    with unfinished.open("wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
    unfinished.replace(path)
