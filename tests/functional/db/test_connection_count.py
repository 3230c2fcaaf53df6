"""Connections in use, of all engines of a process together."""

from __future__ import annotations

from prometheus_client import REGISTRY

from moorage.db import engine


def in_use() -> float:
    found = REGISTRY.get_sample_value("moorage_db_connections_in_use")
    assert found is not None
    return found


def test_those_of_all_engines_count_and_a_broken_one_no_longer(database_url: str) -> None:
    one, other = engine.connect(database_url), engine.connect(database_url)
    before = in_use()
    with one.connect(), one.connect() as broken:
        with other.connect():
            assert in_use() == before + 3
            broken.invalidate()
            assert in_use() == before + 2
        assert in_use() == before + 1
    assert in_use() == before
    for each in (one, other):
        each.dispose()
