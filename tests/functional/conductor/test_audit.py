"""Audits: each kind of drift is planted, named and mended, and a second look finds nothing."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any, cast

import pytest
import sqlalchemy as sa
from sqlalchemy.engine import Connection

from moorage.compute.audits.audit import CheckName
from moorage.conductor.auditing.checks.quotas import QuotasCheck
from moorage.conductor.auditing.contract import Portion
from moorage.core import uuids
from moorage.core.clock import utcnow
from moorage.db.tables.aggregates import aggregate_hosts, aggregates
from moorage.db.tables.audits import audit_findings
from moorage.db.tables.compute import (
    actions,
    addresses,
    nodes,
    operations,
    quota_usage,
    servers,
    services,
    traces,
)
from moorage.db.tables.moves import migrations
from moorage.db.tables.placement import inventories, providers, resource_classes
from moorage.drivers.contract import ServerSpec
from moorage.drivers.image_caching import CachedImage
from moorage.drivers.image_store import ImageStore
from moorage.drivers.libvirt.storage.image_cache import DIRECTORY, ImageCache
from moorage.placement.client.contract import ConsumerClaim, ReportedProvider
from tests.functional.conductor import auditing
from tests.functional.conductor.conftest import Yard
from tests.support.processes import wait_until

NOBODY = "99999999-9999-4999-8999-999999999999"


class Auditing:
    """A cloud that drift is planted in."""

    def __init__(self, yard: Yard) -> None:
        self.yard = yard

    def audit(self, *only: CheckName, repair: str = "nothing") -> tuple[list[Any], dict[str, str]]:
        return auditing.audit(self.yard, *only, repair=repair)

    def check(self, name: CheckName, part: str, *, safe: bool = True) -> None:
        auditing.check(self.yard, name, part, safe=safe)

    def write(self, statement: sa.Executable) -> None:
        def do(connection: Connection) -> None:
            connection.execute(statement)

        self.yard.placement.database.transact(do)

    def server(self) -> str:
        (uuid,) = self.yard.boot()
        self.yard.await_status([uuid], "ACTIVE")
        self.yard.await_rest()
        return uuid

    def act(self, uuid: str, action: dict[str, Any], status: str) -> None:
        reply = self.yard.api.simulate_post(f"/v2.1/servers/{uuid}/action", json=action)
        assert reply.status_code == 202, reply.text
        self.yard.await_status([uuid], status)
        self.yard.await_rest()

    def deleted_server(self) -> str:
        uuid = self.server()
        self.yard.delete(uuid)
        self.yard.await_gone([uuid])
        self.yard.await_rest()
        return uuid

    def row(self, uuid: str) -> Any:
        with self.yard.placement.database.read() as connection:
            return connection.execute(sa.select(servers).where(servers.c.uuid == uuid)).one()

    def node(self, position: int = 0) -> Any:
        with self.yard.placement.database.read() as connection:
            return connection.execute(sa.select(nodes).order_by(nodes.c.host)).all()[position]

    def claim(self, consumer: str, node_uuid: str, kind: str = "INSTANCE") -> None:
        held = {node_uuid: {"VCPU": 1}}
        claim = ConsumerClaim(consumer, held, "p", "u", consumer_type=kind)
        assert self.yard.client.claim([claim]) == [None]


@pytest.fixture(scope="module")
def cloud(module_database_url: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Auditing]:
    directory: Path = tmp_path_factory.mktemp("audit")
    options: dict[str, Any] = {"conductor.audit_grace": 0, "conductor.audit_interval": 0, "fake.vcpus": 16}
    yard = Yard(module_database_url, directory / "agents", 2, **options)
    try:
        yield Auditing(yard)
    finally:
        yard.stop()


def test_an_untouched_cloud_has_no_differences(cloud: Auditing) -> None:
    cloud.server()
    assert cloud.audit() == ([], {})


def test_a_claim_made_late_for_a_deleted_server(cloud: Auditing) -> None:
    """By a conductor that died before its checkpoint: nobody else knows of it."""
    uuid = cloud.deleted_server()
    cloud.claim(uuid, cloud.node().uuid)
    cloud.check(CheckName.ALLOCATIONS, f"server {uuid} is deleted, and holds 1 VCPU")
    assert uuid not in cloud.yard.holders()


def test_a_server_that_holds_nothing(cloud: Auditing) -> None:
    uuid = cloud.server()
    held, _ = cloud.yard.client.allocations(uuid)
    cloud.yard.client.release([uuid])
    cloud.check(CheckName.ALLOCATIONS, f"server {uuid} holds nothing of node", safe=False)
    assert cloud.yard.client.allocations(uuid)[0] == held


def test_a_server_that_holds_something_elsewhere(cloud: Auditing) -> None:
    uuid = cloud.server()
    held, generation = cloud.yard.client.allocations(uuid)
    other = next(node.uuid for node in (cloud.node(0), cloud.node(1)) if node.uuid not in held)
    more = {**held, other: {"VCPU": 1}}
    row = cloud.row(uuid)
    claim = ConsumerClaim(uuid, more, row.project_id, row.user_id, consumer_generation=generation)
    assert cloud.yard.client.claim([claim]) == [None]
    cloud.check(CheckName.ALLOCATIONS, f"holds also 1 VCPU of {other}", safe=False)
    assert cloud.yard.client.allocations(uuid)[0] == held


def test_a_migration_that_may_be_reverted_and_holds_nothing(cloud: Auditing) -> None:
    uuid = cloud.server()
    before, _ = cloud.yard.client.allocations(uuid)
    cloud.act(uuid, {"resize": {"flavorRef": "2"}}, "VERIFY_RESIZE")
    moves = sa.select(migrations.c.uuid).where(migrations.c.server_uuid == uuid, migrations.c.active)
    with cloud.yard.placement.database.read() as connection:
        migration = connection.execute(moves).scalar_one()
    assert cloud.yard.client.allocations(migration)[0] == before
    cloud.yard.client.release([migration])
    cloud.check(
        CheckName.ALLOCATIONS, f"migration {migration} of server {uuid} holds nothing of node", safe=False
    )
    assert cloud.yard.client.allocations(migration)[0] == before
    cloud.act(uuid, {"revertResize": None}, "ACTIVE")
    assert cloud.yard.client.allocations(uuid)[0] == before
    assert cloud.audit() == ([], {})


def test_a_migration_that_is_over_and_holds_something(cloud: Auditing) -> None:
    uuid = cloud.server()
    row, node = cloud.row(uuid), cloud.node()
    _migration(cloud, row, node, "55555555-5555-4555-8555-555555555555", "completed", active=False)
    cloud.claim("55555555-5555-4555-8555-555555555555", node.uuid, "MIGRATION")
    cloud.check(CheckName.ALLOCATIONS, "migration 55555555-5555-4555-8555-555555555555 of server")


def test_a_consumer_that_nobody_knows(cloud: Auditing) -> None:
    cloud.claim(NOBODY, cloud.node().uuid)
    cloud.check(CheckName.ALLOCATIONS, f"nobody knows consumer {NOBODY}", safe=False)


def test_a_counter_of_a_provider(cloud: Auditing) -> None:
    of_node = sa.select(providers.c.id).where(providers.c.uuid == cloud.node().uuid).scalar_subquery()
    memory = sa.select(resource_classes.c.id).where(resource_classes.c.name == "MEMORY_MB").scalar_subquery()
    wrong = sa.update(inventories).where(
        inventories.c.provider_id == of_node, inventories.c.class_id == memory
    )
    cloud.write(wrong.values(used=inventories.c.used + 7))
    cloud.check(CheckName.COUNTERS, "MEMORY_MB as used: its allocations are")


def test_a_counter_of_a_project(cloud: Auditing) -> None:
    cloud.server()
    cloud.write(sa.update(quota_usage).values(cores=quota_usage.c.cores + 3))
    cloud.check(CheckName.QUOTAS, "cores instead of")


def test_an_address_of_a_deleted_server(cloud: Auditing) -> None:
    uuid = cloud.deleted_server()
    cloud.write(_address(uuid))
    cloud.check(CheckName.ADDRESSES, f"server {uuid}'s, which is deleted")


def test_an_address_of_a_server_that_nobody_knows(cloud: Auditing) -> None:
    cloud.write(_address(NOBODY))
    cloud.check(CheckName.ADDRESSES, "which nobody knows", safe=False)


def test_a_node_that_its_host_has_and_nobody_knows(cloud: Auditing) -> None:
    """Its provider is an orphan's then, which must not be taken away."""
    free = _free_node(cloud)
    cloud.write(sa.delete(nodes).where(nodes.c.uuid == free.uuid))
    found, _ = cloud.audit()
    assert (found[0]["check"], found[0]["sentence"], found[0]["safe"]) == (
        "nodes",
        f"host {free.host} has node {free.uuid}, which nobody knows",
        True,
    )
    assert cloud.audit(repair="all") == ([], {})
    assert free.uuid in {node.uuid for node in (cloud.node(0), cloud.node(1))}
    assert cloud.yard.client.aggregates([free.uuid]), "its provider is there"
    assert cloud.audit() == ([], {})


