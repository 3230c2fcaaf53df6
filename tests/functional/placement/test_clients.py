"""What every client of Placement does alike, whichever way it goes and whichever service answers."""

from __future__ import annotations

import pytest

from moorage.placement.client.contract import (
    ConsumerChangedError,
    ConsumerClaim,
    PlacementClient,
    PlacementRefusedError,
    ReportedProvider,
)
from tests.functional.placement.fleet import EAST, WEST, claim, node, node_uuid, server_uuid

TWO_VCPUS = [("limit", "10"), ("resources", "VCPU:2,MEMORY_MB:1024")]


def nodes_found(client: PlacementClient, query: list[tuple[str, str]]) -> set[str]:
    found = client.candidates(query)
    return {uuid for request in found.allocation_requests for uuid in request.allocations}


def test_candidates_are_typed_and_summarised(client: PlacementClient) -> None:
    client.report([node(1, traits=["HW_CPU_X86_AVX2"]), node(2)])
    found = client.candidates([*TWO_VCPUS, ("required", "HW_CPU_X86_AVX2")])
    (request,) = found.allocation_requests
    assert request.allocations == {node_uuid(1): {"resources": {"VCPU": 2, "MEMORY_MB": 1024}}}
    assert request.mappings == {"": [node_uuid(1)]}
    summary = found.provider_summaries[node_uuid(1)]
    assert summary.resources["MEMORY_MB"] == {"capacity": 15872, "used": 0}
    assert summary.traits == ["HW_CPU_X86_AVX2"]
    assert summary.root_provider_uuid == node_uuid(1)
    assert summary.parent_provider_uuid is None


def test_candidates_keep_to_the_limit(client: PlacementClient) -> None:
    client.report([node(number) for number in range(1, 6)])
    assert len(client.candidates([("limit", "3"), ("resources", "VCPU:1")]).allocation_requests) == 3


def test_a_query_that_makes_no_sense_is_refused(client: PlacementClient) -> None:
    client.report([node(1)])
    for query in ([("resources", "VCPU:none")], [("resources", "CUSTOM_UNHEARD_OF:1")]):
        with pytest.raises(PlacementRefusedError) as caught:
            client.candidates([("limit", "1"), *query])
        assert caught.value.status == 400
        assert caught.value.detail


def test_summaries_follow_what_is_used(client: PlacementClient) -> None:
    client.report([node(1)])
    assert client.candidates(TWO_VCPUS).provider_summaries[node_uuid(1)].resources["VCPU"]["used"] == 0
    assert client.claim([claim(1, on=1)]) == [None]
    assert client.candidates(TWO_VCPUS).provider_summaries[node_uuid(1)].resources["VCPU"]["used"] == 2


def test_each_claim_is_decided_on_its_own_merits(client: PlacementClient) -> None:
    client.report([node(1, vcpus=4), node(2, vcpus=4)])
    outcomes = client.claim([claim(1, on=1), claim(2, on=1, vcpus=3), claim(3, on=1), claim(4, on=2)])
    assert [error is None for error in outcomes] == [True, False, True, True]
    refused = outcomes[1]
    assert refused is not None
    assert refused.status == 409
    assert "VCPU" in refused.detail
    assert client.allocations(server_uuid(2)) == ({}, None)
    assert client.allocations(server_uuid(3)) == ({node_uuid(1): {"VCPU": 2, "MEMORY_MB": 1024}}, 1)


def test_a_consumer_is_not_claimed_twice_by_mistake(client: PlacementClient) -> None:
    client.report([node(1), node(2)])
    assert client.claim([claim(1, on=1)]) == [None]
    (again,) = client.claim([claim(1, on=2)])
    assert again is not None
    assert again.status == 409
    assert client.claim([claim(1, on=2, generation=1)]) == [None]
    assert client.allocations(server_uuid(1))[0].keys() == {node_uuid(2)}


@pytest.mark.parametrize("seen", [None, 7])
def test_who_saw_another_generation_is_told_so(client: PlacementClient, seen: int | None) -> None:
    client.report([node(1)])
    assert client.claim([claim(1, on=1)]) == [None]
    (alone,) = client.claim([claim(1, on=1, vcpus=1, generation=seen)])
    together = client.claim_together([claim(2, on=1), claim(1, on=1, vcpus=1, generation=seen)])
    assert isinstance(alone, ConsumerChangedError)
    assert isinstance(together, ConsumerChangedError)
    assert alone.status == together.status == 409


