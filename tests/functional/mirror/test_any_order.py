"""Whatever happens, in any order and with any outages: one comparison later, Placement agrees.

And what others have put into Placement is as it was.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import replace
from typing import Any, TypeVar

import pytest
import sqlalchemy as sa
from falcon import testing
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    precondition,
    rule,
    run_state_machine_as_test,
)

from moorage.compute.aggregates.mirror import PROBLEMS
from moorage.compute_api import wsgi
from moorage.db.tables import aggregates as tables
from moorage.db.tables.compute import nodes, services
from moorage.db.tables.placement import provider_aggregates, providers
from moorage.placement.client.contract import PlacementUnavailableError, ProviderAggregates
from tests.functional.mirror.site import Site
from tests.support.compute import Cloud, cloud_on

T = TypeVar("T")
HOSTS = ("h1", "h2")
NODES = ("n1", "n2", "n3")
SHARED = "disk-array"
NAMES = ("rack", "zone")
FOREIGN = ("network", "storage")
_EMPTIED = (
    *(tables.aggregate_hosts, tables.aggregates, tables.deleted_aggregates, tables.unmirrored_nodes),
    *(nodes, services, provider_aggregates, providers),
)


class MoodyPlacement:
    """The real one, but some calls are lost on the way there, and some on the way back."""

    def __init__(self, real: Any) -> None:
        self._real = real
        self.moods: list[str] = []
        """What becomes of the next calls; when there are none left all is well."""

    def members(self, aggregate_uuids: Collection[str]) -> dict[str, set[str]]:
        return self._perhaps(lambda: self._real.members(aggregate_uuids))

    def aggregates(self, provider_uuids: Collection[str]) -> dict[str, ProviderAggregates]:
        return self._perhaps(lambda: self._real.aggregates(provider_uuids))

    def set_aggregates(self, wanted: Sequence[ProviderAggregates], *written: Any) -> Any:
        return self._perhaps(lambda: self._real.set_aggregates(wanted, *written))

    def _perhaps(self, call: Callable[[], T]) -> T:
        mood = self.moods.pop(0) if self.moods else "well"
        if mood == "away":
            raise PlacementUnavailableError("away")
        answer = call()
        if mood == "lost answer":
            raise PlacementUnavailableError("the answer was lost")
        return answer


class AnyOrder(RuleBasedStateMachine):
    """`site` and `placement` are set by the test."""

    site: Site
    placement: MoodyPlacement

    def __init__(self) -> None:
        super().__init__()
        self.ids: dict[str, int] = {}
        self.groups: dict[str, set[str]] = {}
        self.hosts: dict[str, set[str]] = {host: set() for host in HOSTS}
        self.foreign: dict[str, set[str]] = {name: set() for name in (*NODES, SHARED)}
        self.shared_with: set[str] = set()

    @initialize(
        homes=st.fixed_dictionaries({node: st.sampled_from([*HOSTS, None]) for node in NODES}),
        groups=st.fixed_dictionaries({name: st.sets(st.sampled_from(HOSTS)) for name in NAMES}),
    )
    def begin(self, homes: dict[str, str | None], groups: dict[str, set[str]]) -> None:
        """On a quiet day: some nodes are there, and some aggregates."""
        self.placement.moods.clear()
        with self.site.cloud.database.write() as connection:
            for table in _EMPTIED:
                connection.execute(sa.delete(table))
        self.site.report(*NODES, SHARED)
        for host in HOSTS:
            self.hosts[host] = {node for node, home in homes.items() if home == host}
            self.site.beat(host, *sorted(self.hosts[host]))
        for name, group in groups.items():
            self.ids[name] = self.site.aggregate(name, *sorted(group))
            self.groups[name] = set(group)

    @rule(moods=st.lists(st.sampled_from(["away", "lost answer", "well"]), min_size=1, max_size=6))
    def outage(self, moods: list[str]) -> None:
        self.placement.moods[:] = moods

    @rule(name=st.sampled_from(NAMES))
    def create(self, name: str) -> None:
        if name not in self.ids:
            self.ids[name] = self.site.aggregate(name)
            self.groups[name] = set()

    @precondition(lambda self: self.ids)
    @rule(data=st.data(), host=st.sampled_from(HOSTS))
    def add_or_remove_host(self, data: st.DataObject, host: str) -> None:
        name = data.draw(st.sampled_from(sorted(self.ids)))
        if host in self.groups[name]:
            assert self.site.remove_host(self.ids[name], host).status == 200
        else:
            assert self.site.add_host(self.ids[name], host).status == 200
        self.groups[name] ^= {host}

    @precondition(lambda self: self.ids)
    @rule(data=st.data())
    def delete(self, data: st.DataObject) -> None:
        name = data.draw(st.sampled_from(sorted(self.ids)))
        for host in sorted(self.groups.pop(name)):
            self.site.remove_host(self.ids[name], host)
        assert self.site.delete(self.ids.pop(name)).status == 200
        self.shared_with.discard(name)

    @rule(node=st.sampled_from(NODES), host=st.sampled_from([*HOSTS, None, None]), late=st.booleans())
    def move_node(self, node: str, host: str | None, late: bool) -> None:
        """To another host, or to none. The host may say so before the old one does, and is not heeded until
        the old one has given the node up: it says so again with its next heartbeat."""
        before = next((name for name, held in self.hosts.items() if node in held), None)
        if before is not None:
            self.hosts[before].remove(node)
        if host is not None:
            self.hosts[host].add(node)
        for name in (host, before, host) if late else (before, host):
            if name is not None:
                self.site.beat(name, *sorted(self.hosts[name]))

    @rule()
    def conductor_looks(self) -> None:
        self.site.follow_nodes()

    @rule()
    def compare(self) -> None:
        with contextlib.suppress(*PROBLEMS):
            self.site.sync()

    @rule(provider=st.sampled_from([*NODES, SHARED]), name=st.sampled_from(FOREIGN))
    def others_change_theirs(self, provider: str, name: str) -> None:
        self.foreign[provider] ^= {name}
        held = self.site.says(provider)[provider]
        self.site.put(provider, *(held ^ {name}))

    @precondition(lambda self: self.ids)
    @rule(data=st.data())
    def others_share_with_ours(self, data: st.DataObject) -> None:
        name = data.draw(st.sampled_from(sorted(self.ids)))
        self.shared_with.add(name)
        self.site.put(SHARED, *self.site.says(SHARED)[SHARED], name)

    def teardown(self) -> None:
        self.placement.moods.clear()
        self.site.sync()
        of_node = {node: host for host, held in self.hosts.items() for node in held}
        ours = {
            node: {name for name, group in self.groups.items() if of_node.get(node) in group}
            for node in NODES
        }
        wanted = {node: ours[node] | self.foreign[node] for node in NODES}
        wanted[SHARED] = self.shared_with | self.foreign[SHARED]
        assert self.site.says(*wanted) == wanted
        again = self.site.sync()
        assert again.changes == []


@pytest.fixture
def moody_site(database_url: str) -> Iterator[tuple[Site, MoodyPlacement]]:
    with cloud_on(database_url) as cloud:
        real = cloud.service.placement
        placement: Any = MoodyPlacement(real)
        service = replace(cloud.service, placement=placement)
        client = testing.TestClient(wsgi.build(cloud.conf, service))
        yield Site(Cloud(cloud.conf, service, client), real, None), placement


def test_placement_agrees_in_the_end(moody_site: tuple[Site, MoodyPlacement]) -> None:
    site, placement = moody_site
    machine = type("Machine", (AnyOrder,), {"site": site, "placement": placement})
    run_state_machine_as_test(
        machine,
        settings=settings(
            max_examples=50,
            stateful_step_count=25,
            deadline=None,
            suppress_health_check=list(HealthCheck),
        ),
    )
