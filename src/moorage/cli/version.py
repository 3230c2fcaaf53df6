"""The release that is installed here; `pyproject.toml` is where it is written down."""

from __future__ import annotations

from importlib import metadata

PACKAGE = "moorage"


def release() -> str:
    return metadata.version(PACKAGE)