def test_who_saw_a_consumer_that_is_gone_is_told_so(client: PlacementClient) -> None:
    client.report([node(1)])
    (refusal,) = client.claim([claim(1, on=1, generation=1)])
    assert isinstance(refusal, ConsumerChangedError)


def test_a_node_without_room_is_no_change_of_the_consumer(client: PlacementClient) -> None:
    client.report([node(1, vcpus=1)])
    (refusal,) = client.claim([claim(1, on=1)])
    assert isinstance(refusal, PlacementRefusedError)
    assert not isinstance(refusal, ConsumerChangedError)


def test_a_provider_that_is_gone_refuses_the_claim(client: PlacementClient) -> None:
    client.report([node(1)])
    (refused,) = client.claim([claim(1, on=7)])
    assert refused is not None
    assert refused.status == 400


def test_release_drops_everything_and_may_come_again(client: PlacementClient) -> None:
    client.report([node(1)])
    client.claim([claim(1, on=1), claim(2, on=1)])
    client.release([server_uuid(1), server_uuid(2), server_uuid(9)])
    client.release([server_uuid(1)])
    assert client.allocations(server_uuid(1)) == ({}, None)
    assert client.candidates(TWO_VCPUS).provider_summaries[node_uuid(1)].resources["VCPU"]["used"] == 0


def test_empty_allocations_release(client: PlacementClient) -> None:
    client.report([node(1)])
    client.claim([claim(1, on=1)])
    empty = ConsumerClaim(server_uuid(1), {}, "project", "user", consumer_generation=1)
    assert client.claim([empty]) == [None]
    assert client.allocations(server_uuid(1)) == ({}, None)


def test_a_report_makes_providers_what_they_are_said_to_be(client: PlacementClient) -> None:
    client.report([node(1, traits=["CUSTOM_RED"], aggregates=[EAST])])
    red, east = ("required", "CUSTOM_RED"), ("member_of", EAST)
    assert nodes_found(client, [*TWO_VCPUS, red, east]) == {node_uuid(1)}
    client.report([node(1, vcpus=1, traits=[])])
    assert nodes_found(client, [*TWO_VCPUS, east]) == set()
    assert nodes_found(client, [("limit", "1"), ("resources", "VCPU:1"), east]) == {node_uuid(1)}
    assert nodes_found(client, [("limit", "1"), ("resources", "VCPU:1"), red]) == set()


def test_a_report_may_change_some_traits_only(client: PlacementClient) -> None:
    client.report([node(1, traits=["CUSTOM_RED", "CUSTOM_BLUE"])])
    change = ReportedProvider(
        node_uuid(1),
        "node-1",
        add_traits=["CUSTOM_GREEN"],
        remove_traits=["CUSTOM_BLUE", "CUSTOM_UNHEARD_OF"],
    )
    for _ in range(2):
        client.report([change])
        found = client.candidates([("resources", "VCPU:1"), ("limit", "5")])
        assert set(found.provider_summaries[node_uuid(1)].traits) == {"CUSTOM_RED", "CUSTOM_GREEN"}


def test_what_a_report_leaves_out_stays(client: PlacementClient) -> None:
    client.report([node(1, traits=["CUSTOM_RED"], aggregates=[EAST])])
    client.report([ReportedProvider(node_uuid(1), "node-1")])
    query = [*TWO_VCPUS, ("required", "CUSTOM_RED"), ("member_of", EAST)]
    assert nodes_found(client, query) == {node_uuid(1)}


def test_a_report_may_name_children_before_their_parents(client: PlacementClient) -> None:
    child = ReportedProvider(
        node_uuid(2), "node-1-gpu", {"CUSTOM_GPU": {"total": 4}}, parent_provider_uuid=node_uuid(1)
    )
    client.report([child, node(1)])
    found = client.candidates([("limit", "1"), ("resources", "VCPU:1"), ("resources_GPU", "CUSTOM_GPU:1")])
    assert found.allocation_requests[0].mappings == {"": [node_uuid(1)], "_GPU": [node_uuid(2)]}
    assert found.provider_summaries[node_uuid(2)].root_provider_uuid == node_uuid(1)
    assert found.provider_summaries[node_uuid(2)].parent_provider_uuid == node_uuid(1)


