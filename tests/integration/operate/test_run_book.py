"""docs/operate/run-book.md, section by section."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import cast

import pytest

from tests.integration.operate.transcripts import PATIENCE, follow
from tests.integration.operate.watched import Watched
from tests.support import debian, debian_postgres, manual, postgres, rabbitmq
from tests.support.debian_postgres import DebianPostgres
from tests.support.postgres import Postgres
from tests.support.processes import wait_until

PAGE = "operate/run-book.md"


@pytest.fixture(scope="module")
def cloud(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Watched]:
    with ExitStack() as stack:
        try:
            broker = stack.enter_context(rabbitmq.start())
        except debian.Unavailable as error:
            pytest.skip(str(error))
        database = stack.enter_context(postgres.start())
        made = Watched(tmp_path_factory.mktemp("run-book"), database, broker)
        stack.callback(made.stop)
        made.start()
        yield made


def do(cloud: Watched, section: str, number: int = 0, instead: Mapping[str, str] | None = None) -> None:
    """One block of a section."""
    blocks = [block for block in manual.blocks(PAGE) if (block.section, block.kind) == (section, "console")]
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


def test_move_the_database(tmp_path: Path) -> None:
    with ExitStack() as stack:
        try:
            broker = stack.enter_context(rabbitmq.start())
            old = OldDatabase(stack.enter_context(debian_postgres.running()))
        except debian.Unavailable as error:
            pytest.skip(str(error))
        new = stack.enter_context(postgres.start())
        cloud = Watched(tmp_path, cast("Postgres", old), broker)
        stack.callback(cloud.stop)
        cloud.start()
        before = cloud.boot("before")
        active(cloud, before)
        for part in (*cloud.apis, cloud.placement, *cloud.conductors):
            part.end()
        instead = {
            "postgresql://moorage@old-db/moorage": cloud.database_url.replace("+psycopg", ""),
            "postgresql://moorage@new-db/moorage": new.create_database("moorage").replace("+psycopg", ""),
        }
        do(cloud, "Move the database", 0, instead)
        cloud.use_database(new)
        for part in (cloud.placement, *cloud.conductors, *cloud.apis):
            part.start()
        assert cloud.status(before) == "ACTIVE"
        active(cloud, cloud.boot("after"))
        do(cloud, "Move the database", 1)
