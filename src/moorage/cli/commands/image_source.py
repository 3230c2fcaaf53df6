"""The data of an image that shall be put into a cloud: a file here, or one that is fetched."""

from __future__ import annotations

import hashlib
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from io import BufferedRandom, BufferedReader
from pathlib import Path, PurePosixPath
from urllib.parse import urlsplit

import requests
from rich.console import Console
from rich.progress import BarColumn, DownloadColumn, Progress, TaskID, TextColumn, TransferSpeedColumn

from moorage.cli.errors import CommandError

_MAGIC = {b"QFI\xfb": "qcow2", b"KDMV": "vmdk", b"vhdxfile": "vhdx"}
_SUFFIXES = {".raw": "raw", ".iso": "iso", ".vmdk": "vmdk", ".vhd": "vhd", ".vhdx": "vhdx"}
_ALGORITHMS = ("sha512", "sha256", "md5")
_CHUNK = 1024 * 1024
_TIMEOUT = 60.0


@dataclass(frozen=True)
class Checksum:
    algorithm: str
    value: str

    @classmethod
    def read(cls, text: str) -> Checksum:
        algorithm, _, value = text.lower().partition(":")
        digits = 2 * hashlib.new(algorithm).digest_size if algorithm in _ALGORITHMS else 0
        if not digits or len(value) != digits or set(value) - set("0123456789abcdef"):
            raise CommandError(f"can't read the checksum {text!r}; for example: sha512:0123… with all digits")
        return cls(algorithm, value)


@dataclass(frozen=True)
class LocalSource:
    file: BufferedReader | BufferedRandom
    size: int

    @property
    def disk_format(self) -> str:
        """What it looks like; whoever boots from it looks for itself."""
        self.file.seek(0)
        begin = self.file.read(8)
        return next((name for magic, name in _MAGIC.items() if begin.startswith(magic)), "raw")

    def check(self, wanted: Checksum | None) -> None:
        if wanted is None:
            return
        self.file.seek(0)
        found = hashlib.file_digest(self.file, wanted.algorithm).hexdigest()
        if found != wanted.value:
            raise CommandError(f"the data has another checksum: {wanted.algorithm}:{found}")

    @contextmanager
    def shown(self, what: str) -> Iterator[_Shown]:
        """To be sent, from its beginning, with a bar that tells how far it is."""
        with _progress() as progress:
            yield _Shown(self, progress, progress.add_task(what, total=self.size))


class _Shown:
    def __init__(self, source: LocalSource, progress: Progress, task: TaskID) -> None:
        self._source = source
        self._progress = progress
        self._task = task

    def __len__(self) -> int:
        return self._source.size

    def __iter__(self) -> Iterator[bytes]:
        self._source.file.seek(0)
        while chunk := self._source.file.read(_CHUNK):
            yield chunk
            self._progress.advance(self._task, len(chunk))


@contextmanager
def opened(path: Path) -> Iterator[LocalSource]:
    try:
        with path.open("rb") as file:
            yield LocalSource(file, path.stat().st_size)
    except OSError as error:
        raise CommandError(f"can't read {path}: {error}") from error


@contextmanager
def fetched(url: str) -> Iterator[LocalSource]:
    with tempfile.TemporaryFile() as file, _progress() as progress:
        try:
            with requests.get(url, stream=True, timeout=_TIMEOUT) as answer:
                answer.raise_for_status()
                total = int(answer.headers.get("content-length") or 0) or None
                task = progress.add_task("fetching", total=total)
                for chunk in answer.iter_content(_CHUNK):
                    file.write(chunk)
                    progress.advance(task, len(chunk))
        except requests.RequestException as error:
            raise CommandError(f"can't fetch {url}: {error}") from error
        progress.stop()
        yield LocalSource(file, file.tell())


def format_of_name(url: str) -> str:
    return _SUFFIXES.get(PurePosixPath(urlsplit(url).path).suffix, "qcow2")


def _progress() -> Progress:
    """Shown on a terminal only, and gone when it is done."""
    console = Console(stderr=True)
    return Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        DownloadColumn(),
        TransferSpeedColumn(),
        console=console,
        transient=True,
        disable=not console.is_terminal,
    )