def test_a_report_follows_a_new_name(client: PlacementClient) -> None:
    client.report([node(1)])
    client.report([ReportedProvider(node_uuid(1), "renamed")])
    client.report([ReportedProvider(node_uuid(2), "node-1")])


def test_an_inventory_in_use_is_not_taken_away(client: PlacementClient) -> None:
    client.report([node(1)])
    client.claim([claim(1, on=1)])
    with pytest.raises(PlacementRefusedError) as caught:
        client.report([ReportedProvider(node_uuid(1), "node-1", inventories={"VCPU": {"total": 8}})])
    assert caught.value.status == 409


def test_a_provider_is_deleted_unless_it_is_in_use(client: PlacementClient) -> None:
    client.report([node(1)])
    client.claim([claim(1, on=1)])
    with pytest.raises(PlacementRefusedError) as caught:
        client.delete_provider(node_uuid(1))
    assert caught.value.status == 409
    client.release([server_uuid(1)])
    client.delete_provider(node_uuid(1))
    client.delete_provider(node_uuid(1))
    assert nodes_found(client, TWO_VCPUS) == set()


@pytest.mark.parametrize("client", ["local_on_sqlite", "session_to_moorage"], indirect=True)
def test_why_names_the_condition_and_the_nearest_miss(client: PlacementClient) -> None:
    client.report([node(1), node(2, vcpus=6)])
    told = client.why([("limit", "10"), ("resources", "VCPU:20")])
    assert told is not None
    assert told["trees_left"] == 0
    assert told["excludes_most"]["subject"] == "VCPU:20"
    nearest = told["near_misses"][0]
    assert nearest["name"] == "node-1"
    assert nearest["failures"][0]["sentence"] == "VCPU: needs 20, free 8 of 8"


def test_the_reference_can_not_tell_why(session_to_reference: PlacementClient) -> None:
    assert session_to_reference.why([("limit", "10"), ("resources", "VCPU:20")]) is None


def test_candidates_stay_in_the_tree_asked_for(client: PlacementClient) -> None:
    client.report([node(number) for number in range(1, 13)])
    query = [("limit", "1"), ("resources", "VCPU:1"), ("in_tree", node_uuid(9))]
    assert nodes_found(client, query) == {node_uuid(9)}
    assert nodes_found(client, [*query[:2], ("in_tree", node_uuid(77))]) == set()


def test_candidates_stay_out_of_forbidden_aggregates(client: PlacementClient) -> None:
    apart = [node(number, vcpus=64, aggregates=[EAST, WEST][number % 2 :]) for number in range(1, 11)]
    client.report([*apart, node(11)])
    query = [("limit", "2"), ("resources", "VCPU:1"), ("member_of", f"!in:{EAST},{WEST}")]
    assert nodes_found(client, query) == {node_uuid(11)}
    assert len(nodes_found(client, [*query[:2], ("member_of", f"!{EAST}")])) == 2


def test_a_tree_is_forbidden_with_its_root(client: PlacementClient) -> None:
    gpu = ReportedProvider(
        node_uuid(2), "node-1-gpu", {"CUSTOM_GPU": {"total": 4}}, parent_provider_uuid=node_uuid(1)
    )
    client.report([node(1, aggregates=[EAST]), gpu])
    query = [("limit", "5"), ("resources", "CUSTOM_GPU:1")]
    assert nodes_found(client, query) == {node_uuid(2)}
    assert nodes_found(client, [*query, ("member_of", f"!in:{EAST}")]) == set()


def test_roots_may_have_to_have_traits_and_not_to_have_others(client: PlacementClient) -> None:
    disabled = [node(number, vcpus=64, traits=["COMPUTE_STATUS_DISABLED"]) for number in range(1, 11)]
    client.report([*disabled, node(11), node(12, traits=["HW_CPU_X86_AVX2"])])
    query = [("limit", "2"), ("resources", "VCPU:1")]
    enabled = ("root_required", "!COMPUTE_STATUS_DISABLED")
    assert nodes_found(client, [*query, enabled]) == {node_uuid(11), node_uuid(12)}
    both = ("root_required", "HW_CPU_X86_AVX2,!COMPUTE_STATUS_DISABLED")
    assert nodes_found(client, [*query, both]) == {node_uuid(12)}


