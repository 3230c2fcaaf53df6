"""A page of the documentation, as who follows it sees it: one block after the other."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

DOCS = Path(__file__).resolve().parents[2] / "docs"

_FENCED = re.compile(
    r"^```(?P<kind>\w+)\n(?P<text>.*?)^```$|^## (?P<section>[^\n]+)$", re.DOTALL | re.MULTILINE
)


@dataclass(frozen=True)
class Block:
    section: str
    kind: str
    """What it is written in: `sh`, `console`, `ini`."""
    text: str

    @property
    def file(self) -> str:
        """Where a file belongs, which its first line says."""
        first = self.text.partition("\n")[0]
        assert first.startswith("# /"), f"nobody knows which file this is:\n{self.text}"
        return first.removeprefix("# ")

    @property
    def commands(self) -> list[str]:
        """Without comments, and without what they print."""
        lines = self.text.splitlines()
        if self.kind == "console":
            lines = [line.removeprefix("$ ") for line in lines if line.startswith("$ ")]
        return [command for line in lines if (command := line.partition(" #")[0].strip())]


def blocks(page: str) -> Iterator[Block]:
    section = ""
    for found in _FENCED.finditer((DOCS / page).read_text()):
        if found["section"]:
            section = found["section"]
        else:
            yield Block(section, found["kind"], found["text"])
