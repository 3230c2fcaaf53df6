"""The files that a request before 2.57 may inject: how many, with what paths, and of what size."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from moorage.compute.quotas.overruns import require_room
from moorage.compute.quotas.quotas import Limits
from moorage.compute_api import base64_fields


def check(files: Sequence[dict[str, Any]], limits: Limits) -> None:
    """Sizes are those of what is sent, which is base64; a path that is too long is told first."""
    for file in files:
        base64_fields.check("contents", file.get("contents"))
    _require(limits, "injected_files", len(files), "Personality file limit exceeded")
    for name, key, words in (
        ("injected_file_path_length", "path", "Personality file path exceeds maximum"),
        ("injected_file_content_bytes", "contents", "Personality file content exceeds maximum"),
    ):
        longest = max((len(file.get(key, "")) for file in files), default=0)
        _require(limits, name, longest, f"{words} {limits[name]}")


def _require(limits: Limits, name: str, amount: int, refusal: str) -> None:
    require_room(limits, name, 0, amount, refusal)
