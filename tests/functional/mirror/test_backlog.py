"""What Placement is told of hosts, at once or later: whether they are disabled, and that they went."""

from __future__ import annotations

import logging
import threading
from collections.abc import Collection
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from types import NoneType
from typing import Any, cast

import pytest
import sqlalchemy as sa

from moorage.bus.contract import SAY_AGAIN, Task
from moorage.compute.hosts.status_mirror import StatusMirror
from moorage.conductor.chores.backlog_worker import BacklogWorker
from moorage.core import uuids
from moorage.core.clock import utcnow
from moorage.db.tables.backlog import placement_backlog
from moorage.db.tables.compute import nodes
from moorage.placement.client.contract import ConsumerClaim, PlacementClient
from tests.functional.mirror.site import Site, uuid_of
from tests.support.faulty_proxy import HUNG_UP

DISABLED = "COMPUTE_STATUS_DISABLED"


def service_of(site: Site, host: str) -> Any:
    (found,) = site.admin.get(f"/os-services?host={host}").json["services"]
    return found


def set_status(site: Site, host: str, status: str) -> None:
    answer = site.admin.put(f"/os-services/{service_of(site, host)['id']}", {"status": status})
    assert (answer.status, answer.json["service"]["status"]) == (200, status)


def marked(site: Site, *nodes: str) -> list[bool]:
    return [site.direct.tree_has(uuid_of(node), [DISABLED]) for node in nodes]


def entries(site: Site) -> dict[str, Any]:
    with site.cloud.database.read() as connection:
        return {row.subject: row for row in connection.execute(sa.select(placement_backlog))}


def catch_up(site: Site, placement: PlacementClient | None = None) -> list[tuple[str, Task]]:
    """A conductor that has just been started, after all pauses are over: what it tells whom."""
    told: list[tuple[str, Task]] = []

    def be_due(connection: sa.Connection) -> None:
        connection.execute(sa.update(placement_backlog).values(due_at=utcnow() - timedelta(seconds=1)))

    def tell(host: str, tasks: list[Task]) -> None:
        told.extend((host, task) for task in tasks)

    site.cloud.database.transact(be_due)
    BacklogWorker(site.cloud.database, placement or site.placement, tell).look()
    return told


def test_a_status_is_known_in_placement_when_the_request_is_answered(site: Site) -> None:
    site.add("h", "n", "m")
    site.add("other", "o")
    site.direct.set_trait([uuid_of("n")], "HW_CPU_X86_AVX2", present=True)
    site.beat("empty", "unreported")
    set_status(site, "h", "disabled")
    assert marked(site, "n", "m", "o") == [True, True, False]
    set_status(site, "h", "enabled")
    assert marked(site, "n", "m", "o") == [False, False, False]
    assert site.direct.tree_has(uuid_of("n"), ["HW_CPU_X86_AVX2"])
    old = {"host": "h", "binary": "nova-compute"}
    for action, expected in (("disable", True), ("enable", False)):
        assert site.admin.at("2.11").put(f"/os-services/{action}", old).status == 200
        assert marked(site, "n", "m") == [expected, expected]
    set_status(site, "empty", "disabled")
    assert site.direct.aggregates([uuid_of("unreported")]) == {}, "it makes no provider"
    catch_up(site)
    assert marked(site, "n", "m") == [False, False]
    assert entries(site) == {}


def test_placement_that_is_away_hears_of_it_later(remote: Site, caplog: pytest.LogCaptureFixture) -> None:
    remote.add("h", "n")
    remote.proxy.fail(HUNG_UP)
    with caplog.at_level(logging.WARNING):
        set_status(remote, "h", "disabled")
    assert "Placement does not know yet whether host h is disabled" in caplog.text
    assert marked(remote, "n") == [False]
    with caplog.at_level(logging.WARNING):
        catch_up(remote)
    assert "Placement still does not know of the status of host h, next try in 5 s" in caplog.text
    entry = entries(remote)["h"]
    assert (entry.tries, "Placement does not answer" in entry.error) == (1, True)
    remote.proxy.fail(None)
    catch_up(remote)
    assert marked(remote, "n") == [True]
    assert entries(remote)["h"].error == ""
    catch_up(remote)
    assert entries(remote) == {}


def forget_node(site: Site, node: str) -> None:
    gone = sa.delete(nodes).where(nodes.c.uuid == uuid_of(node))
    site.cloud.database.transact(lambda connection: connection.execute(gone))


