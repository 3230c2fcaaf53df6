"""What a test does to a cloud with aggregates: as an operator, as agents, as somebody else in Placement."""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from enum import StrEnum

import requests
from falcon import testing

from moorage.bus.contract import Heartbeat, NodeFacts
from moorage.compute.aggregates.known_aggregates import KnownAggregates
from moorage.compute.aggregates.mirror import Mirror
from moorage.compute.aggregates.reconciliation import Findings, Reconciliation
from moorage.compute_api import wsgi
from moorage.conductor.agents.inbox import Inbox
from moorage.placement.client.contract import PlacementClient, ProviderAggregates, ReportedProvider
from moorage.placement.client.http import HttpPlacement
from moorage.placement.client.transport import PatientTransport, SessionTransport
from moorage.scheduler.own_aggregate import is_own, of_host
from tests.support.compute import Answer, Cloud, User, cloud_on
from tests.support.faulty_proxy import FaultyProxy, in_front_of


class Kind(StrEnum):
    """Whose Placement it is, and where."""

    LOCAL = "local"
    MOORAGE = "moorage"
    REFERENCE = "reference"


def uuid_of(name: str) -> str:
    return str(uuid.uuid5(uuid.NAMESPACE_DNS, name))


class Site:
    def __init__(self, cloud: Cloud, direct: PlacementClient, proxy: FaultyProxy | None) -> None:
        self.cloud = cloud
        self.direct = direct
        """Placement without the proxy: what it really says."""
        self._proxy = proxy
        self.inbox = Inbox(
            cloud.database, KnownAggregates(cloud.database), lambda: None, lambda _host, _tasks: None
        )
        self._names: dict[str, str] = {}

    @property
    def admin(self) -> User:
        return self.cloud.admin

    @property
    def proxy(self) -> FaultyProxy:
        assert self._proxy is not None, "this site has its Placement in the same process"
        return self._proxy

    @property
    def placement(self) -> PlacementClient:
        return self.cloud.service.placement

    def beat(self, host: str, *nodes: str) -> None:
        """The agent of a host says that it lives, and which nodes it has."""
        facts = [NodeFacts(uuid_of(name), name, "fake", {}) for name in nodes]
        self.inbox.on_heartbeat(Heartbeat(host, 1, {}, nodes=facts))

    def report(self, *nodes: str, aggregates: Iterable[str] | None = None) -> None:
        """Agents report their inventory; with `aggregates`, somebody puts the providers into these."""
        self.direct.report(
            [
                ReportedProvider(
                    self._known(name),
                    name,
                    {"VCPU": {"total": 8}},
                    aggregates=None if aggregates is None else [self._known(one) for one in aggregates],
                )
                for name in nodes
            ]
        )

    def add(self, host: str, *nodes: str) -> None:
        """A host whose nodes are known to everybody."""
        self.report(*nodes)
        self.beat(host, *nodes)
        self.follow_nodes()

    def aggregate(self, name: str, *hosts: str) -> int:
        made = self.admin.post("/os-aggregates", {"aggregate": {"name": name}})
        assert made.status == 200, made.text
        self._names = {
            uuid_: f"{name} {uuid_}" if known == name else known for uuid_, known in self._names.items()
        }
        self._names[made.json["aggregate"]["uuid"]] = name
        aggregate_id: int = made.json["aggregate"]["id"]
        for host in hosts:
            assert self.add_host(aggregate_id, host).status == 200
        return aggregate_id

    def add_host(self, aggregate_id: int, host: str) -> Answer:
        return self.admin.post(f"/os-aggregates/{aggregate_id}/action", {"add_host": {"host": host}})

    def remove_host(self, aggregate_id: int, host: str) -> Answer:
        return self.admin.post(f"/os-aggregates/{aggregate_id}/action", {"remove_host": {"host": host}})

    def delete(self, aggregate_id: int) -> Answer:
        return self.admin.delete(f"/os-aggregates/{aggregate_id}")

    def follow_nodes(self) -> None:
        Mirror(self.cloud.database, self.placement).drain()

    def sync(self, *, dry: bool = False) -> Findings:
        return Reconciliation(self.cloud.database, self.placement).run(dry=dry)

    def put(self, node: str, *aggregates: str) -> None:
        """Somebody puts a provider into just these aggregates, ours or theirs."""
        (found,) = self.direct.aggregates([self._known(node)]).values()
        wanted = frozenset(self._known(name) for name in aggregates)
        assert self.direct.set_aggregates([ProviderAggregates(found.uuid, found.generation, wanted)]) == {}

    def says(self, *nodes: str) -> Mapping[str, set[str]]:
        """The names of the aggregates that Placement has each of these nodes in; of those that it knows.

        Own aggregates of hosts are left out: `owners` tells those.
        """
        found = self.direct.aggregates([self._known(name) for name in nodes])
        return {
            self._names[uuid]: {self._names[each] for each in provider.aggregates if not is_own(each)}
            for uuid, provider in found.items()
        }

    def owners(self, node: str, *hosts: str) -> set[str]:
        """Those of these hosts in whose own aggregates Placement has a node."""
        (found,) = self.direct.aggregates([self._known(node)]).values()
        return {host for host in hosts if of_host(host) in found.aggregates}

    def _known(self, name: str) -> str:
        """The UUID of a name: one that Compute has given, else one made from it."""
        for uuid_, known in self._names.items():
            if known == name:
                return uuid_
        self._names[uuid_of(name)] = name
        return uuid_of(name)


@contextmanager
def site_on(url: str, placement_port: int) -> Iterator[Site]:
    """On a fresh database; port 0 for a Placement in the same process."""
    with cloud_on(url) as cloud:
        if not placement_port:
            yield Site(cloud, cloud.service.placement, None)
            return
        with in_front_of(placement_port) as proxy, requests.Session() as session:
            session.trust_env = False
            session.headers["X-Auth-Token"] = "admin"
            service = replace(cloud.service, placement=_client(session, proxy.port))
            client = testing.TestClient(wsgi.build(cloud.conf, service))
            yield Site(Cloud(cloud.conf, service, client), _client(session, placement_port), proxy)


def _client(session: requests.Session, port: int) -> PlacementClient:
    transport = SessionTransport(session, f"http://127.0.0.1:{port}")
    return HttpPlacement(PatientTransport(transport, attempts=2, first_pause=0.01))
