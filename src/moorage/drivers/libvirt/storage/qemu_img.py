"""`qemu-img`, and what it says of files that nobody vouches for."""

from __future__ import annotations

import contextlib
import os
import subprocess
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path

import msgspec

from moorage.drivers.contract import DriverError

Check = Callable[[], None]
"""Called now and then; raises what ends the work."""

_LOOKS = 0.1
_LIMITS = ("prlimit", f"--as={1 << 30}", "--cpu=30")
"""What may be spent on looking at a stranger's file, which may be made to cost much."""


class BadImageError(DriverError):
    """The image is not what a guest may boot from; it would be the same on every host."""


class ImageInfo(msgspec.Struct, frozen=True, rename="kebab"):
    format: str
    virtual_size: int
    backing_filename: str = ""
    backing_filename_format: str = ""
    format_specific: dict[str, object] = {}

    @property
    def data_file(self) -> str:
        data = self.format_specific.get("data")
        return str(data.get("data-file", "")) if isinstance(data, dict) else ""

    @property
    def extents(self) -> list[str]:
        """Files that a VMDK names."""
        data = self.format_specific.get("data")
        found = data.get("extents", []) if isinstance(data, dict) else []
        return [str(extent.get("filename", "")) for extent in found]

    @property
    def create_type(self) -> str:
        data = self.format_specific.get("data")
        return str(data.get("create-type", "")) if isinstance(data, dict) else ""


def info(path: Path, image_format: str = "", check: Check | None = None) -> ImageInfo:
    """What it is, in the format that is said, or that it looks like. Its backing file is not opened."""
    words = ["-U", "--output=json", *(["-f", image_format] if image_format else []), str(path)]
    return msgspec.json.decode(_run(["info", *words], check, limits=_LIMITS), type=ImageInfo)


def create(path: Path, size: int, image_format: str = "qcow2") -> None:
    _run(["create", "-q", "-f", image_format, str(path), str(size)])


def create_overlay(path: Path, base: Path, base_format: str, size: int = 0) -> None:
    """The base's format is always said: nobody shall ever guess what is in it."""
    more = [str(size)] if size else []
    _run(["create", "-q", "-f", "qcow2", "-F", base_format, "-b", str(base), str(path), *more])


def convert(source: Path, source_format: str, target: Path, target_format: str, check: Check) -> None:
    """When this returns, the target is on the disk."""
    _run(["convert", "-q", "-f", source_format, "-O", target_format, str(source), str(target)], check)
    with target.open("rb") as written:
        os.fsync(written.fileno())


def resize(path: Path, size: int, image_format: str) -> None:
    """Larger; a smaller size is refused."""
    _run(["resize", "-q", "-f", image_format, str(path), str(size)])


def rebase_in_place(path: Path, base: Path, base_format: str) -> None:
    """Name another file with the same content as its base."""
    _run(["rebase", "-q", "-u", "-f", "qcow2", "-F", base_format, "-b", str(base), str(path)])


def _run(words: list[str], check: Check | None = None, limits: Sequence[str] = ()) -> bytes:
    with tempfile.TemporaryFile() as output, tempfile.TemporaryFile() as errors:
        process = subprocess.Popen(
            [*limits, "qemu-img", *words],
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=errors,
            env={**os.environ, "LC_ALL": "C"},
        )
        try:
            _wait(process, check)
        except BaseException:
            process.kill()
            process.wait()
            raise
        output.seek(0)
        errors.seek(0)
        if process.returncode:
            said = errors.read().decode(errors="replace").strip()
            raise DriverError(f"qemu-img {words[0]} failed: {said[-500:]}", retry_elsewhere=True)
        return output.read()


def _wait(process: subprocess.Popen[bytes], check: Check | None) -> None:
    if check is None:
        process.wait()
        return
    while True:
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(_LOOKS)
            return
        check()