def test_a_node_that_its_host_does_not_have(cloud: Auditing) -> None:
    host, uuid = cloud.node().host, "33333333-3333-4333-8333-333333333333"
    _provider(cloud, uuid)
    cloud.write(sa.insert(nodes).values(uuid=uuid, name="x", host=host, hypervisor_type="fake", facts={}))
    found, _ = cloud.audit(CheckName.NODES)
    assert [one["sentence"] for one in found] == [
        f"host {host} does not have node {uuid}, which counts among its nodes"
    ]
    assert cloud.audit(CheckName.NODES, repair="safe") == ([], {})
    assert cloud.audit(CheckName.NODES) == ([], {})
    cloud.yard.client.delete_provider(uuid)
    assert cloud.audit() == ([], {})


def test_a_node_without_its_provider(cloud: Auditing, tmp_path: Path) -> None:
    """Of a host without servers, else Placement would not let go of it."""
    free = _free_node(cloud)
    cloud.yard.client.delete_provider(free.uuid)
    cloud.check(CheckName.PROVIDERS, f"node {free.uuid} of host {free.host} has no provider")


def test_a_provider_of_a_node_that_is_gone(cloud: Auditing) -> None:
    """One that servers of ours were on; another may be another cloud's."""
    uuid, gone = cloud.deleted_server(), "77777777-7777-4777-8777-777777777777"
    cloud.write(sa.update(servers).where(servers.c.uuid == uuid).values(node_uuid=gone))
    _provider(cloud, gone)
    cloud.check(CheckName.ORPHANED_PROVIDERS, f"provider {gone} is no host's node")


