"""Pages with commands and what they print: typed as they are written, and compared."""

from __future__ import annotations

import re

from tests.integration.operate.watched import Watched
from tests.support.manual import Block
from tests.support.processes import NotReadyError, wait_until

PATIENCE = 90.0


def follow(cloud: Watched, block: Block) -> None:
    """The last command prints what the page says, sooner or later: some of it has to be noticed first."""
    *first, last = block.commands
    for command in first:
        cloud.typed(command)
    wanted = [pattern(line) for line in block.text.splitlines() if not line.startswith("$ ")]
    printed = ""

    def matches() -> bool:
        nonlocal printed
        printed = cloud.typed(last)
        lines = [" ".join(line.split()) for line in printed.splitlines()]
        return all(any(re.fullmatch(one, line) for line in lines) for one in wanted)

    try:
        wait_until(matches, last, PATIENCE)
    except NotReadyError as error:
        raise AssertionError(f"{last} printed:\n{printed}") from error


def pattern(line: str) -> str:
    """`…` is whatever is different each time."""
    return ".*".join(re.escape(part.strip()) for part in " ".join(line.split()).split("…"))
