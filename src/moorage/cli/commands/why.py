"""`moorage placement why`: what keeps a request from finding candidates."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import msgspec
import typer
from rich import box
from rich.console import Console
from rich.table import Table

from moorage.cli.options import Cloud, Data, Json
from moorage.cli.service import ask
from moorage.placement.search.why import Condition, Explanation, ProviderCount

PATH = "/moorage/v1/why"


def why(
    query: Annotated[str, typer.Argument(help="The query string of an allocation-candidates request.")],
    misses: Annotated[int, typer.Option(min=0, max=100, help="How many nearest misses to show.")] = 5,
    cloud: Cloud = None,
    data: Data = Path("data"),
    as_json: Json = False,
) -> None:
    """Explain why a request for allocation candidates finds none, or few.

    Example: moorage placement why "resources=VCPU:4,MEMORY_MB:8192&required=HW_CPU_X86_AVX2"
    """
    answer = ask(PATH, f"{query}&misses={misses}", cloud, data)
    if as_json:
        typer.echo(answer)
    else:
        _show(msgspec.json.decode(answer, type=Explanation), Console(highlight=False, soft_wrap=True))


def _show(explanation: Explanation, console: Console) -> None:
    total = explanation.total
    console.print(f"[bold]{explanation.trees_left} of {total.trees} trees[/] can serve this request.\n")
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    table.add_column("\ncondition")
    for heading in ("excludes alone\nproviders", "\ntrees", "left after it\nproviders", "\ntrees"):
        table.add_column(heading, justify="right")
    table.add_row("(all)", "", "", *_numbers(total))
    for condition in explanation.conditions:
        table.add_row(_words(condition), *_numbers(condition.excludes_alone), *_numbers(condition.left))
    console.print(table)
    if not all(condition.exact for condition in explanation.conditions):
        console.print("(There were too many trees to try every combination: the last counts are bounds.)")
    if explanation.excludes_most is not None:
        console.print(f"Excludes the most: [bold]{_words(explanation.excludes_most)}[/]")
    if explanation.near_misses:
        console.print("\nNearest misses:")
    for miss in explanation.near_misses:
        console.print(f"  {miss.name} ({miss.uuid})")
        for failure in miss.failures:
            console.print(f"    - {failure}")


def _words(condition: Condition) -> str:
    where = f"group {condition.group}: " if condition.group else ""
    return f"{where}{condition.kind.replace('_', ' ')} {condition.subject}"


def _numbers(count: ProviderCount) -> tuple[str, str]:
    return ("" if count.providers is None else str(count.providers), str(count.trees))