def test_a_provider_that_may_be_another_clouds_is_told_and_left_alone(cloud: Auditing) -> None:
    other = "88888888-8888-4888-8888-888888888888"
    _provider(cloud, other)
    found, _ = cloud.audit(repair="all")
    assert [(one["check"], one["remedy"]) for one in found] == [("orphaned-providers", "")]
    cloud.yard.client.delete_provider(other)
    assert cloud.audit() == ([], {})


def test_a_server_that_a_host_still_has(cloud: Auditing) -> None:
    """Its row was deleted by somebody's hand, so that all that it has is left: nobody told its host."""
    uuid = cloud.server()
    host = cloud.row(uuid).host
    _await_heartbeats(cloud, host)
    cloud.write(sa.update(servers).where(servers.c.uuid == uuid).values(deleted_at=utcnow()))
    found, _ = cloud.audit()
    assert [one["check"] for one in found] == ["allocations", "quotas", "addresses", "host-servers"]
    assert found[-1]["sentence"] == f"host {host} has server {uuid}, which is deleted"
    assert cloud.audit(repair="safe") == ([], {})
    assert uuid not in cloud.yard.cloud.drivers[host].servers()
    assert cloud.audit() == ([], {})


def test_a_server_that_nobody_knows_is_told_and_left_alone(cloud: Auditing) -> None:
    host = cloud.node().host
    _run(cloud, NOBODY, host)
    found, _ = cloud.audit(repair="all")
    assert [(one["check"], one["remedy"]) for one in found] == [("host-servers", "")]
    cloud.yard.cloud.drivers[host].destroy(NOBODY, cloud.node().uuid)
    assert cloud.audit() == ([], {})


