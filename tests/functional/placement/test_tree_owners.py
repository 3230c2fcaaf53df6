"""Trees belong to the agents that made them: each writes to its own, and nobody else is limited."""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa
from falcon.testing import Result, TestClient

from moorage.core import config, uuids
from moorage.db.tables.placement import tree_owners as table
from moorage.http.caller import AGENT_ROLE
from moorage.placement import wsgi
from moorage.placement.api.routes import API
from moorage.placement.errors import TreeRefusal, TreeRefused
from moorage.placement.service import PlacementService
from moorage.placement.store import providers, tree_owners
from moorage.placement.store.own_trees import REFUSED, OwnTrees, TreeOwners
from tests.support.processes import wait_until
from tests.support.two_hosts import ATTEMPTS, RACK, TwoHosts

SHARED = {"inventories": {"DISK_GB": {"total": 100}}, "traits": ["MISC_SHARES_VIA_AGGREGATE"]}


def headers(user: str) -> dict[str, str]:
    roles = {"admin": "admin", "nova": "service", "both": f"service,{AGENT_ROLE}"}.get(user, AGENT_ROLE)
    return {"X-Auth-Token": f"{user}:service", "X-Roles": roles.upper() if user == "loud" else roles}


@contextmanager
def running(
    url: str, mode: TreeOwners, files: Sequence[str] = ()
) -> Iterator[tuple[PlacementService, TestClient]]:
    given = {"database.connection": url, "auth.strategy": "none", "placement.tree_owners": mode.value}
    conf = config.read(files, wsgi.OPTIONS, given)
    service = PlacementService.from_conf(conf)
    service.start()
    yield service, TestClient(wsgi.build(conf, service))
    service.stop()


@pytest.fixture(scope="module", params=[TreeOwners.REQUIRE, TreeOwners.RECORD])
def apart(
    request: pytest.FixtureRequest, module_database_url: str
) -> Iterator[tuple[PlacementService, TestClient]]:
    with running(module_database_url, request.param) as made:
        yield made


@pytest.fixture
def hosts(apart: tuple[PlacementService, TestClient]) -> TwoHosts:
    return TwoHosts(apart[1], headers).make()


def owners(service: PlacementService) -> dict[str, str]:
    """By the root's name."""
    with service.database.snapshot() as connection:
        return {tree.name: tree.user_id for tree in tree_owners.listed(connection) if tree.user_id}


def counted(reason: TreeRefusal) -> float:
    return float(REFUSED.labels(reason.value)._value.get())


def sentence(answer: Result) -> str:
    return str(answer.json["errors"][0]["detail"])


@pytest.mark.parametrize("attempt", ATTEMPTS)
def test_what_is_anothers_stays_as_it_is(hosts: TwoHosts, attempt: str) -> None:
    before = hosts.state()
    assert ATTEMPTS[attempt](hosts) == 403
    assert hosts.state() == before


def test_each_attempt_works_where_trees_have_no_owners(sqlite_url: str) -> None:
    with running(sqlite_url, TreeOwners.OFF) as (service, api):
        for name, attempt in ATTEMPTS.items():
            assert attempt(TwoHosts(api, headers).make()) < 300, name
        assert owners(service) == {}


def test_every_way_in_which_agents_write_is_tried(hosts: TwoHosts) -> None:
    """By the routes that are open to them; making names takes nothing from anybody."""
    harmless = {"placement:traits:update"}
    tried: set[tuple[str, str]] = set()

    def ask(user: str, method: str, path: str, body: Any = None, version: str = "1.39") -> Result:
        if user == "host-1":
            tried.add((method, path))
        return TwoHosts.ask(hosts, user, method, path, body, version)

    hosts.ask = ask  # type: ignore[method-assign]
    for attempt in ATTEMPTS.values():
        attempt(hosts)
    for route in API:
        shape = route.path.split("/")
        for method, endpoint in route.methods.items():
            if "agent" not in endpoint.check or method == "GET" or endpoint.policy in harmless:
                continue
            if ":list" in (endpoint.policy or ""):
                continue
            assert any(how == method and _fits(path, shape) for how, path in tried), (method, route.path)


def _fits(path: str, shape: list[str]) -> bool:
    words = path.split("/")
    return len(words) == len(shape) and all(
        part.startswith("{") or part == word for part, word in zip(shape, words, strict=True)
    )


