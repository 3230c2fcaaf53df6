"""Microversions by name: an API has one table of them, a line a version with what it brought."""

from __future__ import annotations

from typing import Self

Version = tuple[int, int]


class Since(tuple[int, int]):
    """A line of the table: compared as any version, read as what it brought.

    For example: SERVER_TAGS = Since((2, 26), "servers have tags, and are listed by them")
    """

    brought: str

    def __new__(cls, version: Version, brought: str) -> Self:
        line = super().__new__(cls, version)
        line.brought = brought
        return line


class VersionTable:
    """What the table of an API is made of: its class attributes are the lines, oldest first."""

    @classmethod
    def lines(cls) -> list[Since]:
        return [line for line in vars(cls).values() if isinstance(line, Since)]

    @classmethod
    def lowest(cls) -> Version:
        return min(cls.lines())

    @classmethod
    def highest(cls) -> Version:
        return max(cls.lines())

    @classmethod
    def as_markdown(cls) -> str:
        """The table as it stands in the documentation."""
        lines = (f"| {text(line)} | {line.brought} |\n" for line in cls.lines())
        return "| version | what it brought |\n|---|---|\n" + "".join(lines)


def text(version: Version) -> str:
    return f"{version[0]}.{version[1]}"
