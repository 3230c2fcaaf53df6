"""How long it takes to come over from a reference with a large database, and to go back; in how much memory.

The reference's tables are made by its own command, and filled by ours; both are on one PostgreSQL.
"""

from __future__ import annotations

import json
import multiprocessing
import os
import resource
import tempfile
import time
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.table import Table

from moorage.core.clock import utcnow
from moorage.db import engine, migrate
from moorage.db.database import Database
from moorage.placement.takeover import moving
from moorage.placement.takeover.moving import MoveResult
from moorage.placement.takeover.records import (
    BATCH,
    NameTables,
    WholeAllocation,
    WholeConsumer,
    WholeInventory,
    WholeProvider,
)
from moorage.placement.takeover.reference_writing import ReferenceWriting
from moorage.takeover.foreign import ForeignDatabase
from tests.support import postgres, reference

EXAMPLE = "Example: python -m bench.takeover --providers 10000 --json figures.json"
CLASSES = {"VCPU": 64, "MEMORY_MB": 262_144, "DISK_GB": 4_000}
TRAITS = [f"CUSTOM_BENCH_{number}" for number in range(10)]

app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)


@app.command(help=f"{__doc__}\n\n{EXAMPLE}")
def main(
    providers: Annotated[
        int, typer.Option(help="Of three inventories, ten traits and an aggregate.")
    ] = 100_000,
    consumers: Annotated[int, typer.Option(help="Of three allocations each.")] = 340_000,
    output: Annotated[Path | None, typer.Option("--json", help="Write the figures here.")] = None,
) -> None:
    console = Console(width=max(120, Console().width))
    if os.getloadavg()[0] > 1:
        console.print(f"The machine is busy (load {os.getloadavg()[0]:.1f}): trust the processor time only.")
    with tempfile.TemporaryDirectory(prefix="moorage-bench-") as directory, postgres.start() as server:
        urls = {name: server.create_database(name) for name in ("ours", "full", "back")}
        migrate.sync(engine.connect(urls["ours"]))
        for name in ("full", "back"):
            reference.configure(Path(directory), urls[name])
            reference.sync_database(Path(directory))
        _fill(urls["full"], providers, consumers)
        figures = [_measured(what, urls) for what in ("import", "compare", "export")]
    table = Table("what", "seconds", "of its processor time", "memory at most, MiB")
    for figure in figures:
        table.add_row(
            *(figure["what"], f"{figure['seconds']:.1f}", f"{figure['cpu']:.1f}", f"{figure['mib']:.0f}")
        )
    console.print(f"{providers:,} providers, {consumers:,} consumers, {3 * consumers:,} allocations")
    console.print(table)
    if output is not None:
        output.write_text(json.dumps(figures, indent=1) + "\n")


def _fill(url: str, providers: int, consumers: int) -> None:
    now = utcnow()
    uuids = [str(uuid.UUID(int=number + 1)) for number in range(providers)]
    with ForeignDatabase(url) as foreign, foreign.write() as connection:
        writing = ReferenceWriting(connection)
        writing.begin(
            NameTables(dict.fromkeys(CLASSES, now), dict.fromkeys(TRAITS, now), ["INSTANCE"]), uuids
        )
        for first in range(0, providers, BATCH):
            writing.add_providers(
                [
                    WholeProvider(
                        *(one, f"node-{one}", 7, None, one),
                        [
                            WholeInventory(name, total, 0, 1, total, 1, 16.0, now)
                            for name, total in CLASSES.items()
                        ],
                        TRAITS,
                        [uuids[first // BATCH]],
                        now,
                    )
                    for one in uuids[first : first + BATCH]
                ]
            )
        for batch in _consumers(uuids, consumers):
            writing.add_consumers(batch)
        writing.finish()


def _consumers(uuids: list[str], count: int) -> Iterator[list[WholeConsumer]]:
    now = utcnow()
    for first in range(0, count, BATCH):
        yield [
            WholeConsumer(
                *(str(uuid.UUID(int=2**100 + number)), f"project-{number % 500}", f"user-{number % 2000}", 1),
                "INSTANCE",
                [WholeAllocation(uuids[number % len(uuids)], name, 1, now) for name in CLASSES],
            )
            for number in range(first, min(count, first + BATCH))
        ]


def _measured(what: str, urls: dict[str, str]) -> dict[str, Any]:
    """In a process of its own, whose memory is that of the work."""
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        return pool.apply(_work, (what, urls))


def _work(what: str, urls: dict[str, str]) -> dict[str, Any]:
    database = Database(engine.connect(urls["ours"]))
    begun, used = time.perf_counter(), time.process_time()
    with ForeignDatabase(urls["back" if what == "export" else "full"]) as foreign:
        if what == "compare":
            assert moving.contrast(foreign, database).is_equal
        else:
            done = moving.bring(foreign, database) if what == "import" else moving.send(database, foreign)
            assert done.result is MoveResult.WRITTEN, done
    return {
        "what": what,
        "seconds": time.perf_counter() - begun,
        "cpu": time.process_time() - used,
        "mib": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
    }


if __name__ == "__main__":
    app()
