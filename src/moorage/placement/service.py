"""The Placement service of one process: the database, and the picture of the fleet made from it."""

from __future__ import annotations

import gc
import logging
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import NamedTuple

from oslo_config import cfg
from prometheus_client import Gauge, Histogram
from sqlalchemy.engine import Connection

from moorage.db import engine
from moorage.db.database import Database
from moorage.placement import claims, feed
from moorage.placement.feed import Changes, PostgresqlReader, Reader, SqliteReader
from moorage.placement.fleet.fleet import Fleet
from moorage.placement.search.encode import CandidateEncoder
from moorage.placement.search.result import SearchOptions, Strategy, TreeOrder
from moorage.placement.store import names, snapshot
from moorage.placement.store.own_trees import TreeOwners

LOG = logging.getLogger(__name__)

PROVIDERS = Gauge(
    "moorage_placement_providers", "Providers in the picture of the fleet.", multiprocess_mode="livemax"
)
LOAD_SECONDS = Histogram("moorage_placement_fleet_load_seconds", "Time to read the whole fleet.")
_PRUNE_EVERY = 60.0
_IDLE_CATCH_UP = 5.0


@dataclass(frozen=True)
class PlacementSettings:
    search: SearchOptions
    incomplete_project_id: str
    incomplete_user_id: str
    feed_retention: int
    tree_owners: TreeOwners = TreeOwners.OFF

    @classmethod
    def from_conf(cls, conf: cfg.ConfigOpts) -> PlacementSettings:
        options = conf.placement
        bound = options.max_allocation_candidates
        order = (
            TreeOrder.RANDOM
            if options.randomize_allocation_candidates
            else TreeOrder(options.candidate_order)
        )
        return cls(
            search=SearchOptions(
                order=order,
                max_candidates=None if bound < 0 else bound,
                strategy=Strategy(options.allocation_candidates_generation_strategy),
                max_steps=options.max_search_steps,
            ),
            incomplete_project_id=options.incomplete_consumer_project_id,
            incomplete_user_id=options.incomplete_consumer_user_id,
            feed_retention=options.feed_retention,
            tree_owners=TreeOwners(options.tree_owners),
        )


class Picture(NamedTuple):
    """What a process knows of the fleet, and the summaries that it has encoded of it."""

    fleet: Fleet
    encoder: CandidateEncoder


class PlacementService:
    def __init__(self, database: Database, settings: PlacementSettings) -> None:
        self.database = database
        self.settings = settings
        self._picture: Picture | None = None
        self._reader: Reader = PostgresqlReader() if database.is_postgresql else SqliteReader()
        self._probe = feed.probe(database.engine)
        self._caught_up_at = 0.0
        self._unapplied = Changes()
        self.claims = claims.desk(database)
        self._lock = threading.Lock()
        self._stopping = threading.Event()

    @classmethod
    def from_conf(cls, conf: cfg.ConfigOpts) -> PlacementService:
        return cls(Database(engine.for_service(conf)), PlacementSettings.from_conf(conf))

    def start(self) -> None:
        """Make the standard names known, and keep the picture warm and the feed short from now on."""
        self.database.transact(names.ensure_standard)
        threading.Thread(target=self._housekeeping, name="placement-housekeeping", daemon=True).start()

    def stop(self) -> None:
        self._stopping.set()
        self.database.engine.dispose()

    def warm_up(self) -> None:
        """Read the fleet now, so that the first who asks need not wait for it."""
        with self._lock:
            self._current()

    @contextmanager
    def picture(self) -> Iterator[Picture]:
        """The fleet as it is now: every write that was committed before this call is in it."""
        with self._lock:
            yield self._current()

    def _current(self) -> Picture:
        asleep = time.monotonic() - self._caught_up_at
        overslept = asleep > self.settings.feed_retention / 2
        if self._picture is None or overslept or not self._caught_up(self._picture.fleet):
            fleet = self._load()
            self._picture = Picture(fleet, CandidateEncoder(fleet))
            self._unapplied = Changes()
        self._caught_up_at = time.monotonic()
        return self._picture

    def _load(self) -> Fleet:
        fleet = Fleet()
        with LOAD_SECONDS.time(), _no_garbage_collection(), self.database.snapshot() as connection:
            self._reader.start(connection)
            snapshot.read_names(connection, fleet.names)
            fleet.load(snapshot.read_providers(connection))
        PROVIDERS.set(len(fleet))
        LOG.info("read the fleet: %d providers", len(fleet))
        return fleet

    def _caught_up(self, fleet: Fleet) -> bool:
        """Bring the picture up to now; False if the feed does not reach back to where it was left.

        Mostly nothing changed, or a few usages did, which a quick read tells.

        The reader tells each change once, so a change is kept until it is in the picture for certain. What
        is read of the changed providers, and the feed up to that very moment, come from one snapshot: a
        change that came in between could name what the picture does not have yet.
        """
        if not self._unapplied:
            usages, more = self._reader.quick_read(self._probe)
            self._unapplied.usages.update(usage.provider_id for usage in usages)
            if not more and all(fleet.slot_of_id(usage.provider_id) is not None for usage in usages):
                for usage in usages:
                    fleet.update_usage(*usage)
                self._unapplied = Changes()
                return True
        with self.database.snapshot() as connection:
            self._unapplied |= self._reader.read(connection)
            if self._unapplied.lost:
                LOG.warning("the feed was pruned before it was read here; reading the whole fleet")
                return False
            self._apply(connection, fleet, self._unapplied)
        self._unapplied = Changes()
        return True

    def _apply(self, connection: Connection, fleet: Fleet, found: Changes) -> None:
        new = {provider_id for provider_id in found.usages if fleet.slot_of_id(provider_id) is None}
        whole = found.providers | new
        if found.names:
            snapshot.read_names(connection, fleet.names)
        if whole:
            records = list(snapshot.read_providers(connection, whole))
            fleet.apply(records, gone=whole - {record.id for record in records})
            PROVIDERS.set(len(fleet))
        if found.usages - whole:
            for usage in snapshot.read_usages(connection, found.usages - whole):
                fleet.update_usage(*usage)

    def _housekeeping(self) -> None:
        next_prune = time.monotonic() + _PRUNE_EVERY
        while not self._stopping.wait(_IDLE_CATCH_UP):
            try:
                with self.picture():
                    pass
                if time.monotonic() > next_prune:
                    next_prune = time.monotonic() + _PRUNE_EVERY
                    with self.database.write() as connection:
                        feed.prune(connection, self.settings.feed_retention)
            except Exception:
                LOG.exception("placement housekeeping failed, will try again")


@contextmanager
def _no_garbage_collection() -> Iterator[None]:
    """Millions of objects that stay are made: looking through them again and again finds nothing."""
    gc.disable()
    try:
        yield
    finally:
        gc.enable()
        gc.freeze()