def test_a_server_that_its_host_has_not(cloud: Auditing) -> None:
    uuid = cloud.server()
    row = cloud.row(uuid)
    cloud.yard.cloud.drivers[row.host].destroy(uuid, row.node_uuid)
    found, _ = cloud.audit(CheckName.HOST_SERVERS)
    assert [one["sentence"] for one in found] == [
        f"host {row.host} does not have server {uuid}, which is active there"
    ]
    assert [(one["remedy"], one["safe"]) for one in found] == [("put the server into error", False)]
    assert cloud.audit(CheckName.HOST_SERVERS, repair="safe")[0] != [], "an operator has to say so"
    assert cloud.audit(CheckName.HOST_SERVERS, repair="all") == ([], {})
    assert cloud.row(uuid).vm_state == "error"
    assert cloud.audit() == ([], {})
    cloud.yard.delete(uuid)
    cloud.yard.await_gone([uuid])
    cloud.yard.await_rest()
    assert cloud.audit() == ([], {})


class Caching:
    """A driver whose host has an image cache: that of libvirt's driver, which needs no libvirt."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory / DIRECTORY
        self.directory.mkdir()
        self._cache = ImageCache(directory, cast(ImageStore, None), "fake-1")

    def cached_images(self) -> Sequence[CachedImage]:
        return self._cache.listed(3600)

    def expire_images(self) -> None:
        self._cache.remove_unused(3600)

    def put(self, name: str, hours: float) -> Path:
        """Nobody has wanted it for so long."""
        path = self.directory / name
        path.write_bytes(b"\0" * 4096)
        wanted = time.time() - hours * 3600
        os.utime(path, (wanted, wanted))
        return path


def test_an_image_that_a_host_should_not_keep_any_more(
    cloud: Auditing, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As if the chores of its driver had never come to it."""
    cache, driver = Caching(tmp_path), cloud.yard.cloud.drivers["fake-1"]
    for part in ("cached_images", "expire_images"):
        monkeypatch.setattr(driver, part, getattr(cache, part), raising=False)
    used, fresh = cache.put(f"{NOBODY}-used", 99), cache.put(f"{NOBODY}-fresh", 2)
    foreign = cache.put("0a1b", 99)
    os.link(used, tmp_path / "disk-of-a-server")
    assert cloud.audit() == ([], {}), "neither what a server has or Nova had, nor what is due only just now"
    left = cache.put(f"{NOBODY}-left", 99)
    cloud.check(
        CheckName.IMAGE_CACHES, f"host fake-1 keeps {left.name} (0 MiB) in its image cache, which nobody"
    )
    assert [path.exists() for path in (used, foreign, fresh, left)] == [True, True, False, False]


