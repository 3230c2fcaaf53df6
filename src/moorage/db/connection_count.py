"""How many connections of the pool are in use: one that is used up makes every request wait."""

from __future__ import annotations

from weakref import WeakKeyDictionary

import sqlalchemy as sa
from prometheus_client import Gauge
from sqlalchemy.engine import Engine
from sqlalchemy.pool import QueuePool

IN_USE = Gauge(
    "moorage_db_connections_in_use",
    "Connections to the database that are in use.",
    multiprocess_mode="livesum",
)
MOST = Gauge(
    "moorage_db_connections_most",
    "Connections to the database that may be in use at once.",
    multiprocess_mode="livesum",
)
_ENGINES: WeakKeyDictionary[Engine, int] = WeakKeyDictionary()


def watch(engine: Engine, most: int) -> None:
    """Counted anew at each change, rather than added up: a connection that breaks is not told of twice."""
    _ENGINES[engine] = most
    MOST.set(sum(_ENGINES.values()))
    for moment in ("checkout", "checkin"):
        sa.event.listen(engine, moment, lambda *_: IN_USE.set(_in_use()))


def _in_use() -> int:
    return sum(engine.pool.checkedout() for engine in list(_ENGINES) if isinstance(engine.pool, QueuePool))
