"""Whatever happens, in any order: nodes have one owner, hosts agree on it, and in the end all are owned."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from moorage.db import engine, migrate
from moorage.db.database import Database
from tests.functional.conductor.shared_fleet import SharedFleet

HOSTS = {"a-1": "a", "a-2": "a", "a-3": "a", "b-1": "b"}
hosts = st.sampled_from(sorted(HOSTS))
places = st.integers(0, 7)


class AnyOrder(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self._directory = TemporaryDirectory()
        path = Path(self._directory.name) / "moorage.sqlite"
        self._engine = engine.connect(f"sqlite:///{path}", sqlite_synchronous="OFF")
        migrate.sync(self._engine)
        self.fleet = SharedFleet(Database(self._engine))
        self.nodes = self.fleet.add_nodes("a", 6) + self.fleet.add_nodes("b", 2)

    def teardown(self) -> None:
        self._engine.dispose()
        self._directory.cleanup()

    @rule(host=hosts)
    def start_or_kill(self, host: str) -> None:
        """One that dies is down by the time that anything else happens."""
        if host in self.fleet.agents:
            self.fleet.kill(host)
        else:
            self.fleet.start(host, HOSTS[host])

    @rule(host=hosts, heard=st.booleans())
    def beat(self, host: str, heard: bool) -> None:
        if host in self.fleet.agents:
            self.fleet.beat(host, heard=heard)

    @rule(host=hosts)
    def look(self, host: str) -> None:
        if host in self.fleet.agents:
            self.fleet.look(host)

    @rule(host=hosts)
    def deliver(self, host: str) -> None:
        self.fleet.deliver(host)

    @rule(host=hosts)
    def lose_mail(self, host: str) -> None:
        self.fleet.mail[host] = []

    @rule(host=hosts)
    def say_everything_again(self, host: str) -> None:
        if host in self.fleet.agents:
            self.fleet.agents[host].ownership.ask_for_everything()

    @rule(place=places, group=st.sampled_from("ab"))
    def change_group(self, place: int, group: str) -> None:
        self.fleet.machines.group[self.nodes[place]] = group

    @rule(place=places)
    def server_comes_or_goes(self, place: int) -> None:
        """It comes only where the host knows that the node is its own, as a driver sees to it."""
        node = self.nodes[place]
        if node in self.fleet.machines.server:
            self.fleet.remove_server(node)
            return
        owner = self.fleet.agents.get(self.fleet.owners().get(node, ""))
        if owner is not None and node in owner.owned():
            self.fleet.place(node)

    @rule()
    @precondition(lambda self: self.fleet.agents)
    def all_is_quiet(self) -> None:
        self.fleet.settle()
        for host, agent in self.fleet.agents.items():
            assert agent.owned() == {node for node, owner in self.fleet.owners().items() if owner == host}
        groups = {HOSTS[host] for host in self.fleet.agents}
        for node, group in self.fleet.machines.group.items():
            if group in groups:
                assert self.fleet.owners().get(node) in self.fleet.agents, "it has an owner that lives"

    @invariant()
    def no_node_has_two_owners(self) -> None:
        believed = [node for agent in self.fleet.agents.values() for node in agent.owned()]
        assert len(believed) == len(set(believed))

    @invariant()
    def servers_are_where_their_nodes_are(self) -> None:
        owners = self.fleet.owners()
        for node, host in self.fleet.server_hosts().items():
            assert owners[node] == host


TestAnyOrder = AnyOrder.TestCase
TestAnyOrder.settings = settings(max_examples=25, stateful_step_count=30, deadline=None)