def test_named_groups_keep_apart_from_numbered_ones(client: PlacementClient) -> None:
    gpus = [
        ReportedProvider(
            node_uuid(number),
            f"gpu-{number}",
            {"CUSTOM_GPU": {"total": 1}},
            parent_provider_uuid=node_uuid(1),
        )
        for number in (2, 3)
    ]
    client.report([node(1), *gpus])
    query = [("limit", "5"), ("resources1", "CUSTOM_GPU:1"), ("resources_B", "CUSTOM_GPU:1")]
    assert nodes_found(client, [*query, ("group_policy", "isolate")]) == {node_uuid(2), node_uuid(3)}


def test_a_consumer_moves_from_one_node_to_another_in_one_claim(client: PlacementClient) -> None:
    client.report([node(1), node(2)])
    assert client.claim([claim(1, on=1), claim(2, on=1)]) == [None, None]
    both = [claim(1, on=2, generation=1), claim(2, on=2, generation=7)]
    moved, stale = client.claim(both)
    assert moved is None
    assert stale is not None
    assert stale.status == 409
    assert client.allocations(server_uuid(1)) == ({node_uuid(2): {"VCPU": 2, "MEMORY_MB": 1024}}, 2)


def test_a_report_takes_a_provider_out_of_its_aggregates(client: PlacementClient) -> None:
    client.report([node(1, aggregates=[EAST, WEST])])
    client.report([ReportedProvider(node_uuid(1), "node-1", aggregates=[WEST])])
    one = [("limit", "1"), ("resources", "VCPU:1")]
    assert nodes_found(client, [*one, ("member_of", EAST)]) == set()
    assert nodes_found(client, [*one, ("member_of", WEST)]) == {node_uuid(1)}
    client.report([ReportedProvider(node_uuid(1), "node-1", aggregates=[])])
    assert nodes_found(client, [*one, ("member_of", WEST)]) == set()


def test_claims_come_true_together_or_not_at_all(client: PlacementClient) -> None:
    client.report([node(1, vcpus=4), node(2, vcpus=4)])
    assert client.claim_together([claim(1, on=1), claim(2, on=2)]) is None
    refused = client.claim_together([claim(3, on=1), claim(4, on=2, vcpus=3)])
    assert refused is not None
    assert refused.status == 409
    assert client.allocations(server_uuid(3)) == ({}, None)


def test_a_tree_is_asked_for_its_traits(client: PlacementClient) -> None:
    gpu = ReportedProvider(
        node_uuid(2), "gpu", {"VGPU": {"total": 1}}, ["CUSTOM_FAST"], parent_provider_uuid=node_uuid(1)
    )
    client.report([node(1, traits=["COMPUTE_NODE"]), gpu])
    assert client.tree_has(node_uuid(1), ["CUSTOM_FAST"])
    assert client.tree_has(node_uuid(1), ["COMPUTE_NODE"])
    assert not client.tree_has(node_uuid(1), ["COMPUTE_NODE", "CUSTOM_FAST"])
    assert client.tree_has(node_uuid(1), [])
    assert not client.tree_has(node_uuid(3), [])


def test_a_provider_is_among_those_of_aggregates_whatever_is_used_of_it(client: PlacementClient) -> None:
    gpu = ReportedProvider(node_uuid(2), "gpu", parent_provider_uuid=node_uuid(1))
    client.report([node(1, vcpus=4, aggregates=[EAST]), gpu, node(3)])
    assert client.claim([claim(1, on=1, vcpus=4)]) == [None]
    assert client.is_among(node_uuid(1), [f"in:{EAST},{WEST}"])
    assert client.is_among(node_uuid(1), [f"in:{EAST}", f"!in:{WEST}"])
    assert not client.is_among(node_uuid(1), [f"in:{EAST}", f"!in:{WEST},{EAST}"])
    assert not client.is_among(node_uuid(1), [f"in:{WEST}"])
    assert client.is_among(node_uuid(3), [f"!in:{EAST}", f"!in:{WEST}"])
    assert client.is_among(node_uuid(1), [])
    assert not client.is_among(node_uuid(4), [])


