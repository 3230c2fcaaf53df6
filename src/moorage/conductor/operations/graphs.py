"""The graph of each kind of operation, drawn from what the kinds declare: `make graphs` writes the page.

For example: python -m moorage.conductor.operations.graphs > docs/compute/operations.md
"""

from __future__ import annotations

from collections.abc import Iterator

from moorage.conductor.operations.kind import OperationKind
from moorage.conductor.operations.register import KINDS

_HEAD = """# Operations, step by step

What each kind of [operation](ledger.md) goes through, as `make graphs` draws it from the code. A step whose
line has no arrow is the last one; any step may end the operation early, and one that waits, or is tried
again, follows itself.
"""


def page() -> str:
    return "\n".join([_HEAD, *(line for kind in KINDS for line in _section(kind))])


def _section(kind: type[OperationKind]) -> Iterator[str]:
    yield f"## {kind.name}"
    yield ""
    heard = [name for name in (kind.notification, *kind.tells) if name is not None]
    if heard:
        yield f"Others hear of it as {', '.join(f'`instance.{name}`' for name in heard)}."
        yield ""
    yield "```text"
    width = max(len(step.name) for step in kind.steps)
    for step in kind.steps:
        yield f"{step.name:<{width}} → {', '.join(step.then)}" if step.then else step.name
    yield "```"
    yield ""


if __name__ == "__main__":
    print(page(), end="")