def test_routes_that_a_policy_opens_to_agents_are_limited_too(sqlite_url: str, tmp_path: Path) -> None:
    policy = tmp_path / "policy.yaml"
    rules = ("inventories:create", "inventories:delete", "traits:delete")
    policy.write_text("".join(f'"placement:resource_providers:{rule}": "@"\n' for rule in rules))
    file = tmp_path / "moorage.conf"
    file.write_text(f"[oslo_policy]\npolicy_file = {policy}\n")
    with running(sqlite_url, TreeOwners.REQUIRE, [str(file)]) as (_, api):
        hosts = TwoHosts(api, headers).make()
        more = {"resource_class": "MEMORY_MB", "total": 1, "resource_provider_generation": 1}
        for host, good in (("host-1", True), ("host-2", False)):
            path = f"/resource_providers/{hosts.children[host]}"
            for method, part, body in (
                ("POST", "inventories", more),
                ("DELETE", f"inventories/{hosts.gpu}", None),
                ("DELETE", "inventories", None),
                ("DELETE", "traits", None),
            ):
                answer = hosts.ask("host-1", method, f"{path}/{part}", body)
                assert (answer.status_code < 300) is good, answer.text
                assert good or "is another agent's" in sentence(answer)


def test_an_agent_does_to_its_own_what_it_likes(hosts: TwoHosts) -> None:
    root, child = hosts.roots["host-1"], hosts.children["host-1"]
    for part, key, value in (
        ("inventories", "inventories", {"VCPU": {"total": 4}}),
        ("traits", "traits", ["COMPUTE_NODE"]),
        ("aggregates", "aggregates", [RACK]),
    ):
        body = {"resource_provider_generation": hosts.generation(root), key: value}
        hosts.good("host-1", "PUT", f"/resource_providers/{root}/{part}", body)
    inventories = {root: {}, child: {"VCPU": {"total": 4}, hosts.gpu: {"total": 2}}}
    held = {child: {"resources": {"VCPU": 2}}}
    claim = hosts.claim("host-1", generation=1, allocations=held)
    moved = hosts.reshape("host-1", inventories, {hosts.servers["host-1"]: claim})
    assert moved.status_code == 204, moved.text
    leaf = {"name": f"leaf-{hosts.mark}", "uuid": uuids.generate(), "parent_provider_uuid": child}
    hosts.good("host-1", "POST", "/resource_providers", leaf)
    path = f"/resource_providers/{leaf['uuid']}"
    for parent in (root, None, root):
        hosts.good("host-1", "PUT", path, {"name": leaf["name"], "parent_provider_uuid": parent})
    hosts.good("host-1", "DELETE", path)


@pytest.mark.parametrize("user", ["admin", "nova", "both"])
def test_administrators_and_services_write_to_all(hosts: TwoHosts, user: str) -> None:
    for host in hosts.roots:
        hosts.good(user, "POST", "/moorage/v1/providers", {"providers": hosts.report(host, traits=[])})
        path = f"/resource_providers/{hosts.children[host]}"
        hosts.good(user, "PUT", path, {"name": f"{user}-{host}-{hosts.mark}"})
        hosts.good(user, "DELETE", path)


def test_who_is_not_limited_costs_no_query(apart: tuple[PlacementService, TestClient]) -> None:
    service, api = apart
    hosts = TwoHosts(api, headers).make()
    asked: list[str] = []

    def listen(_connection: Any, _cursor: Any, statement: str, *_more: Any) -> None:
        asked.append(statement)

    sa.event.listen(service.database.engine, "before_cursor_execute", listen)
    hosts.good("nova", "POST", "/moorage/v1/providers", {"providers": hosts.report("host-1", traits=[])})
    body = {"resource_provider_generation": hosts.generation(hosts.roots["host-1"]), "traits": []}
    hosts.good("nova", "PUT", f"/resource_providers/{hosts.roots['host-1']}/traits", body)
    assert asked
    assert not any("tree_owners" in statement for statement in asked)
    hosts.ask("host-1", "POST", "/moorage/v1/providers", {"providers": hosts.report("host-1")})
    assert any("tree_owners" in statement for statement in asked)


def test_a_role_is_one_however_it_is_written(hosts: TwoHosts) -> None:
    uuid = hosts.roots["host-2"]
    assert hosts.ask("loud", "DELETE", f"/resource_providers/{uuid}").status_code == 403


def test_a_refusal_is_told_and_counted(hosts: TwoHosts, caplog: pytest.LogCaptureFixture) -> None:
    user, path = f"agent-{hosts.mark}", f"/resource_providers/{hosts.children['host-2']}"
    before = counted(TreeRefusal.NOT_OWN)
    with caplog.at_level(logging.ERROR):
        answers = [hosts.ask(user, "DELETE", path) for _ in range(3)]
    assert "is another agent's" in sentence(answers[0])
    assert answers[0].json["errors"][0]["code"] == "moorage.not_own"
    assert counted(TreeRefusal.NOT_OWN) == before + 3
    told = [line for line in caplog.messages if "refused (not_own)" in line and repr(user) in line]
    assert len(told) == 1, "more would only fill the log"


