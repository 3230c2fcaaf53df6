"""What each test costs: time on the clock, and processor time of all processes that it uses.

    MOORAGE_COSTS=costs.jsonl make test
    .venv/bin/python -m tests.support.costs costs.jsonl

The first writes a line a test; the second sums them up by file. Judge by processor time: time on the clock is
also that of whoever uses the machine beside. A control group for each worker counts all that was ever
started from there, daemons that nobody waits for included; where we may not make one, only the worker itself
and what it has waited for are counted. What tests share (PostgreSQL, say) costs the test that asks for it
first.
"""

from __future__ import annotations

import json
import os
import resource
import sys
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

VARIABLE = "MOORAGE_COSTS"


@dataclass
class Cost:
    wall: float = 0.0
    own: float = 0.0
    """Of the worker itself."""
    processor: float = 0.0
    """Of all."""
    tests: int = 0

    def add(self, other: Cost) -> None:
        self.wall += other.wall
        self.own += other.own
        self.processor += other.processor
        self.tests += other.tests


@dataclass
class Meter:
    """Writes what the tests of one worker cost."""

    file: Path
    processor: Callable[[], float] = field(default_factory=lambda: _processor_of_all())

    @contextmanager
    def measure(self, path: str, test: str) -> Iterator[None]:
        wall, own, processor = time.monotonic(), time.process_time(), self.processor()
        yield
        line = {
            "file": path,
            "test": test,
            "wall": round(time.monotonic() - wall, 4),
            "own": round(time.process_time() - own, 4),
            "processor": round(self.processor() - processor, 4),
        }
        with self.file.open("a") as lines:
            lines.write(json.dumps(line) + "\n")


def meter() -> Meter | None:
    """If somebody wants to know."""
    file = os.environ.get(VARIABLE)
    return Meter(Path(file).absolute()) if file else None


def _processor_of_all() -> Callable[[], float]:
    group = _own_group()
    return (lambda: _used_by(group)) if group else _used_by_reaped


def _own_group() -> Path | None:
    """A new control group with us in it; None where there can be none."""
    mounts = (line.split() for line in Path("/proc/mounts").read_text().splitlines())
    for _, root, kind, *_ in mounts:
        if kind == "cgroup2":
            for left in Path(root).glob("moorage-tests-*"):
                with suppress(OSError):  # somebody is still in there
                    left.rmdir()
            group = Path(root) / f"moorage-tests-{os.getpid()}"
            with suppress(OSError):
                group.mkdir()
                (group / "cgroup.procs").write_text(str(os.getpid()))
                return group
    return None


def _used_by(group: Path) -> float:
    statistics = dict(line.split() for line in (group / "cpu.stat").read_text().splitlines())
    return int(statistics["usage_usec"]) / 1e6


def _used_by_reaped() -> float:
    kinds = (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)
    used = [resource.getrusage(kind) for kind in kinds]
    return sum(one.ru_utime + one.ru_stime for one in used)


def by_file(lines: Iterator[str]) -> dict[str, Cost]:
    costs: dict[str, Cost] = defaultdict(Cost)
    for line in lines:
        one = json.loads(line)
        costs[one["file"]].add(Cost(one["wall"], one["own"], one["processor"], 1))
    return costs


def main() -> None:
    with Path(sys.argv[1]).open() as lines:
        costs = by_file(lines)
    total = Cost()
    print(f"{'processor s':>11} {'own s':>8} {'wall s':>8} {'tests':>6}  file")
    for file, cost in sorted(costs.items(), key=lambda item: -item[1].processor):
        total.add(cost)
        print(f"{cost.processor:11.1f} {cost.own:8.1f} {cost.wall:8.1f} {cost.tests:6}  {file}")
    print(f"{total.processor:11.1f} {total.own:8.1f} {total.wall:8.1f} {total.tests:6}  all")


if __name__ == "__main__":
    main()
