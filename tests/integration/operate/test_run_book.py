"""docs/operate/run-book.md, section by section; and docs/operate/backup.md, in one go."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from dataclasses import replace
from typing import cast

import psycopg
import pytest
import requests

from moorage.db import era_fence
from tests.integration.operate.transcripts import PATIENCE, follow
from tests.integration.operate.watched import Watched, watched_cloud
from tests.support import debian, debian_postgres, manual, postgres, rabbitmq
from tests.support.debian_postgres import DebianPostgres
from tests.support.postgres import Postgres
from tests.support.processes import wait_until

PAGE = "operate/run-book.md"
BACKUP = "operate/backup.md"
RESTORED = "the database was restored (era "
END_CONNECTIONS = """
    SELECT pg_terminate_backend(pid) FROM pg_stat_activity
    WHERE datname = current_database() AND pid <> pg_backend_pid()
"""


@pytest.fixture(scope="module")
def cloud(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Watched]:
    with watched_cloud(tmp_path_factory.mktemp("run-book")) as made:
        yield made


def do(
    cloud: Watched,
    section: str,
    number: int = 0,
    instead: Mapping[str, str] | None = None,
    page: str = PAGE,
) -> None:
    """One block of a section."""
    blocks = [block for block in manual.blocks(page) if (block.section, block.kind) == (section, "console")]
    text = blocks[number].text
    for written, meant in (instead or {}).items():
        text = text.replace(written, meant)
    follow(cloud, replace(blocks[number], text=text))


def active(cloud: Watched, *uuids: str) -> None:
    wait_until(lambda: {cloud.status(uuid) for uuid in uuids} == {"ACTIVE"}, "the servers", PATIENCE)


def test_scale_out(cloud: Watched) -> None:
    cloud.further_conductor(2).start()
    cloud.further_agent("host-4").start()
    do(cloud, "Scale out")
    active(cloud, cloud.boot("new", availability_zone="nova:host-4"))


def test_lose_a_host(cloud: Watched) -> None:
    uuids = [cloud.boot(f"lost-{number}", availability_zone="nova:host-2") for number in range(3)]
    active(cloud, *uuids)
    cloud.agents["host-2"].kill()
    do(cloud, "Lose a host")
    active(cloud, *uuids)
    assert "host-2" not in {cloud.host_of(uuid) for uuid in uuids}
    cloud.agents["host-2"].start()
    do(cloud, "Lose a host", 1)
    wait_until(lambda: not cloud.kept_by("host-2"), "the host to remove its copies", PATIENCE)
    active(cloud, cloud.boot("back", availability_zone="nova:host-2"))


def test_replace_the_broker(cloud: Watched) -> None:
    """What was asked for while some had changed and some had not is done, too."""
    old = cloud.broker
    with rabbitmq.start() as new:
        cloud.use_broker(new)
        uuids = []
        for part in [*cloud.conductors, *cloud.agents.values(), *cloud.apis]:
            part.end()
            part.start()
            cloud.wait_for_apis()
            uuids.append(cloud.boot(f"amid-{part.name}"))
        old.end()
        active(cloud, *uuids)
        do(cloud, "Replace the broker")


class OldDatabase:
    """Debian's PostgreSQL, as a place that clouds leave."""

    def __init__(self, server: DebianPostgres) -> None:
        self._server = server

    def create_database(self, name: str) -> str:
        self._server.ask("CREATE ROLE moorage LOGIN PASSWORD 'secret'")
        self._server.ask(f"CREATE DATABASE {name} OWNER moorage")
        return f"postgresql+psycopg://moorage:secret@127.0.0.1:{self._server.port}/{name}"


@pytest.fixture(scope="module")
def old_cloud(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Watched]:
    with ExitStack() as stack:
        try:
            old = OldDatabase(stack.enter_context(debian_postgres.running()))
        except debian.Unavailable as error:
            pytest.skip(str(error))
        yield stack.enter_context(watched_cloud(tmp_path_factory.mktemp("old"), cast("Postgres", old)))


def url_of(cloud: Watched) -> str:
    return cloud.database_url.replace("+psycopg", "")


