"""How fast the search engine is by itself: no HTTP, no SQL, one thread.

    python -m bench.placement_engine [providers]

Providers are flat, with three inventories and ten traits each, in fifty aggregates. What is printed is the
best of several runs, because that is what the code costs; anything above it is the machine's other work.
"""

from __future__ import annotations

import random
import resource
import sys
import time
from collections.abc import Callable, Iterator
from functools import partial
from uuid import UUID

from moorage.placement.fleet.fleet import Fleet
from moorage.placement.fleet.record import InventoryRecord, ProviderRecord
from moorage.placement.search.candidates import find_candidates
from moorage.placement.search.capacity import how_many_fit
from moorage.placement.search.encode import AnswerShape, CandidateEncoder
from moorage.placement.search.request import GroupPolicy, RequestGroup, SearchRequest
from moorage.placement.search.why import explain

CLASSES = {0: "VCPU", 1: "MEMORY_MB", 2: "DISK_GB", 3: "SRIOV_NET_VF"}
TRAITS = {number: f"CUSTOM_TRAIT_NUMBER_{number}" for number in range(100)}
NEWEST = AnswerShape.at(39)
FLAVOR = {"VCPU": 4, "MEMORY_MB": 8192, "DISK_GB": 100}


def records(count: int, seed: int = 1) -> Iterator[ProviderRecord]:
    """The same fleet each time, made as it is read so that only the fleet takes memory."""
    chance = random.Random(seed)
    aggregates = [str(UUID(int=number)) for number in range(50)]
    kinds = [tuple(sorted(chance.sample(range(100), 10))) for _ in range(40)]
    for number in range(1, count + 1):
        stock = (
            InventoryRecord(0, 32, 0, 1, 32, 1, 4.0, chance.randrange(128)),
            InventoryRecord(1, 131_072, 512, 1, 131_072, 1, 1.0, chance.randrange(100_000)),
            InventoryRecord(2, 2000, 0, 1, 2000, 1, 1.0, chance.randrange(1500)),
        )
        uuid = str(UUID(int=chance.getrandbits(128)))
        place = (aggregates[number % 50],)
        yield ProviderRecord(
            number, uuid, f"node-{number}", 1, None, number, 1.0, stock, kinds[number % 40], place
        )


def new_fleet() -> Fleet:
    fleet = Fleet()
    fleet.names.set_classes(CLASSES)
    fleet.names.set_traits(TRAITS)
    return fleet


def wide_tree(devices: int) -> Fleet:
    """One host with as many network devices, for the search that has the most combinations."""
    fleet = new_fleet()
    stock = (InventoryRecord(3, 8, 0, 1, 8, 1, 1.0, 0),)
    host = ProviderRecord(1, str(UUID(int=1)), "host", 1, None, 1, 1.0, (), (), ())
    numbers = range(2, devices + 2)
    nics = [ProviderRecord(n, str(UUID(int=n)), f"nic-{n}", 1, 1, 1, 1.0, stock, (), ()) for n in numbers]
    fleet.load([host, *nics])
    return fleet


def best(what: Callable[[], object], runs: int = 20) -> float:
    times = []
    for _ in range(runs):
        start = time.perf_counter()
        what()
        times.append(time.perf_counter() - start)
    return min(times)


def report(label: str, seconds: float) -> None:
    print(f"{label:<44} {seconds * 1000:10.3f} ms")


def main() -> None:
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 100_000
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    generating = best(lambda: sum(1 for _ in records(count)), 1)
    fleet = new_fleet()
    report(f"load {count} providers", best(lambda: fleet.load(records(count)), 1) - generating)
    grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    print(f"{'memory of the fleet, at most':<44} {grown / 1024:10.0f} MB")

    encoder = CandidateEncoder(fleet)

    def ask(group: RequestGroup, limit: int | None = 1000) -> bytes:
        return encoder.encode(find_candidates(fleet, SearchRequest((group,), limit=limit)), NEWEST)

    traits = tuple(frozenset({TRAITS[number]}) for number in fleet.traits_of[0][:3])
    report("candidates, limit=1000, first time", best(lambda: ask(RequestGroup("", FLAVOR)), 1))
    report("candidates, limit=1000", best(lambda: ask(RequestGroup("", FLAVOR))))
    report("candidates, limit=1000, three traits", best(lambda: ask(RequestGroup("", FLAVOR, traits))))
    report("candidates, no limit (10,000 at most)", best(lambda: ask(RequestGroup("", FLAVOR), None), 3))
    tree = RequestGroup("", {"VCPU": 1}, in_tree=fleet.uuids[count // 2])
    report("candidates, in_tree", best(lambda: ask(tree), 200))
    report("one usage update", best(lambda: fleet.update_usage(1, 2, 2.0, {0: 1, 1: 1024, 2: 10}), 200))
    report("why", best(lambda: explain(fleet, SearchRequest((RequestGroup("", {**FLAVOR, "VCPU": 99}),))), 3))
    report("capacity", best(lambda: how_many_fit(fleet, SearchRequest((RequestGroup("", FLAVOR),)), True), 3))

    wide = wide_tree(8)
    groups = tuple(RequestGroup(f"_{number}", {"SRIOV_NET_VF": 1}) for number in range(8))
    for policy in GroupPolicy:
        request = SearchRequest(groups, group_policy=policy)
        report(f"8 groups of 8 choices, {policy}", best(partial(find_candidates, wide, request), 3))


if __name__ == "__main__":
    main()
