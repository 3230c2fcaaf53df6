"""The files that browsers get: two pages of ours, and noVNC."""

from __future__ import annotations

from importlib import resources
from importlib.resources.abc import Traversable
from typing import NamedTuple

_TYPES = {".html": "text/html; charset=utf-8", ".js": "text/javascript; charset=utf-8", ".css": "text/css"}
_FOLDERS = {"static": "", "novnc": "novnc/"}
"""Folders of this package, and where each is seen."""


class StaticPage(NamedTuple):
    content_type: str
    content: bytes


class Pages:
    """All of them, read once: what is not here can't be asked for."""

    def __init__(self) -> None:
        root = resources.files("moorage.consoles")
        self._pages: dict[str, StaticPage] = {}
        for folder, prefix in _FOLDERS.items():
            self._collect(root / folder, prefix)
        self._pages["vnc_lite.html"] = self._pages["vnc.html"] = self._pages["vnc_auto.html"]

    def find(self, path: str) -> StaticPage | None:
        return self._pages.get(path.lstrip("/"))

    def _collect(self, folder: Traversable, prefix: str) -> None:
        for entry in folder.iterdir():
            if entry.is_dir():
                self._collect(entry, f"{prefix}{entry.name}/")
            else:
                kind = _TYPES.get(entry.name[entry.name.rfind(".") :])
                if kind is not None:
                    self._pages[f"{prefix}{entry.name}"] = StaticPage(kind, entry.read_bytes())
