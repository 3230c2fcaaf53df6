"""Random requests over the names that `fleets` uses."""

from __future__ import annotations

from hypothesis import strategies as st

from moorage.placement.search.request import GroupPolicy, RequestGroup, SearchRequest
from tests.unit.placement.fleets import AGGREGATES, CLASS_IDS, TRAIT_IDS, uuid

TRAITS = list(TRAIT_IDS)
SEVERAL_AGGREGATES = st.frozensets(st.sampled_from(AGGREGATES), min_size=1, max_size=2)
SEVERAL_TRAITS = st.frozensets(st.sampled_from(TRAITS[:3]), min_size=1, max_size=2)


@st.composite
def groups(draw: st.DrawFn, suffix: str, with_resources: bool = True) -> RequestGroup:
    names = draw(st.lists(st.sampled_from(list(CLASS_IDS)), unique=True, min_size=1, max_size=2))
    resources = {name: draw(st.sampled_from([1, 1, 2, 3])) for name in names} if with_resources else {}
    return RequestGroup(
        suffix=suffix,
        resources=resources,
        required_traits=tuple(draw(st.lists(SEVERAL_TRAITS, max_size=2))) if draw(rarely()) else (),
        forbidden_traits=draw(SEVERAL_TRAITS) if draw(rarely()) else frozenset(),
        member_of=tuple(draw(st.lists(SEVERAL_AGGREGATES, max_size=2))) if draw(rarely()) else (),
        forbidden_aggregates=draw(SEVERAL_AGGREGATES) if draw(rarely()) else frozenset(),
        in_tree=uuid(draw(st.integers(1, 8))) if draw(rarely()) else None,
    )


def rarely() -> st.SearchStrategy[bool]:
    return st.integers(0, 7).map(lambda number: number == 7)


@st.composite
def requests(draw: st.DrawFn) -> SearchRequest:
    """One to four groups; one of the suffixed ones may go without resources."""
    suffixes = draw(st.lists(st.sampled_from(["", "_A", "_B", "_C"]), unique=True, min_size=1))
    bare = draw(st.sampled_from(suffixes)) if len(suffixes) > 1 and draw(rarely()) else ""
    subtree = st.frozensets(st.sampled_from([name for name in suffixes if name] or ["_A"]), min_size=1)
    return SearchRequest(
        groups=tuple(draw(groups(suffix, suffix == "" or suffix != bare)) for suffix in suffixes),
        group_policy=draw(st.sampled_from([None, GroupPolicy.NONE, GroupPolicy.ISOLATE])),
        root_required=frozenset(draw(SEVERAL_TRAITS)) if draw(rarely()) else frozenset(),
        root_forbidden=frozenset(draw(SEVERAL_TRAITS)) if draw(rarely()) else frozenset(),
        same_subtrees=(draw(subtree),) if draw(rarely()) and any(suffixes) else (),
        nested=draw(st.sampled_from([True, True, True, False])),
    )
