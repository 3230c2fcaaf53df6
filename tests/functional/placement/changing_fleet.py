"""A fleet that changes in every way that Placement knows, and processes that read of it."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Callable
from functools import partial
from typing import Any
from uuid import UUID

import sqlalchemy as sa

from moorage.core import config, uuids
from moorage.db import engine
from moorage.db.database import Database
from moorage.db.tables import placement as tables
from moorage.placement import feed
from moorage.placement.claims import Claim
from moorage.placement.errors import PlacementError
from moorage.placement.fleet.names import SHARING_TRAIT, UnknownNameError
from moorage.placement.options import OPTIONS
from moorage.placement.report import InventoryReport, ProviderReport
from moorage.placement.search import parse
from moorage.placement.search.candidates import find_candidates
from moorage.placement.search.encode import AnswerShape
from moorage.placement.search.providers import find_providers
from moorage.placement.service import Picture, PlacementService, PlacementSettings
from moorage.placement.store import aggregates, inventories, names, providers, reports, traits
from moorage.placement.store.inventories import Inventory
from tests.support.pictures import picture

SETTINGS = PlacementSettings.from_conf(config.read([], [OPTIONS]))
LATEST = (1, 39)

UUIDS = [str(UUID(int=0x1000 + number)) for number in range(5)]
NAMES = [f"node-{letter}" for letter in "abcde"]
RACKS = [str(UUID(int=0xA000 + number)) for number in range(2)]
CLASSES = ["VCPU", "DISK_GB", "CUSTOM_A", "CUSTOM_B"]
TRAITS = ["HW_CPU_X86_VMX", SHARING_TRAIT, "CUSTOM_A", "CUSTOM_B"]
SEARCHES = (
    "resources=VCPU:1",
    "resources=VCPU:2&required=HW_CPU_X86_VMX",
    "resources=VCPU:1,DISK_GB:1",
    "resources1=VCPU:1&resources2=DISK_GB:1&group_policy=isolate",
    f"resources=DISK_GB:1&member_of={RACKS[0]}",
    "resources=CUSTOM_A:1",
    "resources=VCPU:1&required=CUSTOM_A",
    f"resources=VCPU:1&in_tree={UUIDS[0]}",
)
LISTINGS = ("", f"name={NAMES[0]}", f"uuid={UUIDS[1]}", f"in_tree={UUIDS[2]}", f"member_of={RACKS[1]}")


def opened(url: str) -> Database:
    return Database(engine.connect(url, sqlite_synchronous="OFF"))


def process(url: str) -> PlacementService:
    """One that has just started; its housekeeping has not, so that it reads the feed when it is told to."""
    return PlacementService(opened(url), SETTINGS)


class ChangingFleet:
    """Few providers with few names, so that they come again, take each other's places, and meet."""

    def __init__(self, url: str, readers: int) -> None:
        self.url = url
        self.database = opened(url)
        self.readers = [process(url) for _ in range(readers)]
        self._undecided: contextlib.ExitStack | None = None
        self.database.transact(_empty)

    def close(self) -> None:
        for reader in self.readers:
            reader.stop()
        self.database.engine.dispose()

    # Who there is

    def some(self, number: int) -> str:
        """A provider that there is, by its age: -1 for the newest; nothing if there are none."""
        found = self._values(sa.select(tables.providers.c.uuid).order_by(tables.providers.c.id))
        return found[number % len(found)] if found else ""

    def name_of(self, uuid: str) -> str:
        (name,) = self._values(sa.select(tables.providers.c.name).where(tables.providers.c.uuid == uuid)) or (
            "",
        )
        return name

    def unused_uuid(self, number: int) -> str:
        return _unused(UUIDS, self._values(sa.select(tables.providers.c.uuid)), number)

    def unused_name(self, number: int) -> str:
        return _unused(NAMES, self._values(sa.select(tables.providers.c.name)), number)

    # What happens to them: what is refused changes nothing

    def create(self, uuid: str, name: str, parent: str | None) -> None:
        if uuid and name:
            self._perhaps(lambda connection: providers.create(connection, uuid, name, parent or None))

    def create_undecidedly(self) -> None:
        """In a transaction that stays open while others begin and commit; SQLite has none."""
        if self.database.is_postgresql and self._undecided is None:
            self._undecided = contextlib.ExitStack()
            connection = self._undecided.enter_context(self.database.write())
            uuid = uuids.generate()
            providers.create(connection, uuid, f"late {uuid}", None)

    def decide(self, *, kept: bool) -> None:
        if self._undecided is not None:
            undecided, self._undecided = self._undecided, None
            with contextlib.suppress(InterruptedError), undecided:
                if not kept:
                    raise InterruptedError

    def delete(self, uuid: str) -> None:
        self._perhaps(lambda connection: providers.delete(connection, uuid))

    def rename(self, uuid: str, name: str) -> None:
        if name:
            self._change(uuid, lambda connection, one: providers.rename(connection, one, name))

    def move(self, uuid: str, parent: str | None) -> None:
        self._change(
            uuid, lambda connection, one: providers.set_parent(connection, one, parent, reparenting=True)
        )

    def set_inventories(self, uuid: str, wanted: dict[str, Inventory]) -> None:
        self._change(uuid, lambda connection, one: inventories.replace(connection, one, wanted))

    def set_traits(self, uuid: str, wanted: set[str]) -> None:
        self._change(
            uuid,
            lambda connection, one: traits.replace(
                connection, one, names.list_traits(connection, names=wanted)
            ),
        )

    def set_aggregates(self, uuid: str, wanted: set[str], *, counted: bool) -> None:
        self._change(
            uuid,
            lambda connection, one: aggregates.replace(connection, one, wanted, count_generation=counted),
        )

    def report(
        self,
        named: dict[str, str],
        parent: str | None,
        wanted: dict[str, Inventory],
        held: set[str],
        racks: set[str],
    ) -> None:
        """Many at once, as agents do."""
        given = [
            ProviderReport(
                uuid=uuid,
                name=name,
                parent_provider_uuid=parent or None,
                inventories={one: InventoryReport(**each.values()) for one, each in wanted.items()},  # type: ignore[arg-type]
                traits=sorted(held),
                aggregates=sorted(racks),
            )
            for uuid, name in named.items()
            if uuid and name
        ]
        self._perhaps(lambda connection: reports.write(connection, given))

    def switch_class(self, name: str) -> None:
        """It comes if there is none, else it goes."""
        self._perhaps(partial(_switch, names.ensure_class, names.delete_class, name))

    def switch_trait(self, name: str) -> None:
        self._perhaps(partial(_switch, names.ensure_trait, names.delete_trait, name))

    def rename_class(self, old: str, new: str) -> None:
        self._perhaps(lambda connection: names.rename_class(connection, old, new))

    def offers(self, reader: int, search: str) -> list[Any]:
        with self.readers[reader].picture() as seen:
            offered: list[Any] = found(seen, search)["allocation_requests"]
        return offered

    def claim(self, reader: int, offer: Any) -> None:
        """Not to be refused: nobody has changed anything since it was offered."""
        amounts = {uuid: held["resources"] for uuid, held in offer["allocations"].items()}
        self.readers[reader].claims.submit([Claim(uuids.generate(), "project", "user", amounts)])

    def release(self, reader: int, most: int) -> None:
        for consumer in self._values(sa.select(tables.consumers.c.uuid).limit(most)):
            self.readers[reader].claims.submit([Claim(consumer, "project", "user", {})])

    # What processes do

    def compare(self, reader: int) -> None:
        """A process that follows the feed sees what one sees that looks for the first time."""
        stranger = PlacementService(self.database, SETTINGS)
        with self.readers[reader].picture() as kept, stranger.picture() as fresh:
            assert picture(kept.fleet) == picture(fresh.fleet)
            for uuid, name in zip(UUIDS, NAMES, strict=True):
                assert (kept.fleet.slot_of_uuid(uuid) is None) == (fresh.fleet.slot_of_uuid(uuid) is None)
                assert (kept.fleet.slot_of_name(name) is None) == (fresh.fleet.slot_of_name(name) is None)
            for query in SEARCHES:
                assert found(kept, query) == found(fresh, query)
            for query in LISTINGS:
                assert listed(kept, query) == listed(fresh, query)

    def restart(self, reader: int) -> None:
        self.readers[reader].stop()
        self.readers[reader] = process(self.url)

    def prune(self) -> None:
        """All of the feed, whoever has not read it: as if a clock had jumped."""
        self.database.transact(lambda connection: feed.prune(connection, keep_seconds=-1))

    # How

    def _perhaps(self, work: Callable[[sa.Connection], object]) -> None:
        with contextlib.suppress(PlacementError):
            self.database.transact(work)

    def _change(self, uuid: str, work: Callable[[sa.Connection, providers.Provider], object]) -> None:
        self._perhaps(lambda connection: work(connection, providers.lock(connection, uuid)))

    def _values(self, query: sa.Select[str]) -> list[str]:
        with self.database.read() as connection:
            return list(connection.execute(query).scalars())


