"""The files that requests before 2.57 want in their servers: drivers put none there, but limits hold."""

from __future__ import annotations

from base64 import b64decode
from collections.abc import Mapping, Sequence

from moorage.compute.errors import ComputeError, QuotaExceeded
from moorage.compute.quotas.quotas import UNLIMITED

File = Mapping[str, str]


def check(files: Sequence[File], limits: Mapping[str, int]) -> None:
    if _exceeds(len(files), limits["injected_files"]):
        raise QuotaExceeded("Personality file limit exceeded")
    sizes = [len(_content(file)) for file in files]
    longest = limits["injected_file_path_length"]
    if any(_exceeds(len(file.get("path", "")), longest) for file in files):
        raise QuotaExceeded(f"Personality file path exceeds maximum {longest}")
    largest = limits["injected_file_content_bytes"]
    if any(_exceeds(size, largest) for size in sizes):
        raise QuotaExceeded(f"Personality file content exceeds maximum {largest}")


def _exceeds(amount: int, limit: int) -> bool:
    return limit != UNLIMITED and amount > limit


def _content(file: File) -> bytes:
    try:
        return b64decode(file.get("contents", ""), validate=True)
    except ValueError as error:
        path = file.get("path", "")
        raise ComputeError(f"Personality content for {path} cannot be decoded") from error
