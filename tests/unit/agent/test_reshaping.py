from __future__ import annotations

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from moorage.agent import reshaping
from moorage.drivers.contract import Holding
from moorage.placement.client.contract import ConsumerClaim, ProviderInventory, TreeProvider

CLASSES = ("PCPU", "CUSTOM_PAGES")
PROVIDERS = ("root", "a", "b", "c")

totals = st.dictionaries(
    st.sampled_from(PROVIDERS),
    st.dictionaries(st.sampled_from(CLASSES), st.integers(1, 12), max_size=2),
    max_size=4,
)
amounts = st.lists(
    st.tuples(st.sampled_from(PROVIDERS), st.sampled_from(CLASSES), st.integers(1, 5)), max_size=10
)


def _inventories(of: dict[str, dict[str, int]]) -> dict[str, dict[str, ProviderInventory]]:
    return {
        uuid: {name: ProviderInventory(total) for name, total in each.items()} for uuid, each in of.items()
    }


def _used(claims: list[ConsumerClaim]) -> Counter[tuple[str, str]]:
    return Counter(
        {
            (uuid, name): sum(claim.allocations.get(uuid, {}).get(name, 0) for claim in claims)
            for uuid in PROVIDERS
            for name in CLASSES
        }
    )


@given(totals, totals, amounts, amounts)
def test_nothing_is_lost_and_nothing_is_given_twice(
    before: dict[str, dict[str, int]],
    after: dict[str, dict[str, int]],
    taken: list[tuple[str, str, int]],
    said: list[tuple[str, str, int]],
) -> None:
    consumers = [
        ConsumerClaim(str(number), {uuid: {name: amount}}, "p", "u", consumer_generation=1)
        for number, (uuid, name, amount) in enumerate(taken)
        if name in before.get(uuid, {})
    ]
    holdings = [
        Holding(str(number), uuid, {name: amount}) for number, (uuid, name, amount) in enumerate(said)
    ]
    found = [TreeProvider(uuid, uuid, 1, None, each) for uuid, each in _inventories(before).items()]
    wanted = _inventories(after)
    plan = reshaping.plan(found, wanted, consumers, holdings)
    changed = {claim.consumer_uuid: claim for claim in plan.claims}
    afterwards = [changed.get(claim.consumer_uuid, claim) for claim in consumers]
    for old, new in zip(consumers, afterwards, strict=True):
        for name in CLASSES:
            assert _total(old, name) == _total(new, name)
    used_before, used_after = _used(consumers), _used(afterwards)
    for (uuid, name), used in used_after.items():
        offered = after.get(uuid, {}).get(name)
        if offered is not None:
            assert used <= max(offered, used_before[uuid, name]), "no more than there is"
        elif used:
            assert name in plan.kept[uuid], "what stays is known to stay"


def _total(claim: ConsumerClaim, name: str) -> int:
    return sum(each.get(name, 0) for each in claim.allocations.values())


def test_what_a_server_has_of_a_cell_goes_to_that_cell_together() -> None:
    found = [
        TreeProvider("root", "root", 1, None, _inventories({"root": {"PCPU": 8, "CUSTOM_PAGES": 8}})["root"])
    ]
    wanted = _inventories({"a": {"PCPU": 4, "CUSTOM_PAGES": 4}, "b": {"PCPU": 4, "CUSTOM_PAGES": 4}})
    claims = [
        ConsumerClaim(name, {"root": {"PCPU": 3, "CUSTOM_PAGES": 2}}, "p", "u", consumer_generation=1)
        for name in ("one", "two")
    ]
    plan = reshaping.plan(found, wanted, claims, [])
    assert [set(claim.allocations) for claim in plan.claims] == [{"a"}, {"b"}]
