"""Selecting: the best host that passes, with alternates, and batches that spread."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from moorage.placement.client.contract import AllocationRequest, Candidates, ProviderSummary
from moorage.scheduler.board import Board
from moorage.scheduler.offers import offers, roots
from moorage.scheduler.ranking import EXAMPLES
from moorage.scheduler.select import RANKED, Decision, Selector
from moorage.scheduler.server_group import ServerGroupPolicy, ServerGroupState
from moorage.scheduler.settings import SchedulerSettings
from tests.unit.scheduler.clouds import SMALL, Node, candidates, cloud, host, request, uuid

SELECTOR = Selector(SchedulerSettings())


def names(decision: Decision) -> list[str]:
    return [choice.place.host for choice in decision.choices]


def place_all(
    nodes: list[Node], count: int, settings: SchedulerSettings | None = None, **asked: Any
) -> list[str]:
    """Hosts that a batch of servers gets, decided against one board."""
    found, board = cloud(nodes)
    chosen = []
    for number in range(count):
        wanted = request(1000 + number, **asked)
        decision = Selector(settings or SchedulerSettings()).select(wanted, found, board)
        if decision.chosen is not None:
            board.take(wanted, decision.chosen.place.node_uuid, decision.chosen.allocations)
            chosen.append(decision.chosen.place.host)
    return chosen


def test_the_emptiest_host_comes_first_and_the_next_are_alternates() -> None:
    found, board = cloud([Node(host(number), vcpus=4 * number) for number in range(1, 6)])
    decision = SELECTOR.select(request(), found, board)
    assert names(decision) == ["host-5", "host-4", "host-3"]
    assert decision.chosen is not None
    assert decision.chosen.allocations == {uuid(5): SMALL}
    assert decision.chosen.mappings == {"": [uuid(5)]}


def test_the_trace_tells_what_was_decided() -> None:
    states = [host(1, up=False), host(2, disabled=True), host(3), host(4)]
    found, board = cloud([Node(states[0]), Node(states[1]), Node(states[2]), Node(states[3], vcpus=32)])
    trace = SELECTOR.select(request(), found, board, [("limit", "50")]).trace
    assert (trace.candidates, trace.nodes, trace.left) == (4, 4, 2)
    (exclusion,) = trace.excluded
    assert (exclusion.filter, exclusion.count) == ("service", 2)
    assert exclusion.kinds == {"host_down": 1, "host_disabled": 1}
    assert [entry.place.host for entry in trace.ranking] == ["host-4", "host-3"]
    assert trace.ranking[0].shares == {"cpu": 1.0, "ram": 1.0, "disk": 1.0, "build failures": 0.0}
    assert trace.chosen is not None
    assert trace.chosen.host == "host-4"
    assert [place.host for place in trace.alternates] == ["host-3"]


def test_the_trace_stays_small() -> None:
    down = [Node(host(number, up=False)) for number in range(30)]
    up = [Node(host(number)) for number in range(30, 60)]
    trace = SELECTOR.select(request(), *cloud(down + up)).trace
    assert (trace.excluded[0].count, len(trace.excluded[0].examples)) == (30, EXAMPLES)
    assert (trace.left, len(trace.ranking)) == (30, RANKED)


def test_a_node_that_no_host_owns_is_passed_over() -> None:
    found, _ = cloud([Node(host(1))])
    decision = SELECTOR.select(request(), found, Board({}))
    assert decision.chosen is None
    assert decision.trace.excluded[0].filter == "owner"


def test_no_host_but_more_candidates_than_asked_for_is_worth_a_larger_limit() -> None:
    found, board = cloud([Node(host(number, up=False)) for number in range(5)])
    assert SELECTOR.select(request(), found, board, [("limit", "5")]).cut_off
    assert not SELECTOR.select(request(), found, board, [("limit", "6")]).cut_off
    assert not SELECTOR.select(request(), *cloud([Node(host(1))]), [("limit", "1")]).cut_off


def test_a_batch_spreads_over_equal_hosts() -> None:
    chosen = place_all([Node(host(number)) for number in range(4)], 12)
    assert {name: chosen.count(name) for name in chosen} == {f"host-{number}": 3 for number in range(4)}


def test_a_batch_takes_no_more_than_there_is() -> None:
    chosen = place_all([Node(host(number), vcpus=4) for number in range(3)], 10)
    assert sorted(chosen) == sorted([f"host-{number}" for number in range(3)] * 2)


def test_a_wider_answer_adds_nodes_and_forgets_nothing() -> None:
    few = [Node(host(1, up=False)), Node(host(2), vcpus=2)]
    found, board = cloud(few)
    first = SELECTOR.select(request(1), found, board)
    assert first.chosen is not None
    board.take(request(1), uuid(2), first.chosen.allocations)
    more = [*few, Node(host(3))]
    board.learn({node.state.node_uuid: replace(node.state, servers=0, taken={}) for node in more})
    wider, _ = cloud(more)
    assert names(SELECTOR.select(request(2), wider, board)) == ["host-3"]
    assert board.hosts[uuid(2)].servers == 1


def test_room_that_is_given_back_is_free_again() -> None:
    found, board = cloud([Node(host(1), vcpus=2)])
    wanted = request()
    board.take(wanted, uuid(1), {uuid(1): SMALL})
    full = SELECTOR.select(wanted, found, board)
    assert full.trace.excluded[0].filter == "room"
    board.give_back(wanted, uuid(1), {uuid(1): SMALL})
    assert SELECTOR.select(wanted, found, board).chosen is not None
    assert board.hosts[uuid(1)].servers == 0


def test_a_batch_of_an_anti_affinity_group_goes_apart() -> None:
    group = ServerGroupState(uuid(50), ServerGroupPolicy.ANTI_AFFINITY)
    chosen = place_all([Node(host(number)) for number in range(3)], 5, server_group=group)
    assert sorted(chosen) == ["host-0", "host-1", "host-2"]


def test_a_batch_of_an_affinity_group_stays_together() -> None:
    group = ServerGroupState(uuid(50), ServerGroupPolicy.AFFINITY)
    chosen = place_all([Node(host(number)) for number in range(3)], 5, server_group=group)
    assert len(chosen) == 5
    assert len(set(chosen)) == 1


def test_the_bound_on_servers_counts_those_of_the_batch() -> None:
    chosen = place_all([Node(host(1, servers=1))], 5, SchedulerSettings(max_servers_per_node=3))
    assert len(chosen) == 2


def test_a_host_with_build_failures_is_the_last_resort() -> None:
    found, board = cloud([Node(host(1, build_failures=1), vcpus=64), Node(host(2), vcpus=4)])
    assert names(SELECTOR.select(request(), found, board)) == ["host-2", "host-1"]


def test_different_servers_order_equal_hosts_differently() -> None:
    found, board = cloud([Node(host(number)) for number in range(8)])
    firsts = {names(SELECTOR.select(request(number), found, board))[0] for number in range(40)}
    assert len(firsts) > 4


def nested() -> Candidates:
    """A node with two devices, either of which will do, and disk from a pool that it shares with others."""
    node, first, second, pool = uuid(1), uuid(2), uuid(3), uuid(9)
    summaries = {
        pool: ProviderSummary({"DISK_GB": {"capacity": 40, "used": 0}}, root_provider_uuid=pool),
        node: ProviderSummary({"VCPU": {"capacity": 8, "used": 0}}, root_provider_uuid=node),
        first: ProviderSummary({"VGPU": {"capacity": 1, "used": 0}}, [], node, node),
        second: ProviderSummary({"VGPU": {"capacity": 1, "used": 0}}, [], node, node),
    }
    ways = [
        AllocationRequest(
            {
                pool: {"resources": {"DISK_GB": 10}},
                node: {"resources": {"VCPU": 1}},
                device: {"resources": {"VGPU": 1}},
            }
        )
        for device in (first, second)
    ]
    return Candidates(ways, summaries)


def test_a_node_is_found_among_the_trees_of_its_candidate() -> None:
    state = host(1)
    found = offers(nested(), {uuid(1)})
    assert roots(nested()) == {uuid(1), uuid(9)}
    assert list(found.by_node) == [uuid(1)]
    assert found.by_node[uuid(1)].free == {"VCPU": 8, "VGPU": 2, "DISK_GB": 40}
    assert SELECTOR.select(request(), found, Board({uuid(1): state})).trace.nodes == 1


def test_a_second_server_takes_the_other_device_and_a_third_finds_none() -> None:
    found, board = offers(nested(), {uuid(1)}), Board({uuid(1): host(1)})
    devices = []
    for number in range(3):
        decision = SELECTOR.select(request(number), found, board)
        if decision.chosen is not None:
            board.take(request(number), uuid(1), decision.chosen.allocations)
            devices.append(next(iter(decision.chosen.allocations.keys() - {uuid(1), uuid(9)})))
    assert devices == [uuid(2), uuid(3)]


def test_a_pool_that_two_nodes_share_is_counted_once() -> None:
    pool = ProviderSummary({"DISK_GB": {"capacity": 15, "used": 0}}, root_provider_uuid=uuid(9))
    nodes = {
        uuid(number): ProviderSummary({"VCPU": {"capacity": 8, "used": 0}}, root_provider_uuid=uuid(number))
        for number in (1, 2)
    }
    ways = [
        AllocationRequest({node: {"resources": {"VCPU": 1}}, uuid(9): {"resources": {"DISK_GB": 10}}})
        for node in nodes
    ]
    found = offers(Candidates(ways, {uuid(9): pool, **nodes}), set(nodes))
    board = Board({uuid(1): host(1), uuid(2): host(2)})
    first = SELECTOR.select(request(), found, board)
    assert first.chosen is not None
    board.take(request(), first.chosen.place.node_uuid, first.chosen.allocations)
    assert SELECTOR.select(request(), found, board).chosen is None


free = st.builds(
    Node,
    state=st.none(),
    vcpus=st.integers(2, 64),
    ram=st.integers(2048, 2**18),
    disk=st.integers(20, 4000),
)
flags = st.tuples(st.booleans(), st.booleans(), st.integers(0, 3), st.integers(0, 2))


@st.composite
def clouds(draw: st.DrawFn) -> list[Node]:
    nodes = []
    for number, node in enumerate(draw(st.lists(free, min_size=1, max_size=12))):
        up, disabled, servers, failures = draw(flags)
        state = host(number, up=up, disabled=disabled, servers=servers, build_failures=failures)
        nodes.append(replace(node, state=state))
    return nodes


@given(clouds(), st.randoms(use_true_random=False))
def test_the_order_of_candidates_changes_nothing(nodes: list[Node], random: Any) -> None:
    shuffled = list(nodes)
    random.shuffle(shuffled)
    one, other = SELECTOR.select(request(), *cloud(nodes)), SELECTOR.select(request(), *cloud(shuffled))
    assert names(one) == names(other)
    assert one.trace.ranking == other.trace.ranking


@given(clouds())
def test_every_host_is_either_left_or_excluded_for_a_reason(nodes: list[Node]) -> None:
    trace = SELECTOR.select(request(), *cloud(nodes)).trace
    assert trace.left + sum(exclusion.count for exclusion in trace.excluded) == len(nodes)
    assert trace.left == sum(node.state.up and not node.state.disabled for node in nodes)
    assert all(sum(exclusion.kinds.values()) == exclusion.count for exclusion in trace.excluded)


@given(clouds(), st.integers(1, 64))
def test_a_host_that_gets_more_room_is_not_ranked_lower(nodes: list[Node], more: int) -> None:
    settings = SchedulerSettings(max_attempts=20, ram_weight=0, disk_weight=0, build_failure_weight=0)
    lucky = nodes[0].state.host
    before = names(Selector(settings).select(request(), *cloud(nodes)))
    richer = [replace(nodes[0], vcpus=nodes[0].vcpus + more), *nodes[1:]]
    after = names(Selector(settings).select(request(), *cloud(richer)))
    assert set(before) == set(after)
    if lucky in before:
        assert after.index(lucky) <= before.index(lucky)


@given(clouds(), st.integers(1, 30))
def test_a_batch_never_overbooks(nodes: list[Node], count: int) -> None:
    chosen = place_all(nodes, count)
    for node in nodes:
        fitting = min(node.vcpus // 2, node.ram // 2048, node.disk // 20)
        assert chosen.count(node.state.host) <= fitting


@given(clouds(), st.data())
def test_what_is_kept_between_decisions_changes_none_of_them(nodes: list[Node], data: st.DataObject) -> None:
    """Decided again with nothing kept, every decision is the same, whatever was taken and given back."""
    found, board = cloud(nodes)
    selector = Selector(SchedulerSettings(max_servers_per_node=6, server_count_weight=-0.5))
    placed: list[tuple[str, dict[str, dict[str, int]]]] = []
    for number in range(data.draw(st.integers(1, 12))):
        wanted = request(number)
        decision = selector.select(wanted, found, board)
        kept, board.rankings = board.rankings, {}
        afresh = selector.select(wanted, found, board)
        board.rankings = kept
        assert decision == afresh
        if decision.chosen is not None:
            board.take(wanted, decision.chosen.place.node_uuid, decision.chosen.allocations)
            placed.append((decision.chosen.place.node_uuid, decision.chosen.allocations))
        gives_back: bool = bool(placed) and data.draw(st.booleans())
        if gives_back:
            board.give_back(wanted, *placed.pop(data.draw(st.integers(0, len(placed) - 1))))


def test_requests_of_another_kind_are_judged_by_themselves() -> None:
    found, board = cloud([Node(host(1)), Node(host(2), vcpus=64)])
    assert names(SELECTOR.select(request(), found, board))[0] == "host-2"
    assert names(SELECTOR.select(request(tried_nodes=frozenset({uuid(2)})), found, board)) == ["host-1"]
    assert names(SELECTOR.select(request(host="host-1"), found, board)) == ["host-1"]
    assert names(SELECTOR.select(request(), found, board))[0] == "host-2"


def test_candidates_without_any_node_leave_nothing() -> None:
    decision = SELECTOR.select(request(), offers(candidates([]), set()), Board({}))
    assert decision.chosen is None
    assert decision.trace.nodes == 0


def test_no_answer_is_taken_for_an_earlier_one() -> None:
    """What is kept of an answer is found by its identity, so none may be forgotten while that is kept."""
    board = Board({uuid(1): host(1)})

    def identity_of_a_new_answer() -> int:
        found, _ = cloud([Node(host(1))])
        assert SELECTOR.select(request(), found, board).choices
        return id(found)

    assert len({identity_of_a_new_answer() for _ in range(100)}) == 100