def _switch(
    ensure: Callable[[sa.Connection, str], bool],
    delete: Callable[[sa.Connection, str], None],
    name: str,
    connection: sa.Connection,
) -> None:
    if not ensure(connection, name):
        delete(connection, name)


def _empty(connection: sa.Connection) -> None:
    """All but the standard names."""
    connection.execute(sa.update(tables.providers).values(parent_id=None))
    for table in (tables.allocations, tables.consumers, tables.providers, tables.changes):
        connection.execute(sa.delete(table))
    for table in (tables.resource_classes, tables.traits):
        connection.execute(sa.delete(table).where(table.c.name.startswith("CUSTOM_")))
    names.ensure_standard(connection)


def _unused(pool: list[str], used: list[str], number: int) -> str:
    free = [one for one in pool if one not in used]
    return free[number % len(free)] if free else ""


def found(seen: Picture, query: str) -> Any:
    """What a search answers, in an order that does not depend on slots."""
    request = parse.candidates_request(_pairs(query), LATEST)
    try:
        result = find_candidates(seen.fleet, request, SETTINGS.search)
    except UnknownNameError as error:
        return {"allocation_requests": [], "unknown": error.name}
    body = json.loads(seen.encoder.encode(result, AnswerShape.at(LATEST[1])))
    for offer in body["allocation_requests"]:
        offer["mappings"] = {suffix: sorted(held) for suffix, held in offer["mappings"].items()}
    body["allocation_requests"].sort(key=lambda offer: json.dumps(offer, sort_keys=True))
    for summary in body["provider_summaries"].values():
        summary["traits"].sort()
    return body


def listed(seen: Picture, query: str) -> list[str]:
    slots = find_providers(seen.fleet, parse.provider_filters(_pairs(query), LATEST))
    return sorted(seen.fleet.uuids[slot] for slot in slots)


def _pairs(query: str) -> list[tuple[str, str]]:
    return [(name, value) for name, _, value in (pair.partition("=") for pair in query.split("&") if pair)]
