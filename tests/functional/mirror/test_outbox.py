"""The outbox of aggregates: what Placement could not be told is told within seconds, by whoever lives."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
import requests
import sqlalchemy as sa
from prometheus_client import REGISTRY

from moorage.compute.aggregates import mirror, outbox
from moorage.compute_api.hosts import background_mirror
from moorage.conductor.chores.mirroring import Mirroring
from moorage.db.tables.aggregates import unmirrored_nodes
from tests.functional.mirror.site import Kind, Site, site_on, uuid_of
from tests.support import moorage
from tests.support.faulty_proxy import CONFLICT, HUNG_UP, Fault
from tests.support.moorage import PROGRAMS
from tests.support.processes import Service, free_port, port_is_open, start_service, wait_until
from tests.support.stage import Stage

SECONDS = 30
"""Within which an outage heals on a busy machine; comparisons of everything are switched off."""


def failures(event: str) -> float:
    return REGISTRY.get_sample_value("moorage_mirror_failures_total", {"event": event}) or 0.0


def waiting(site: Site) -> int:
    with site.cloud.database.read() as connection:
        return int(connection.execute(sa.select(sa.func.count()).select_from(unmirrored_nodes)).scalar_one())


@contextmanager
def conductor(site: Site) -> Iterator[None]:
    """Its chore for aggregates, which never compares everything."""
    chore = Mirroring(site.cloud.database, site.placement, interval=0)
    chore.start()
    try:
        yield
    finally:
        chore.stop()


def test_an_outage_heals_without_any_comparison(remote: Site, caplog: pytest.LogCaptureFixture) -> None:
    remote.add("h", "n", "m")
    joined, left, deleted = (
        remote.aggregate("joined"),
        remote.aggregate("left", "h"),
        remote.aggregate("deleted"),
    )
    remote.put("n", "left", "deleted", "theirs")
    remote.proxy.fail(HUNG_UP)
    assert remote.add_host(joined, "h").status == 200
    assert remote.remove_host(left, "h").status == 200
    assert remote.delete(deleted).status == 200
    assert waiting(remote) == 3
    before = failures("node")
    with caplog.at_level(logging.WARNING), conductor(remote):
        wait_until(lambda: failures("node") >= before + 2, "two tries in vain", SECONDS)
        assert REGISTRY.get_sample_value("moorage_mirror_due") == 3
        assert (REGISTRY.get_sample_value("moorage_mirror_due_seconds") or 0) > 0
        remote.proxy.fail(None)
        wait_until(lambda: waiting(remote) == 0, "the outbox to be empty", SECONDS)
    for whose in ("the nodes of host h", "what is in the outbox"):  # the API's first try, and the conductor's
        assert caplog.text.count(f"Placement does not know the aggregates of {whose}") == 1
    assert "what is left in aggregate" not in caplog.text, "one warning an outage is enough"
    assert remote.says("n", "m") == {"n": {"joined", "theirs"}, "m": {"joined"}}


def test_what_was_told_at_once_does_not_wait(remote: Site) -> None:
    remote.add("h", "n")
    rack = remote.aggregate("rack", "h")
    assert waiting(remote) == 0
    remote.remove_host(rack, "h")
    remote.delete(rack)
    assert waiting(remote) == 0


def test_a_provider_that_others_change_all_the_time_keeps_nobody_back(
    remote: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of 3 entries, 2 are looked at together, the longest waiting first."""
    monkeypatch.setattr(mirror, "ATTEMPTS", 2)
    for name in ("busy", "first", "second"):
        remote.add(name, name)
    rack = remote.aggregate("rack")
    remote.proxy.fail(HUNG_UP)
    for name in ("busy", "first", "second"):
        remote.add_host(rack, name)
    monkeypatch.setattr(mirror, "_AT_ONCE", 2)
    remote.proxy.fail(CONFLICT)
    remote.follow_nodes()
    with remote.cloud.database.read() as connection:
        assert list(outbox.due(connection, 1)) == [uuid_of("second")], "it is its turn now"
    remote.proxy.fail(None)
    remote.follow_nodes()
    assert set(map(frozenset, remote.says("busy", "first", "second").values())) == {frozenset({"rack"})}