def test_back_up_and_restore(old_cloud: Watched) -> None:
    """With a conductor that sleeps through it, and one that dies right after it."""
    cloud, frozen = old_cloud, old_cloud.conductors[0]
    instead = {
        "postgresql://moorage@db/moorage": url_of(cloud),
        "/etc/moorage/moorage.conf": str(cloud.config),
    }
    kept, gone = cloud.boot("kept", availability_zone="nova:host-1"), cloud.boot("gone")
    active(cloud, kept, gone)
    do(cloud, "Back up", 0, instead, page=BACKUP)
    for action, status in (("os-stop", "SHUTOFF"), ("os-start", "ACTIVE")) * 2:
        power(cloud, kept, action, status)
    adopted, removed = (cloud.boot(name, availability_zone="nova:host-2") for name in ("adopted", "removed"))
    active(cloud, adopted, removed)
    cloud.typed(f"openstack server delete --wait {gone}")
    for part in (*cloud.apis, cloud.placement):
        part.end()
    frozen.freeze()
    with psycopg.connect(url_of(cloud), autocommit=True) as connection:
        connection.execute(END_CONNECTIONS)
    do(cloud, "Restore", 0, instead, page=BACKUP)
    short_lived = cloud.further_conductor(2)
    short_lived.start()
    short_lived.kill()
    for part in (cloud.placement, *cloud.apis, short_lived):
        part.start()
    for action, status in (("os-stop", "SHUTOFF"), ("os-start", "ACTIVE")):
        power(cloud, kept, action, status)
    frozen.thaw()
    wait_until(lambda: frozen.ended_by_itself, "the conductor to end that has slept", PATIENCE)
    assert RESTORED in frozen.log.read_text()
    assert frozen.end() == era_fence.ENDED
    do(cloud, "What came after the backup", 0, {"…, which": f"{adopted}, which", **instead}, page=BACKUP)
    said = cloud.typed("moorage audit --only host-servers")
    assert f"host host-2 has server {removed}, which nobody knows" in said
    assert f"does not have server {gone}" in said
    assert cloud.typed(f"moorage server adopt {adopted} --host host-2") == f"{adopted}: adopted on host-2\n"
    assert (
        cloud.typed(f"moorage server remove {removed} --host host-2")
        == f"{removed}: is deleted from host-2\n"
    )
    cloud.typed(f"openstack server delete --wait {gone}")
    wait_until(
        lambda: {one.uuid for one in cloud.kept_by("host-2")} == {adopted}, "the host's servers", PATIENCE
    )
    active(cloud, kept, adopted, cloud.boot("later"))
    do(cloud, "What came after the backup", 1, instead, page=BACKUP)
    do(cloud, "Move the database", 1)
    _say_it_beside_all_that_runs(cloud, kept)
    frozen.start()


def _say_it_beside_all_that_runs(cloud: Watched, uuid: str) -> None:
    """Each process ends; a server's workers come back by themselves."""
    conductor, servers = cloud.conductors[1], (cloud.placement, *cloud.apis)
    before = [part.log.read_text().count(RESTORED) for part in servers]
    manage = f"moorage-manage --config-file {cloud.config} db restored"
    assert "has begun" in cloud.typed(manage)
    wait_until(lambda: conductor.ended_by_itself, "the conductor to end", PATIENCE)
    assert conductor.end() == era_fence.ENDED
    conductor.start()

    def answers() -> bool:
        with contextlib.suppress(requests.RequestException, AssertionError):
            return cloud.status(uuid) == "ACTIVE" and bool(cloud.providers())
        return False

    wait_until(answers, "the APIs to be back", PATIENCE)
    told = [part.log.read_text().count(RESTORED) for part in servers]
    assert all(now > then for now, then in zip(told, before, strict=True)), told
    for action, status in (("os-stop", "SHUTOFF"), ("os-start", "ACTIVE")):
        power(cloud, uuid, action, status)
    assert "released" in cloud.typed(f"{manage} --release")


def power(cloud: Watched, uuid: str, action: str, status: str) -> None:
    """Within seconds: where it hangs, it hangs for ever."""
    cloud.call("POST", f"/servers/{uuid}/action", {action: None})
    wait_until(lambda: cloud.status(uuid) == status, f"the server to be {status}", PATIENCE / 3)


def test_move_the_database(old_cloud: Watched) -> None:
    cloud = old_cloud
    with postgres.start() as new:
        before = cloud.boot("before")
        active(cloud, before)
        for part in (*cloud.apis, cloud.placement, *cloud.conductors):
            part.end()
        instead = {
            "postgresql://moorage@old-db/moorage": url_of(cloud),
            "postgresql://moorage@new-db/moorage": new.create_database("moorage").replace("+psycopg", ""),
        }
        do(cloud, "Move the database", 0, instead)
        cloud.use_database(new)
        for part in (cloud.placement, *cloud.conductors, *cloud.apis):
            part.start()
        assert cloud.status(before) == "ACTIVE"
        active(cloud, cloud.boot("after"))
        do(cloud, "Move the database", 1)
        cloud.stop()