def test_a_download_that_was_cut_off(
    cloud: Auditing, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cache, driver = Caching(tmp_path), cloud.yard.cloud.drivers["fake-1"]
    for part in ("cached_images", "expire_images"):
        monkeypatch.setattr(driver, part, getattr(cache, part), raising=False)
    at_work = cache.put(f"{NOBODY}-0.fake-1.0011.part", 20)
    cache.put(f"{NOBODY}-1.fake-1.2233.part", 30)
    cloud.check(CheckName.IMAGE_CACHES, f"keeps {NOBODY}-1.fake-1.2233.part")
    assert list(cache.directory.iterdir()) == [at_work]


def test_an_aggregate_that_a_provider_is_not_in(cloud: Auditing) -> None:
    """Written past the API, so that nobody has told Placement."""
    aggregate = "66666666-6666-4666-8666-666666666666"
    cloud.write(sa.insert(aggregates).values(uuid=aggregate, name="planted"))
    chosen = sa.select(aggregates.c.id, sa.literal(cloud.node().host)).where(aggregates.c.uuid == aggregate)
    cloud.write(sa.insert(aggregate_hosts).from_select(["aggregate_id", "host"], chosen))
    cloud.check(CheckName.AGGREGATES, f"is not in {aggregate}")


def test_a_move_of_a_deleted_server(cloud: Auditing) -> None:
    row = cloud.row(cloud.deleted_server())
    uuid = "44444444-4444-4444-8444-444444444444"
    _migration(cloud, row, cloud.node(), uuid, "running", active=True)
    cloud.check(CheckName.MOVES, f"migration {uuid} is running")


def test_an_operation_that_nobody_will_look_at(cloud: Auditing) -> None:
    row = cloud.row(cloud.deleted_server())
    lost = {"server_id": row.id, "kind": "give_back", "step": "begin", "attempt": 99, "data": {}}
    cloud.write(sa.insert(operations).values(**lost, due_at=None))
    cloud.check(CheckName.LEDGER, "is not at its end, and not due at any time")


@pytest.mark.parametrize("table", [traces, actions, operations, migrations], ids=lambda table: table.name)
def test_rows_of_a_server_that_there_is_not(cloud: Auditing, table: sa.Table) -> None:
    """As after a restore, whose order nobody watched over."""
    uuid = cloud.deleted_server()
    row = cloud.row(uuid)
    if table is migrations:
        _migration(cloud, row, cloud.node(), uuids.generate(), "completed", active=False)
    rows = sa.select(sa.func.count()).select_from(table).where(table.c.server_id == row.id)
    with cloud.yard.placement.database.read() as connection:
        count = connection.execute(rows).scalar_one()
    assert count > 0
    for other in (traces, actions, operations, migrations):
        if other is not table:
            cloud.write(sa.delete(other).where(other.c.server_id == row.id))
    with _unwatched(cloud, table):
        cloud.write(sa.delete(servers).where(servers.c.id == row.id))
        cloud.check(CheckName.LEDGER, f"{count} rows of {table.name} are of servers that there are not")
    with cloud.yard.placement.database.read() as connection:
        assert connection.execute(rows).scalar_one() == 0


@contextmanager
def _unwatched(cloud: Auditing, table: sa.Table) -> Iterator[None]:
    """Rows of this table may refer to servers that there are not."""
    database = cloud.yard.placement.database
    if not database.is_postgresql:

        def loosen(connection: Any, *_: object) -> None:
            connection.execute("PRAGMA foreign_keys = OFF")

        sa.event.listen(database.engine, "connect", loosen)
        database.engine.dispose()
        yield
        sa.event.remove(database.engine, "connect", loosen)
        database.engine.dispose()
        return
    found = sa.text(
        "SELECT conname, pg_get_constraintdef(oid) FROM pg_constraint "
        "WHERE contype = 'f' AND conrelid = CAST(:name AS regclass) AND confrelid = 'servers'::regclass"
    )
    with database.read() as connection:
        ((name, definition),) = connection.execute(found, {"name": table.name}).all()
    cloud.write(sa.text(f"ALTER TABLE {table.name} DROP CONSTRAINT {name}"))
    yield
    cloud.write(sa.text(f"ALTER TABLE {table.name} ADD CONSTRAINT {name} {definition}"))


def test_a_check_that_is_broken_costs_no_other_one(cloud: Auditing, monkeypatch: pytest.MonkeyPatch) -> None:
    """By a mistake of ours, which nobody expected: it is told, and the audit ends."""

    def broken(_self: QuotasCheck) -> Iterator[Portion]:
        raise TypeError("a mistake")
        yield

    uuid = cloud.deleted_server()
    cloud.write(_address(uuid))
    with monkeypatch.context() as patched:
        patched.setattr(QuotasCheck, "look", broken)
        found, failures = cloud.audit()
    assert ([one["check"] for one in found], failures) == (["addresses"], {"quotas": "TypeError: a mistake"})
    assert cloud.audit(repair="safe") == ([], {})


def test_what_is_seen_only_once_is_not_told(cloud: Auditing) -> None:
    """It was gone by the second look, which comes after the grace period."""
    uuid = cloud.deleted_server()
    cloud.claim(uuid, cloud.node().uuid)
    young = sa.select(audit_findings.c.id).where(audit_findings.c.confirmed_at.is_(None))
    with cloud.yard.placement.database.read() as connection:
        before = set(connection.execute(young).scalars())
    cloud.yard.client.release([uuid])
    assert cloud.audit() == ([], {})
    with cloud.yard.placement.database.read() as connection:
        assert set(connection.execute(young).scalars()) == before


def test_what_is_merely_under_way_is_never_told(cloud: Auditing) -> None:
    """Without a grace period, so that two looks come right one after the other."""
    stopping, trouble = threading.Event(), list[BaseException]()

    def load() -> None:
        try:
            while not stopping.is_set():
                booted = cloud.yard.boot(4)
                cloud.yard.await_status(booted, "ACTIVE")
                for uuid in booted:
                    cloud.yard.delete(uuid)
                cloud.yard.await_gone(booted)
        except BaseException as error:
            trouble.append(error)

    with cloud.yard.placement.database.read() as connection:
        newest = connection.execute(sa.select(sa.func.max(audit_findings.c.id))).scalar_one() or 0
    user = threading.Thread(target=load)
    user.start()
    try:
        for _ in range(int(os.environ.get("AUDIT_ROUNDS", "5"))):
            assert cloud.audit(repair="all") == ([], {})
    finally:
        stopping.set()
        user.join()
    assert trouble == []
    told = sa.select(audit_findings.c.sentence).where(
        audit_findings.c.id > newest, audit_findings.c.confirmed_at.is_not(None)
    )
    with cloud.yard.placement.database.read() as connection:
        assert connection.execute(told).scalars().all() == []


def test_bad_requests_are_refused(cloud: Auditing) -> None:
    post = cloud.yard.api.simulate_post
    assert post("/v2.1/moorage-audits", json={"audit": {"only": ["nothing"]}}).status_code == 400
    assert post("/v2.1/moorage-audits", json={"audit": {"repair": "most"}}).status_code == 400
    assert cloud.yard.api.simulate_get(f"/v2.1/moorage-audits/{NOBODY}").status_code == 404


def _address(server_uuid: str) -> sa.Insert:
    values = {"address": "203.0.113.9", "pool": "x", "mac": "fa:16:3e:00:00:01", "port_uuid": NOBODY}
    return sa.insert(addresses).values(**values, server_uuid=server_uuid)


def _migration(cloud: Auditing, row: Any, node: Any, uuid: str, status: str, *, active: bool) -> None:
    values = {
        "uuid": uuid,
        "server_id": row.id,
        "server_uuid": row.uuid,
        "user_id": row.user_id,
        "project_id": row.project_id,
        "kind": "migration",
        "status": status,
        "active": active,
        "source_host": node.host,
        "source_node": node.name,
        "source_node_uuid": node.uuid,
        "old_flavor": row.flavor,
        "new_flavor": row.flavor,
        "old_state": "active",
        "created_at": utcnow(),
    }
    cloud.write(sa.insert(migrations).values(**values))


def _provider(cloud: Auditing, uuid: str) -> None:
    cloud.yard.client.report([ReportedProvider(uuid, f"planted {uuid}", {}, ["COMPUTE_NODE"])])


def _run(cloud: Auditing, uuid: str, host: str) -> None:
    node = next(node for node in (cloud.node(0), cloud.node(1)) if node.host == host)
    flavor = {"vcpus": 1, "ram": 64, "disk": 1}
    cloud.yard.cloud.drivers[host].spawn(ServerSpec(uuid, "s", "p", "u", node.uuid, flavor))


def _await_heartbeats(cloud: Auditing, host: str) -> None:
    """Until the host has told of a server that came a moment ago: it does so only once."""
    since = utcnow() + timedelta(seconds=1)
    seen = sa.select(services.c.seen_at).where(services.c.host == host, services.c.binary == "nova-compute")

    def heard() -> bool:
        with cloud.yard.placement.database.read() as connection:
            return bool(connection.execute(seen).scalar_one() > since)

    wait_until(heard, "heartbeats", 30)


def _free_node(cloud: Auditing) -> Any:
    """A node that nothing is held of, after all servers are gone."""
    for shown in cloud.yard.get("/v2.1/servers")["servers"]:
        cloud.yard.delete(shown["id"])
    wait_until(lambda: not cloud.yard.get("/v2.1/servers")["servers"], "the servers to go", 30)
    cloud.yard.await_rest()
    return cloud.node()
