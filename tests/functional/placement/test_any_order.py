"""Whatever happens, in any order: a picture that follows the feed is the one that a fresh load gives.

Providers come, go and come again, the newest first to go; they move, are renamed and change in every way;
several processes read the feed now and then, start anew, or find that what they had not read was pruned.
"""

from __future__ import annotations

import functools
import os
from collections.abc import Callable
from typing import Any

from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, rule, run_state_machine_as_test

from moorage.placement.store.inventories import Inventory
from tests.functional.placement.changing_fleet import CLASSES, RACKS, SEARCHES, TRAITS, ChangingFleet

EXAMPLES = int(os.environ.get("ANY_ORDER_EXAMPLES", "15"))
READERS = 2

number = st.integers(0, 99)
perhaps_number = st.none() | number
one_reader = st.integers(0, READERS - 1)
some_traits = st.sets(st.sampled_from(TRAITS))
some_racks = st.sets(st.sampled_from(RACKS))
some_inventories = st.dictionaries(
    st.sampled_from(CLASSES),
    st.builds(
        Inventory,
        total=st.integers(2, 9),
        reserved=st.integers(0, 1),
        max_unit=st.sampled_from((2, 9)),
        step_size=st.sampled_from((1, 2)),
        allocation_ratio=st.sampled_from((1.0, 1.5)),
    ),
)
Rule = Callable[..., None]


def change(**drawn: st.SearchStrategy[Any]) -> Callable[[Rule], Rule]:
    """A rule after which some of the processes read the feed."""

    def decorate(function: Rule) -> Rule:
        @functools.wraps(function)
        def run(self: AnyOrder, seen_by: set[int], **given: Any) -> None:
            function(self, **given)
            for reader in sorted(seen_by):
                self.fleet.compare(reader)

        declare: Callable[..., Callable[[Rule], Rule]] = rule
        return declare(seen_by=st.sets(one_reader), **drawn)(run)

    return decorate


class AnyOrder(RuleBasedStateMachine):
    """`url` is set by the test."""

    url: str

    def __init__(self) -> None:
        super().__init__()
        self.fleet = ChangingFleet(self.url, READERS)

    def teardown(self) -> None:
        try:
            self.fleet.decide(kept=True)
            for reader in range(READERS):
                self.fleet.compare(reader)
        finally:
            self.fleet.close()

    # Providers come and go

    @change(new=number, parent=perhaps_number, wanted=some_inventories)
    def create(self, new: int, parent: int | None, wanted: dict[str, Inventory]) -> None:
        self._create(new, None if parent is None else self.fleet.some(parent), wanted)

    @change(old=number)
    def delete(self, old: int) -> None:
        self.fleet.delete(self.fleet.some(old))

    @change(new=number, wanted=some_inventories)
    def another_in_place_of_the_newest(self, new: int, wanted: dict[str, Inventory]) -> None:
        self.fleet.release(0, most=99)
        self.fleet.delete(self.fleet.some(-1))
        self._create(new, None, wanted)

    @change(
        old=st.sets(number, max_size=2),
        new=perhaps_number,
        parent=perhaps_number,
        wanted=some_inventories,
        held=some_traits,
        racks=some_racks,
    )
    def report(
        self,
        old: set[int],
        new: int | None,
        parent: int | None,
        wanted: dict[str, Inventory],
        held: set[str],
        racks: set[str],
    ) -> None:
        named = {uuid: self.fleet.name_of(uuid) for uuid in map(self.fleet.some, sorted(old))}
        if new is not None:
            named[self.fleet.unused_uuid(new)] = self.fleet.unused_name(new)
        self.fleet.report(named, None if parent is None else self.fleet.some(parent), wanted, held, racks)

    @change()
    def create_undecidedly(self) -> None:
        self.fleet.create_undecidedly()

    @change(kept=st.booleans())
    def decide(self, kept: bool) -> None:
        self.fleet.decide(kept=kept)

    # They change

    @change(one=number, name=number)
    def rename(self, one: int, name: int) -> None:
        self.fleet.rename(self.fleet.some(one), self.fleet.unused_name(name))

    @change(one=number, parent=perhaps_number)
    def move(self, one: int, parent: int | None) -> None:
        self.fleet.move(self.fleet.some(one), None if parent is None else self.fleet.some(parent))

    @change(one=number, wanted=some_inventories)
    def set_inventories(self, one: int, wanted: dict[str, Inventory]) -> None:
        self.fleet.set_inventories(self.fleet.some(one), wanted)

    @change(one=number, wanted=some_traits)
    def set_traits(self, one: int, wanted: set[str]) -> None:
        self.fleet.set_traits(self.fleet.some(one), wanted)

    @change(one=number, wanted=some_racks, counted=st.booleans())
    def set_aggregates(self, one: int, wanted: set[str], counted: bool) -> None:
        self.fleet.set_aggregates(self.fleet.some(one), wanted, counted=counted)

    @change(name=st.sampled_from(("CUSTOM_A", "CUSTOM_B")))
    def class_comes_or_goes(self, name: str) -> None:
        self.fleet.switch_class(name)

    @change(name=st.sampled_from(("CUSTOM_A", "CUSTOM_B")))
    def trait_comes_or_goes(self, name: str) -> None:
        self.fleet.switch_trait(name)

    @change()
    def rename_class(self) -> None:
        self.fleet.rename_class("CUSTOM_A", "CUSTOM_B")

    # They are used

    @change(reader=one_reader, search=st.sampled_from(SEARCHES), chosen=number)
    def claim(self, reader: int, search: str, chosen: int) -> None:
        """What a search offers can be had."""
        offers = self.fleet.offers(reader, search)
        if offers:
            self.fleet.claim(reader, offers[chosen % len(offers)])

    @change(reader=one_reader)
    def release(self, reader: int) -> None:
        self.fleet.release(reader, most=1)

    # What processes do

    @rule(reader=one_reader)
    def read(self, reader: int) -> None:
        self.fleet.compare(reader)

    @rule(reader=one_reader)
    def restart(self, reader: int) -> None:
        self.fleet.restart(reader)

    @change()
    def prune(self) -> None:
        self.fleet.prune()

    def _create(self, new: int, parent: str | None, wanted: dict[str, Inventory]) -> None:
        """One that there was may come again, with the name of another."""
        uuid = self.fleet.unused_uuid(new)
        self.fleet.create(uuid, self.fleet.unused_name(new), parent)
        self.fleet.set_inventories(uuid, wanted)


def test_a_picture_that_follows_the_feed_is_a_fresh_one(database_url: str) -> None:
    run_state_machine_as_test(
        type("Machine", (AnyOrder,), {"url": database_url}),
        settings=settings(
            max_examples=EXAMPLES,
            stateful_step_count=30,
            deadline=None,
            phases=[phase for phase in Phase if phase is not Phase.explain],
            suppress_health_check=list(HealthCheck),
        ),
    )