def test_what_is_shared_is_kept_through_a_reshape(apart: tuple[PlacementService, TestClient]) -> None:
    """A server's disk is on storage that an administrator made: its host has no need to change that."""
    service, api = apart
    hosts = TwoHosts(api, headers).make()
    storage, server = uuids.generate(), hosts.servers["host-1"]
    shared = {"uuid": storage, "name": f"storage-{hosts.mark}", **SHARED}
    hosts.good("admin", "POST", "/moorage/v1/providers", {"providers": [shared]})
    root, child = hosts.roots["host-1"], hosts.children["host-1"]
    disk = {storage: {"resources": {"DISK_GB": 10}}}
    held = {root: {"resources": {"VCPU": 2}}, **disk}
    hosts.good("admin", "PUT", f"/allocations/{server}", hosts.claim("host-1", 1, allocations=held))
    inventories = {root: {}, child: {"VCPU": {"total": 4}, hosts.gpu: {"total": 2}}}
    vcpu = {child: {"resources": {"VCPU": 2}}}
    more = {server: hosts.claim("host-1", 2, allocations={**vcpu, **disk})}
    assert hosts.reshape("host-1", inventories, more).status_code == 204
    assert f"storage-{hosts.mark}" not in owners(service), "what it only keeps, it does not write to"
    if service.settings.tree_owners is TreeOwners.REQUIRE:
        less = {server: hosts.claim("host-1", 3, allocations=vcpu)}
        assert hosts.reshape("host-1", inventories, less).status_code == 403


def test_a_name_or_uuid_that_is_taken_gives_no_access(hosts: TwoHosts) -> None:
    before = hosts.state()
    uuid = hosts.roots["host-2"]
    for body in (
        {"name": hosts.name("host-2")},
        {"name": f"new-{hosts.mark}", "uuid": uuid},
        {"name": hosts.name("host-2"), "uuid": uuid},
    ):
        assert hosts.ask("host-1", "POST", "/resource_providers", body).status_code == 409
    same_name = [{**hosts.report("host-1")[0], "uuid": uuids.generate(), "name": hosts.name("host-2")}]
    answer = hosts.ask("host-1", "POST", "/moorage/v1/providers", {"providers": same_name})
    assert answer.status_code == 409
    own = f"/resource_providers/{hosts.roots['host-1']}"
    assert hosts.ask("host-1", "PUT", own, {"name": hosts.name("host-2")}).status_code == 409
    assert hosts.state() == before


def test_a_tree_that_is_made_anew_is_the_makers(apart: tuple[PlacementService, TestClient]) -> None:
    service, api = apart
    hosts = TwoHosts(api, headers)
    body = {"name": f"node-{hosts.mark}", "uuid": uuids.generate()}
    for user in ("host-1", "host-2"):
        hosts.good(user, "POST", "/resource_providers", body)
        assert owners(service)[body["name"]] == user
        hosts.good(user, "DELETE", f"/resource_providers/{body['uuid']}")
        assert body["name"] not in owners(service)


def test_what_leaves_a_tree_belongs_to_whom_the_tree_does(
    apart: tuple[PlacementService, TestClient],
) -> None:
    service, api = apart
    hosts = TwoHosts(api, headers).make()
    path, name = f"/resource_providers/{hosts.children['host-1']}", f"{hosts.name('host-1')}-gpu"

    def put(user: str, parent: str | None) -> int:
        return hosts.ask(user, "PUT", path, {"name": name, "parent_provider_uuid": parent}).status_code

    assert put("admin", None) == 200
    assert owners(service)[name] == "host-1"
    assert put("host-2", hosts.roots["host-2"]) == 403
    assert put("admin", hosts.roots["host-2"]) == 200
    assert name not in owners(service)
    assert put("host-1", hosts.roots["host-1"]) == 403
    assert put("host-2", None) == 200
    assert owners(service)[name] == "host-2"
    with service.database.read() as connection:
        known = set(connection.execute(sa.select(table.c.user_id)).scalars())
    assert known <= {"host-1", "host-2"}


