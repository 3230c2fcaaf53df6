"""Whatever is sent, the service answers without a 5xx, and what it refuses has changed nothing."""

from __future__ import annotations

import hashlib
import os
import sqlite3
import uuid
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, given, seed, settings

from moorage.placement.api.openapi import describe
from moorage.placement.api.routes import API
from tests.conformance.junk import CONSUMER, PROVIDER, Junk, junk
from tests.conformance.seeds import SEED
from tests.support.examples import examples
from tests.support.stage import SqliteCopies, Stage
from tests.support.wire import Wire

JUNK = int(os.environ.get("MOORAGE_JUNK") or examples(3000))
CASES_AN_OPERATION = examples(40)

GOOD_VALUES = {
    "resources": "VCPU:1",
    "resources1": "VCPU:1",
    "required": "HW_CPU_X86_AVX2",
    "member_of": PROVIDER,
    "in_tree": PROVIDER,
    "limit": "3",
    "group_policy": "none",
    "same_subtree": "1",
    "root_required": "HW_CPU_X86_AVX2",
    "name": "startswith:CUSTOM",
    "uuid": PROVIDER,
    "associated": "true",
    "project_id": "p",
    "user_id": "u",
    "consumer_type": "INSTANCE",
}
BAD_VALUES = ("", "x", "-1", "VCPU:x", "!", "in:", "\0", "é", "9" * 30)

OPENAPI = schemathesis.openapi.from_dict(describe(API))
OPERATIONS = [
    (path, method.upper()) for path, methods in describe(API)["paths"].items() for method in methods
]


class Watch:
    """Notices any change to the database that is being served."""

    def __init__(self, database: Path) -> None:
        self.connection = sqlite3.connect(database, isolation_level=None)
        self.seen = self._commits()
        self.content = self._content()

    def changed(self) -> bool:
        """Since the last time that somebody asked. A commit that changed no row is no change."""
        commits = self._commits()
        if commits == self.seen:
            return False
        before, self.content = self.content, self._content()
        self.seen = commits
        return before != self.content

    def _commits(self) -> int:
        commits: int = self.connection.execute("PRAGMA data_version").fetchone()[0]
        return commits

    def _content(self) -> str:
        """All rows; but an id that was drawn for a row and not used is no change, as on PostgreSQL."""
        digest = hashlib.sha256()
        for line in self.connection.iterdump():
            if not line.startswith('INSERT INTO "sqlite_sequence"'):
                digest.update(line.encode(errors="surrogatepass"))
        return digest.hexdigest()


@pytest.fixture(scope="module")
def port(moorage_on_sqlite: Stage) -> int:
    """A service with one provider and one consumer, so that not everything is a 404."""
    port = moorage_on_sqlite.fresh()
    with Wire(port) as wire:
        assert wire.post("/resource_providers", {"uuid": PROVIDER, "name": "there"}).status == 200
        body: dict[str, Any] = {"resource_provider_generation": 0, "inventories": {"VCPU": {"total": 8}}}
        assert wire.put(f"/resource_providers/{PROVIDER}/inventories", body).status == 200
        claim = {
            "allocations": {PROVIDER: {"resources": {"VCPU": 1}}},
            "project_id": "p",
            "user_id": "u",
            "consumer_generation": None,
            "consumer_type": "INSTANCE",
        }
        assert wire.put(f"/allocations/{CONSUMER}", claim).status == 204
        # One that nobody knows of, so that the provider can't be deleted.
        assert wire.put(f"/allocations/{uuid.uuid4()}", claim).status == 204
    return port


@pytest.fixture
def watch(port: int, moorage_on_sqlite: Stage) -> Iterator[Watch]:
    assert isinstance(moorage_on_sqlite.databases, SqliteCopies)
    assert moorage_on_sqlite.databases.latest is not None
    watch = Watch(moorage_on_sqlite.databases.latest)
    with closing(watch.connection):
        yield watch


def test_watch_notices(port: int, watch: Watch) -> None:
    with Wire(port) as wire:
        wire.get("/resource_providers")
        assert not watch.changed()
        wire.put("/traits/CUSTOM_NOTICED")
        assert watch.changed()


@pytest.mark.parametrize(("path", "method"), OPERATIONS, ids=lambda part: part)
def test_described_requests(path: str, method: str, port: int, watch: Watch) -> None:
    """What the API's own description allows, and what it forbids."""
    print(f"MOORAGE_SEED={SEED} repeats this run")

    @seed(SEED)
    @settings(
        max_examples=CASES_AN_OPERATION,
        database=None,
        deadline=None,
        phases=(Phase.generate, Phase.shrink),
        suppress_health_check=list(HealthCheck),
    )
    @given(case=OPENAPI[path][method].as_strategy())
    def send(case: Any) -> None:
        reply = case.call(base_url=f"http://127.0.0.1:{port}", headers={"X-Auth-Token": "admin"})
        assert reply.status_code < 500, reply.text
        changed = watch.changed()
        assert reply.status_code < 400 or not changed, f"{reply.status_code}, but something changed"

    send()


@pytest.mark.parametrize("version", ["1.4", "1.24", "1.39"])
@pytest.mark.parametrize("path", ["/allocation_candidates", "/resource_providers", "/usages", "/traits"])
def test_repeated_parameters(path: str, version: str, port: int) -> None:
    """A check that looks at one of two values is no check of the other."""
    base = {"resources": "VCPU:1"} if path != "/usages" else {"project_id": "p"}
    failed = []
    with Wire(port) as wire:
        for name, good in GOOD_VALUES.items():
            for bad in BAD_VALUES:
                for pair in ((bad, good), (good, bad)):
                    pairs = [*base.items(), *((name, value) for value in pair)]
                    reply = wire.get(f"{path}?{urlencode(pairs)}", version)
                    if reply.status >= 500:
                        failed.append(pairs)
    assert failed == []


@pytest.mark.timeout(600)
def test_junk(port: int, watch: Watch) -> None:
    """Valid requests with something broken in them, on every path and with every method."""
    print(f"MOORAGE_SEED={SEED} repeats this run")
    with Wire(port) as wire:

        @seed(SEED)
        @settings(
            max_examples=JUNK,
            database=None,
            deadline=None,
            phases=(Phase.generate, Phase.shrink),
            suppress_health_check=list(HealthCheck),
        )
        @given(junk())
        def send(one: Junk) -> None:
            reply = wire.request(one.method, one.target, one.body, headers=one.headers)
            assert reply.status < 500, reply.body
            changed = watch.changed()
            assert reply.status < 400 or not changed, f"{reply.status}, but something changed"

        send()
