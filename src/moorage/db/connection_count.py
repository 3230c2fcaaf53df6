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
_MOST: WeakKeyDictionary[Engine, int] = WeakKeyDictionary()
_IN_USE: WeakKeyDictionary[Engine, int] = WeakKeyDictionary()


def watch(engine: Engine, most: int) -> None:
    """An engine's are counted anew at each change of it, rather than added up: a connection that breaks is
    not told of twice."""
    _MOST[engine] = most
    MOST.set(sum(_MOST.values()))

    def count(about_to_return: int) -> None:
        pool = engine.pool
        if isinstance(pool, QueuePool):
            _IN_USE[engine] = pool.checkedout() - about_to_return
            IN_USE.set(sum(list(_IN_USE.values())))

    sa.event.listen(engine, "checkout", lambda *_: count(0))
    sa.event.listen(engine, "checkin", lambda *_: count(1))
    sa.event.listen(engine, "engine_disposed", lambda disposed: _IN_USE.pop(disposed, None))