def test_what_is_nobodys_is_refused_or_taken(database_url: str) -> None:
    """First nobody remembers whose trees are, then agents are heard once, then no more is taken."""
    with running(database_url, TreeOwners.OFF) as (service, api):
        hosts = TwoHosts(api, headers).make()
        assert owners(service) == {}
    with running(database_url, TreeOwners.REQUIRE) as (service, api):
        hosts = _through(hosts, api)
        answer = hosts.ask("host-1", "POST", "/moorage/v1/providers", {"providers": hosts.report("host-1")})
        assert answer.status_code == 403
        assert "is no agent's" in sentence(answer)
        assert owners(service) == {}
    with running(database_url, TreeOwners.RECORD) as (service, api):
        hosts = _through(hosts, api)
        before = hosts.state("host-1")
        for host in hosts.roots:
            hosts.good(host, "POST", "/moorage/v1/providers", {"providers": hosts.report(host)})
        assert hosts.state("host-1") == before, "nothing was new in it, but whose it is"
        assert owners(service) == {hosts.name(host): host for host in hosts.roots}
        assert ATTEMPTS["report host-2"](hosts) == 403
    with running(database_url, TreeOwners.REQUIRE) as (_, api):
        hosts = _through(hosts, api)
        hosts.good(
            "host-1", "POST", "/moorage/v1/providers", {"providers": hosts.report("host-1", traits=[])}
        )
        assert ATTEMPTS["report host-2"](hosts) == 403


def _through(hosts: TwoHosts, api: TestClient) -> TwoHosts:
    hosts._api = api
    return hosts


@pytest.mark.parametrize("by", ["parts", "report"])
def test_of_two_first_writers_one_wins(database_url: str, by: str) -> None:
    with running(database_url, TreeOwners.OFF) as (_, api):
        pairs = [TwoHosts(api, headers).make() for _ in range(8)]
    with running(database_url, TreeOwners.RECORD) as (service, api):
        gate = threading.Barrier(2)

        def write(user: str, hosts: TwoHosts) -> int:
            uuid = hosts.roots["host-1"]
            generation = hosts.generation(uuid)
            gate.wait(60)
            if by == "report":
                body: Any = {"providers": hosts.report("host-1", traits=[f"CUSTOM_{user[-1]}"])}
                return hosts.ask(user, "POST", "/moorage/v1/providers", body).status_code
            body = {"resource_provider_generation": generation, "aggregates": [uuids.generate()]}
            return hosts.ask(user, "PUT", f"/resource_providers/{uuid}/aggregates", body).status_code

        with ThreadPoolExecutor(2) as pool:
            for hosts in pairs:
                _through(hosts, api)
                answers = [pool.submit(write, user, hosts) for user in ("host-1", "host-2")]
                found = {user: one.result(120) for user, one in zip(hosts.roots, answers, strict=True)}
                assert sorted(found.values()) == [200, 403]
                assert found[owners(service)[hosts.name("host-1")]] == 200


def test_of_two_who_make_the_same_one_wins(database_url: str) -> None:
    """Whoever comes second finds it made, and is told that it is another's, or that there is one."""
    with running(database_url, TreeOwners.REQUIRE) as (service, api):
        gate = threading.Barrier(2)

        def make(user: str, hosts: TwoHosts) -> int:
            gate.wait(60)
            body = {"providers": hosts.report("host-1", traits=[f"CUSTOM_{user[-1]}"])}
            return hosts.ask(user, "POST", "/moorage/v1/providers", body).status_code

        with ThreadPoolExecutor(2) as pool:
            for _ in range(8):
                hosts = TwoHosts(api, headers)
                answers = [pool.submit(make, user, hosts) for user in ("host-1", "host-2")]
                found = {user: one.result(120) for user, one in zip(hosts.roots, answers, strict=True)}
                assert sorted(found.values()) in ([200, 403], [200, 409])
                assert found[owners(service)[hosts.name("host-1")]] == 200


def test_who_waited_for_another_first_writer_is_refused(postgres_url: str) -> None:
    """PostgreSQL only: they write to different providers of one tree, so no lock of a row helps."""
    with running(postgres_url, TreeOwners.OFF) as (service, api):
        hosts = TwoHosts(api, headers).make()
    database, late = service.database, OwnTrees("host-2", recording=True)
    with ThreadPoolExecutor(1) as pool:
        with database.write() as connection:
            root = providers.lock(connection, hosts.roots["host-1"], OwnTrees("host-1", recording=True))
            child = hosts.children["host-1"]
            waits = pool.submit(database.transact, lambda own: providers.lock(own, child, late))
            wait_until(lambda: _somebody_waits(service), "the second one to wait", 60)
        with pytest.raises(TreeRefused, match="is another agent's"):
            waits.result(60)
    assert owners(service) == {root.name: "host-1"}


def _somebody_waits(service: PlacementService) -> bool:
    with service.database.read() as connection:
        count = connection.exec_driver_sql("SELECT count(*) FROM pg_locks WHERE NOT granted").scalar_one()
    return bool(count)