def test_one_trait_is_given_and_taken_and_others_stay(client: PlacementClient) -> None:
    client.report([node(1, traits=["COMPUTE_NODE"]), node(2)])
    both = [node_uuid(1), node_uuid(2)]
    for present in (True, True, False, False):
        client.set_trait([*both, node_uuid(3)], "COMPUTE_STATUS_DISABLED", present=present)
        assert [client.tree_has(uuid, ["COMPUTE_STATUS_DISABLED"]) for uuid in both] == [present, present]
        assert client.tree_has(node_uuid(1), ["COMPUTE_NODE"])
        assert not client.tree_has(node_uuid(3), [])
    client.set_trait([], "COMPUTE_STATUS_DISABLED", present=True)


def test_claims_that_belong_together_come_true_together(client: PlacementClient) -> None:
    client.report([node(1, vcpus=4), node(2, vcpus=4)])
    assert client.claim([claim(1, on=1, vcpus=3)]) == [None]
    held, generation = client.allocations(server_uuid(1))
    handed = ConsumerClaim(server_uuid(9), held, "p", "u", consumer_type="MIGRATION")
    too_much = claim(1, on=2, vcpus=5, generation=generation)
    refusal = client.claim_together([too_much, handed])
    assert refusal is not None
    assert refusal.status == 409
    assert client.allocations(server_uuid(1)) == (held, generation)
    assert client.allocations(server_uuid(9)) == ({}, None)
    assert client.claim_together([claim(1, on=2, vcpus=3, generation=generation), handed]) is None
    assert client.allocations(server_uuid(9))[0] == held
    assert client.allocations(server_uuid(1))[0].keys() == {node_uuid(2)}


def test_a_claim_goes_back_to_where_it_was_even_if_there_is_no_other_room(client: PlacementClient) -> None:
    client.report([node(1, vcpus=4), node(2, vcpus=4)])
    assert client.claim([claim(1, on=1, vcpus=4)]) == [None]
    held, generation = client.allocations(server_uuid(1))
    moved = [
        claim(1, on=2, vcpus=4, generation=generation),
        ConsumerClaim(server_uuid(9), held, "p", "u", consumer_type="MIGRATION"),
    ]
    assert client.claim_together(moved) is None
    of_server, of_migration = client.allocations(server_uuid(1))[1], client.allocations(server_uuid(9))[1]
    back = [
        ConsumerClaim(server_uuid(9), {}, "p", "u", "MIGRATION", of_migration),
        ConsumerClaim(server_uuid(1), held, "p", "u", consumer_generation=of_server),
    ]
    assert client.claim_together(back) is None
    assert client.allocations(server_uuid(1))[0] == held
    assert client.allocations(server_uuid(9)) == ({}, None)


def test_a_tree_is_known_by_its_traits_whatever_is_used_of_it(client: PlacementClient) -> None:
    client.report([node(1, vcpus=4, traits=["HW_CPU_X86_AVX2"]), node(2)])
    assert client.claim([claim(1, on=1, vcpus=4)]) == [None]
    assert client.tree_has(node_uuid(1), ["HW_CPU_X86_AVX2"])
    assert not client.tree_has(node_uuid(2), ["HW_CPU_X86_AVX2"])
    assert client.tree_has(node_uuid(2), [])
    assert not client.tree_has(node_uuid(3), [])


def test_whole_trees_are_summed_up(client: PlacementClient) -> None:
    """What children have is the tree's, what is reserved is nobody's; who is full is told of, too."""
    child = ReportedProvider(node_uuid(8), "cell", {"VCPU": {"total": 4}}, parent_provider_uuid=node_uuid(1))
    client.report([node(1, vcpus=4), child, node(2, vcpus=2)])
    assert client.claim([claim(1, on=1), claim(2, on=2)]) == [None, None]
    found = client.tree_usages([node_uuid(1), node_uuid(2), node_uuid(9)])
    assert found.keys() == {node_uuid(1), node_uuid(2)}
    assert (found[node_uuid(1)].capacity["VCPU"], found[node_uuid(1)].used["VCPU"]) == (8, 2)
    assert (found[node_uuid(2)].capacity["VCPU"], found[node_uuid(2)].used["VCPU"]) == (2, 2)
    assert found[node_uuid(1)].capacity["MEMORY_MB"] == 15872
