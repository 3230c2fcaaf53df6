"""The order in which one run measures: each side alone on the machine, on the same PostgreSQL server."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from bench.placement import measures, moorage_side, reference_side
from bench.placement.figures import MEANINGS, Figure, Figures, Measure, Side
from bench.placement.load import Meter, Outcome
from bench.placement.nodes import Node, make_nodes
from tests.support import moorage
from tests.support.postgres import Postgres
from tests.support.processes import Service, cpu_seconds, memory_of, process_tree

WORKERS = 2
REFERENCE_SAMPLE = 300
WANTED_TRAIT = "HW_CPU_X86_AVX2"

# What a PostgreSQL of this size would be given; both sides get the same.
SETTINGS = {
    "shared_buffers": "1GB",
    "effective_cache_size": "8GB",
    "work_mem": "64MB",
    "random_page_cost": "1.1",
    "max_wal_size": "4GB",
    "wal_buffers": "16MB",
    "jit": "off",
    "max_parallel_workers_per_gather": "0",
}


@dataclass
class Run:
    """One run: what to measure, where, and whom to tell about progress."""

    server: Postgres
    directory: Path
    only: frozenset[Measure]
    seconds: float
    tell: Callable[[str], None]
    figures: Figures

    def measure(self, size: int, reference_too: bool) -> None:
        nodes = list(make_nodes(size))
        if reference_too:
            self._measure_reference(nodes)
        self._measure_moorage(nodes)

    def _measure_reference(self, nodes: list[Node]) -> None:
        size, database = len(nodes), f"reference_{len(nodes)}"
        self.tell(f"reference, {size:,} nodes: filling")
        service = reference_side.start(self.directory / database, self.server, database, nodes, WORKERS)
        with service:
            self._common(Side.REFERENCE, service, nodes, repeats=15)
            if Measure.REPORT in self.only:
                self._reference_reports(service, size)
        self.server.drop_database(database)

    def _reference_reports(self, service: Service, size: int) -> None:
        """The reference has no bulk call: some nodes are reported one by one, and the rest is reckoned."""
        more = list(make_nodes(size + REFERENCE_SAMPLE))[size:]
        note = f"reckoned from {REFERENCE_SAMPLE} nodes, 16 clients"
        self.tell(f"reference, {size:,} nodes: report")
        created = measures.report_one_by_one(service.port, more)
        checked = measures.report_unchanged_one_by_one(service.port, more)
        for measure, outcome in ((Measure.REPORT, created), (Measure.UNCHANGED, checked)):
            if outcome.failures:
                raise measures.WrongAnswerError(f"the reference refused: {outcome.failures}")
            self._add(size, measure, Side.REFERENCE, size / outcome.rate, note)

    def _measure_moorage(self, nodes: list[Node]) -> None:
        size, database = len(nodes), f"moorage_{len(nodes)}"
        config = moorage_side.configure(self.directory / database, self.server, database)
        with moorage.start(config, workers=WORKERS) as service:
            self._moorage_report(Measure.REPORT, service, nodes)
            moorage_side.occupy(service.port, nodes)
            self._common(Side.MOORAGE, service, nodes, repeats=100)
            self._moorage_report(Measure.UNCHANGED, service, nodes)
        if Measure.COLD in self.only:
            self.tell(f"moorage, {size:,} nodes: cold start")
            service, seconds = moorage_side.cold_start(config)
            with service:
                self._add(size, Measure.COLD, Side.MOORAGE, seconds)
        self.server.drop_database(database)

    def _moorage_report(self, measure: Measure, service: Service, nodes: list[Node]) -> None:
        self.tell(f"moorage, {len(nodes):,} nodes: {measure}")
        outcome = moorage_side.report(service.port, nodes, self._meter(service))
        note = f"{len(nodes) / outcome.seconds:,.0f} nodes/s, {outcome.cpu_seconds:.1f} s of CPU"
        self._add(len(nodes), measure, Side.MOORAGE, outcome.seconds, note)

    def _meter(self, service: Service) -> Meter:
        """Of the service and its database together."""
        return lambda: cpu_seconds([*service.pids(), *process_tree(self.server.pid)])

    def _common(self, side: Side, service: Service, nodes: list[Node], repeats: int) -> None:
        """What is measured alike on both sides."""
        size, port = len(nodes), service.port
        expected = min(1000, sum(WANTED_TRAIT in node.traits for node in nodes))
        meter = self._meter(service)
        runs: dict[Measure, Callable[[], Outcome]] = {
            Measure.CANDIDATES: lambda: measures.candidates(port, expected, repeats, meter),
            Measure.IN_TREE: lambda: measures.in_tree(port, nodes, 20 * repeats, meter),
            Measure.CLAIMS: lambda: measures.claims(port, nodes, self.seconds, meter),
            Measure.HOT: lambda: measures.hot_provider(port, self.seconds, meter),
        }
        for measure, run in runs.items():
            if measure in self.only:
                self.tell(f"{side}, {size:,} nodes: {measure}")
                outcome = run()
                cpu_ms = 1000 * outcome.cpu_seconds / outcome.requests
                self._add(size, measure, side, _value(measure, outcome), _note(outcome), cpu_ms)
        largest = max(memory_of(pid) for pid in service.pids() if pid != service.pid)
        self._add(size, Measure.MEMORY, side, largest / 2**20)

    def _add(
        self,
        size: int,
        measure: Measure,
        side: Side,
        value: float,
        note: str = "",
        cpu_ms: float | None = None,
    ) -> None:
        if measure in self.only:
            self.figures.add(Figure(size, measure, side, value, note, cpu_ms))


def _value(measure: Measure, outcome: Outcome) -> float:
    if MEANINGS[measure].more_is_better:
        return outcome.succeeded / outcome.seconds
    return outcome.median_ms


def _note(outcome: Outcome) -> str:
    refused = [f"{count} × {status}" for status, count in sorted(outcome.statuses.items()) if status >= 300]
    return ", ".join([f"p99 {outcome.p99_ms:,.1f} ms", *refused])
