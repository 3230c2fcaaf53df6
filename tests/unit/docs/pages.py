"""The pages of the documentation, and the code in them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[3]
_FENCE = re.compile(r"^```(\w*)[^\n]*\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_INLINE = re.compile(r"`([^`]+)`")


@dataclass(frozen=True)
class Page:
    """One file; records of decisions are left out, since they tell of their day."""

    name: str
    text: str

    def blocks(self, *languages: str) -> Iterator[str]:
        for language, code in _FENCE.findall(self.text):
            if language in languages:
                yield code

    def inline(self) -> Iterator[str]:
        """What is marked as code within sentences, however it is wrapped."""
        for code in _INLINE.findall(_FENCE.sub("", self.text)):
            yield " ".join(code.split())

    def commands(self) -> Iterator[str]:
        """Lines that are to be typed, and commands that sentences name."""
        for block in self.blocks("sh", "console", "bash"):
            for line in block.replace("\\\n", " ").splitlines():
                yield line.strip().removeprefix("$ ")
        yield from self.inline()


@cache
def pages() -> tuple[Page, ...]:
    paths = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]
    return tuple(
        Page(str(path.relative_to(ROOT)), path.read_text())
        for path in paths
        if path.parent.name != "decisions" and "_build" not in path.parts
    )