def test_no_more_than_a_few_wait_for_a_placement_that_hangs(
    remote: Site, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(background_mirror, "PATIENCE", 0.05)
    remote.add("h", "n")
    racks = [remote.aggregate(f"rack-{number}") for number in range(background_mirror.MOST_AT_ONCE + 2)]
    answers = threading.Event()
    remote.proxy.fail(Fault(works=True, until=answers))
    for rack in racks:
        assert remote.add_host(rack, "h").status == 200
    assert caplog.text.count("Placement hangs: a conductor tells it") == 2
    answers.set()
    remote.proxy.fail(None)
    expected = {"n": {f"rack-{number}" for number in range(len(racks))}}
    with conductor(remote):
        wait_until(lambda: remote.says("n") == expected, "Placement to be told", SECONDS)


@pytest.mark.filterwarnings("error::pytest.PytestUnhandledThreadExceptionWarning")
def test_a_database_that_goes_away_ends_no_thread_with_an_error(
    remote: Site, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    remote.add("h", "n")
    rack = remote.aggregate("rack")

    def gone(*_: object) -> None:
        raise sa.exc.OperationalError("SELECT 1", None, Exception("the database is gone"))

    monkeypatch.setattr(remote.placement, "aggregates", gone)
    assert remote.add_host(rack, "h").status == 200
    assert "a conductor tells Placement of a change of aggregates, since we can't" in caplog.text
    assert waiting(remote) == 1


@pytest.fixture
def scaled(postgres_url: str, stages: Callable[[Kind], Stage]) -> Iterator[Site]:
    with site_on(postgres_url, stages(Kind.MOORAGE).fresh()) as site:
        yield site


@contextmanager
def api_process(site: Site, directory: Path) -> Iterator[Service]:
    """Another Compute API of the same cloud, in a process of its own."""
    port = free_port()
    placement = {"auth_type": "none", "endpoint": f"http://127.0.0.1:{site.proxy.port}"}
    url = site.cloud.conf.database.connection
    config = moorage.configure(directory, url, {"placement_client": placement, "compute": {"workers": "1"}})
    command: list[str | Path] = [PROGRAMS / "moorage-api", "--config-file", config, "--port", str(port)]
    with start_service(command, port, directory / "api.log", ready=lambda: port_is_open(port)) as service:
        yield service


def test_a_change_survives_the_api_that_dies_before_placement_hears_of_it(
    scaled: Site, tmp_path: Path
) -> None:
    scaled.add("h", "n")
    rack = scaled.aggregate("rack")
    hangs = threading.Event()

    def add_host(url: str) -> None:
        headers = {"x-auth-token": "admin", "openstack-api-version": "compute 2.96"}
        body = {"add_host": {"host": "h"}}
        with pytest.raises(requests.ConnectionError):
            requests.post(f"{url}/v2.1/os-aggregates/{rack}/action", json=body, headers=headers, timeout=60)

    def is_written() -> bool:
        return bool(scaled.admin.get(f"/os-aggregates/{rack}").json["aggregate"]["hosts"] == ["h"])

    with api_process(scaled, tmp_path) as api:
        scaled.proxy.fail(Fault(until=hangs))
        asking = threading.Thread(target=add_host, args=(api.url,))
        asking.start()
        wait_until(is_written, "the host to join")
        api.kill()
        asking.join()
    hangs.set()
    scaled.proxy.fail(None)
    assert scaled.says("n") == {"n": set()}
    with conductor(scaled):
        wait_until(lambda: scaled.says("n") == {"n": {"rack"}}, "Placement to be told", SECONDS)