class Pausing:
    """Placement, for somebody who stops for a while right before the first write."""

    def __init__(self, real: PlacementClient, dies: bool) -> None:
        self._real = real
        self._dies = dies
        self.stopped, self.go_on = threading.Event(), threading.Event()

    def set_trait(self, provider_uuids: Collection[str], trait: str, *, present: bool) -> None:
        if not self.stopped.is_set():
            self.stopped.set()
            assert self.go_on.wait(60)
            self._real.set_trait(provider_uuids, trait, present=present)
            if self._dies:
                raise SystemExit
            return
        self._real.set_trait(provider_uuids, trait, present=present)


@pytest.mark.parametrize("dies", [False, True], ids=["lives on", "dies"])
@pytest.mark.parametrize("last", ["enabled", "disabled"])
def test_who_writes_late_does_not_have_the_last_word(site: Site, last: str, dies: bool) -> None:
    first = "disabled" if last == "enabled" else "enabled"
    site.add("h", "n")
    set_status(site, "h", first)
    late = Pausing(site.placement, dies)
    mirror = StatusMirror(site.cloud.database, cast(PlacementClient, late))
    with ThreadPoolExecutor(1) as pool:
        following = pool.submit(mirror.follow, "h")
        assert late.stopped.wait(60)
        set_status(site, "h", last)
        late.go_on.set()
        assert isinstance(following.exception(60), SystemExit if dies else NoneType)
    if dies:
        assert marked(site, "n") == [last == "enabled"], "the late write has come true"
        catch_up(site)
    assert marked(site, "n") == [last == "disabled"]


def test_a_provider_in_use_goes_when_it_is_not_any_more(site: Site, caplog: pytest.LogCaptureFixture) -> None:
    site.add("h", "n", "m")
    stray = ConsumerClaim(uuids.generate(), {uuid_of("n"): {"VCPU": 1}}, "p", "u")
    assert site.direct.claim([stray]) == [None]
    with caplog.at_level(logging.WARNING):
        assert site.admin.delete(f"/os-services/{service_of(site, 'h')['id']}").status == 204
    assert f"the provider of node {uuid_of('n')} stays, and is tried again" in caplog.text
    assert site.direct.aggregates([uuid_of("n"), uuid_of("m")]).keys() == {uuid_of("n")}
    for tries in (1, 2):
        catch_up(site)
        assert entries(site)[uuid_of("n")].tries == tries
    assert f"removal of provider {uuid_of('n')}, next try in 10 s" in caplog.text
    site.direct.release([stray.consumer_uuid])
    catch_up(site)
    assert site.direct.aggregates([uuid_of("n")]) == {}
    site.add("h", "n")  # a report that was delayed makes it anew
    forget_node(site, "n")
    assert entries(site)[uuid_of("n")].error == "", "it is looked at once more"
    catch_up(site)
    assert site.direct.aggregates([uuid_of("n")]) == {}
    assert entries(site) == {}


def test_a_provider_goes_when_placement_is_back(remote: Site) -> None:
    remote.add("h", "n", "m")
    service = service_of(remote, "h")
    remote.proxy.fail(HUNG_UP)
    assert remote.admin.delete(f"/os-services/{service['id']}").status == 204
    assert remote.proxy.struck == 2, "it is not waited for once more for each node"
    catch_up(remote)
    assert sum(entry.tries for entry in entries(remote).values()) == 1
    remote.proxy.fail(None)
    assert len(remote.direct.aggregates([uuid_of("n"), uuid_of("m")])) == 2
    catch_up(remote)
    assert remote.direct.aggregates([uuid_of("n"), uuid_of("m")]) == {}


def test_a_host_that_comes_back_keeps_its_provider(remote: Site) -> None:
    remote.add("h", "n")
    remote.proxy.fail(HUNG_UP)
    assert remote.admin.delete(f"/os-services/{service_of(remote, 'h')['id']}").status == 204
    remote.proxy.fail(None)
    remote.beat("h", "n")
    catch_up(remote)
    catch_up(remote)
    assert remote.direct.aggregates([uuid_of("n")]).keys() == {uuid_of("n")}
    assert entries(remote) == {}


class Returning:
    """Placement, in a cloud where the host comes back just as its provider is deleted."""

    def __init__(self, site: Site) -> None:
        self._site = site

    def delete_provider(self, uuid: str) -> None:
        self._site.beat("h", "n")
        self._site.direct.delete_provider(uuid)


def test_a_host_that_comes_back_in_the_middle_reports_anew(remote: Site) -> None:
    remote.add("h", "n")
    remote.proxy.fail(HUNG_UP)
    assert remote.admin.delete(f"/os-services/{service_of(remote, 'h')['id']}").status == 204
    remote.proxy.fail(None)
    told = catch_up(remote, cast(PlacementClient, Returning(remote)))
    assert [(host, task.kind) for host, task in told] == [("h", SAY_AGAIN)]
