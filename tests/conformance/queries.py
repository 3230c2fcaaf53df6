"""Random questions to a fleet, as hypothesis strategies: a failure shrinks to the parameter that matters."""

from __future__ import annotations

from dataclasses import dataclass, replace
from urllib.parse import urlencode

from hypothesis import strategies as st

from tests.conformance.fleets import AGGREGATES, CLASSES, PROJECTS, SHARING, TRAITS, USERS, Fleet, Provider

CANDIDATES = "/allocation_candidates"
PROVIDERS = "/resource_providers"
NOBODY = "5c5a60f8-7de4-4b4c-9f53-bd9ee3e5e0a0"
NEWEST = 39
GROUP_KEYS = ("resources", "required", "member_of", "in_tree")

Pairs = tuple[tuple[str, str], ...]
Draw = st.DrawFn


@dataclass(frozen=True)
class Query:
    path: str
    pairs: Pairs
    version: str

    @property
    def target(self) -> str:
        return f"{self.path}?{urlencode(self.pairs)}" if self.pairs else self.path

    @property
    def limit(self) -> bool:
        return any(key == "limit" for key, _ in self.pairs)

    @property
    def plain_classes(self) -> set[str]:
        """The classes of the group without a suffix."""
        return set[str]().union(*(_classes(value) for key, value in self.pairs if key == "resources"))

    @property
    def granular(self) -> bool:
        return any(key.startswith(GROUP_KEYS) and key not in GROUP_KEYS for key, _ in self.pairs)

    def without_limit(self) -> Query:
        return replace(self, pairs=tuple((key, value) for key, value in self.pairs if key != "limit"))


def versions(oldest: int) -> st.SearchStrategy[int]:
    """Mostly the newest, where most parameters exist; else any, with those where a rule changed in favour."""
    turning_points = [
        n for n in (10, 11, 12, 16, 17, 21, 22, 24, 25, 27, 29, 31, 32, 33, 34, 35, 36, 38) if n >= oldest
    ]
    return st.one_of(
        st.just(NEWEST),
        st.just(NEWEST),
        st.just(36),
        st.sampled_from(turning_points),
        st.integers(oldest, NEWEST),
    )


def chance(*, one_in: int) -> st.SearchStrategy[bool]:
    """False is what a failure shrinks to: a parameter that does not matter goes away."""
    return st.sampled_from([False] * (one_in - 1) + [True])


@st.composite
def resources(draw: Draw, offered: list[str]) -> str:
    """Mostly what is offered where the query aims, and little of it, so that something is found."""
    pool = [*offered, *offered, *offered, draw(st.sampled_from(CLASSES))]
    names = draw(st.lists(st.sampled_from(pool), min_size=1, max_size=3, unique=True))
    return ",".join(f"{name}:{draw(st.sampled_from((1, 1, 1, 2, 2, 3, 4, 8)))}" for name in names)


@st.composite
def trait_values(draw: Draw, version: int, present: list[str]) -> list[str]:
    """Values of `required`: one, or from 1.39 several, some of them any-of."""
    pool = [*present, *present, draw(st.sampled_from((*TRAITS, SHARING)))]
    value = ",".join(draw(st.lists(st.sampled_from(pool), min_size=1, max_size=2, unique=True)))
    if version >= 22 and draw(chance(one_in=3)):
        absent = draw(st.sampled_from((*TRAITS, SHARING)))
        value = f"!{absent}" if draw(st.booleans()) else f"{value},!{absent}"
    values = [value]
    if version >= 39 and draw(chance(one_in=3)):
        values.append(
            "in:" + ",".join(draw(st.lists(st.sampled_from(pool + list(TRAITS)), min_size=1, max_size=3)))
        )
    return values


@st.composite
def member_of_values(draw: Draw, version: int, present: list[str]) -> list[str]:
    one = st.sampled_from([*present, *present, *AGGREGATES])
    several = st.lists(one, min_size=1, max_size=3, unique=True).map(lambda uuids: "in:" + ",".join(uuids))
    value = st.one_of(one, several)
    values = [draw(value)]
    if version >= 24 and draw(chance(one_in=4)):
        values.append(draw(value))
    if version >= 32 and draw(chance(one_in=3)):
        values[-1] = "!" + draw(value)
    return values


@st.composite
def group_pairs(
    draw: Draw, version: int, suffix: str, aim: list[Provider], resourceless: bool = False
) -> list[tuple[str, str]]:
    """The parameters of one request group, aimed at what some providers together offer."""
    pairs: list[tuple[str, str]] = []
    if not resourceless:
        pairs.append((f"resources{suffix}", draw(resources(sorted({n for p in aim for n in p.inventories})))))
    if version >= 17 and draw(chance(one_in=2 if resourceless else 4)):
        traits = sorted({trait for provider in aim for trait in provider.traits})
        pairs += [(f"required{suffix}", value) for value in draw(trait_values(version, traits))]
    if version >= 21 and draw(chance(one_in=5)):
        aggregates = sorted({aggregate for provider in aim for aggregate in provider.aggregates})
        pairs += [(f"member_of{suffix}", value) for value in draw(member_of_values(version, aggregates))]
    if version >= 31 and draw(chance(one_in=8)):
        pairs.append((f"in_tree{suffix}", draw(st.sampled_from([*(p.uuid for p in aim), NOBODY]))))
    return pairs


@st.composite
def candidate_queries(draw: Draw, fleet: Fleet) -> Query:
    version = draw(versions(10))
    tree = fleet.tree_of(draw(st.sampled_from(fleet.providers)))
    suffixes = ("1", "2", "3") if version < 33 else ("1", "_NET", "a-b")
    granular = draw(st.sampled_from((0, 1, 1, 2, 2, 3))) if version >= 25 else 0
    pairs = draw(group_pairs(version, "", tree)) if granular == 0 or draw(st.booleans()) else []
    named, resourceless = list(suffixes[:granular]), 0
    for suffix in named:
        bare = version >= 36 and draw(chance(one_in=5))
        resourceless += bare
        pairs += draw(group_pairs(version, suffix, [draw(st.sampled_from(tree))], bare))
    if granular > 1 or (granular == 1 and draw(st.booleans())):
        pairs.append(("group_policy", draw(st.sampled_from(("none", "isolate")))))
    if version >= 36 and granular and (resourceless or draw(chance(one_in=3))):
        pairs += draw(subtree_pairs(named, must_name_all=resourceless > 0))
    if version >= 35 and draw(chance(one_in=6)):
        pairs.append(("root_required", draw(trait_values(38, tree[0].traits))[0]))
    if version >= 16 and draw(chance(one_in=6)):
        pairs.append(("limit", str(draw(st.integers(1, 12)))))
    return steer_clear(Query(CANDIDATES, tuple(pairs), f"1.{version}"))


@st.composite
def subtree_pairs(draw: Draw, suffixes: list[str], must_name_all: bool) -> list[tuple[str, str]]:
    """A group without resources has to be named by one of them."""
    chosen = suffixes if must_name_all else draw(st.lists(st.sampled_from(suffixes), min_size=1, unique=True))
    return [("same_subtree", ",".join(chosen))]


def steer_clear(query: Query) -> Query:
    """Around a defect of the reference: see docs/decisions/0003-reference-differences.md.

    Where the plain group and a granular one ask for the same class, and `group_policy` is not `none`, it
    adds up amounts in objects that its candidates share, so that they grow from candidate to candidate.
    """
    granular = set[str]().union(
        *(_classes(value) for key, value in query.pairs if key.startswith("resources") and key != "resources")
    )
    if not query.plain_classes & granular:
        return query
    kept = tuple((key, value) for key, value in query.pairs if key != "group_policy")
    return replace(query, pairs=(*kept, ("group_policy", "none")))


def _classes(value: str) -> set[str]:
    return {part.split(":")[0] for part in value.split(",")}


@st.composite
def provider_queries(draw: Draw, fleet: Fleet) -> Query:
    version = draw(versions(4))
    aim = draw(st.sampled_from(fleet.providers))
    pairs: list[tuple[str, str]] = []
    if draw(st.booleans()):
        pairs.append(("resources", draw(resources(sorted(aim.inventories)))))
    if version >= 18 and draw(chance(one_in=3)):
        pairs += [("required", value) for value in draw(trait_values(version, aim.traits))]
    if draw(chance(one_in=3)):
        pairs += [("member_of", value) for value in draw(member_of_values(version, aim.aggregates))]
    if version >= 14 and draw(chance(one_in=4)):
        pairs.append(("in_tree", draw(st.sampled_from([aim.uuid, *fleet.uuids, NOBODY]))))
    if draw(chance(one_in=8)):
        pairs.append(("name", draw(st.sampled_from([aim.name, "nobody"]))))
    if draw(chance(one_in=8)):
        pairs.append(("uuid", draw(st.sampled_from([aim.uuid, NOBODY]))))
    return Query(PROVIDERS, tuple(pairs), f"1.{version}")


@st.composite
def lookups(draw: Draw, fleet: Fleet) -> Query:
    """The plain reads: a provider and its parts, a consumer, usage by project, names."""
    version = draw(st.integers(0, NEWEST))
    provider = draw(st.sampled_from([*fleet.uuids, NOBODY]))
    part = draw(st.sampled_from(("", "/inventories", "/usages", "/traits", "/aggregates", "/allocations")))
    consumer = draw(st.sampled_from([*fleet.consumers, NOBODY]))
    name = draw(st.sampled_from(CLASSES))
    path, pairs = draw(
        st.sampled_from(
            (
                (f"{PROVIDERS}/{provider}{part}", ()),
                (f"{PROVIDERS}/{provider}{part}", ()),
                (f"{PROVIDERS}/{provider}/inventories/{name}", ()),
                (f"/allocations/{consumer}", ()),
                ("/usages", draw(usage_pairs(version))),
                (
                    "/traits",
                    draw(st.sampled_from(((), (("associated", "true"),), (("associated", "false"),)))),
                ),
                (
                    "/traits",
                    draw(st.sampled_from(((("name", "startswith:CUSTOM"),), (("name", "in:CUSTOM_RED,X"),)))),
                ),
                (f"/traits/{draw(st.sampled_from((*TRAITS, 'CUSTOM_NONE')))}", ()),
                ("/resource_classes", ()),
                (f"/resource_classes/{name}", ()),
            )
        )
    )
    return Query(path, pairs, f"1.{version}")


@st.composite
def usage_pairs(draw: Draw, version: int) -> Pairs:
    pairs = [("project_id", draw(st.sampled_from((*PROJECTS, "nobody"))))]
    if draw(st.booleans()):
        pairs.append(("user_id", draw(st.sampled_from((*USERS, "nobody")))))
    if version >= 38 and draw(st.booleans()):
        pairs.append(
            ("consumer_type", draw(st.sampled_from(("INSTANCE", "MIGRATION", "all", "unknown", "NONE"))))
        )
    return tuple(pairs)


SPOILERS = (
    *(
        "",
        ",",
        ":",
        "VCPU",
        "VCPU:",
        "VCPU:0",
        "VCPU:-1",
        "VCPU:x",
        "VCPU:1.5",
        "VCPU:1,VCPU:2",
        "vcpu:1",
        ":1",
    ),
    *(
        "CUSTOM_NOWHERE:1",
        "CUSTOM_NOWHERE",
        "!CUSTOM_NOWHERE",
        "!",
        "!!CUSTOM_RED",
        "in:",
        "in:,",
        "in:!CUSTOM_RED",
    ),
    *(
        "not-a-uuid",
        NOBODY,
        NOBODY.upper(),
        NOBODY.replace("-", ""),
        f"!{NOBODY}",
        f"in:{NOBODY}",
        f"{NOBODY},{NOBODY}",
    ),
    *(
        "0",
        "-1",
        "1",
        "none",
        "isolate",
        "NONE",
        "1,2",
        "_NET",
        "CUSTOM_RED,!CUSTOM_RED",
        " CUSTOM_RED ",
        "\u2603",
    ),
)
STRANGE_KEYS = (
    *(
        "resources",
        "resources1",
        "resources0",
        "resources01",
        "resources_A",
        "resources.",
        "required1",
        "member_of2",
    ),
    *(
        "in_tree",
        "in_tree1",
        "group_policy",
        "same_subtree",
        "root_required",
        "limit",
        "name",
        "uuid",
        "cheese",
        "",
    ),
)


@st.composite
def spoiled(draw: Draw, good: st.SearchStrategy[Query]) -> Query:
    """A query with one thing wrong or out of its time; what the reference says to it is the rule."""
    query = draw(good)
    pairs = list(query.pairs)
    way = draw(st.sampled_from(("value", "key", "extra", "again", "version")))
    if way == "version" or not pairs:
        query = replace(query, version=f"1.{draw(st.integers(0, NEWEST))}")
    elif way == "extra":
        pairs.append((draw(st.sampled_from(STRANGE_KEYS)), draw(st.sampled_from(SPOILERS))))
    else:
        at = draw(st.integers(0, len(pairs) - 1))
        key, value = pairs[at]
        if way == "value":
            pairs[at] = (key, draw(st.sampled_from(SPOILERS)))
        elif way == "key":
            pairs[at] = (draw(st.sampled_from(STRANGE_KEYS)), value)
        else:
            pairs.append((key, value))
    return steer_clear(replace(query, pairs=tuple(pairs)))


@st.composite
def any_query(draw: Draw, fleet: Fleet) -> Query:
    """Candidates are where the rules are; the rest keeps them company."""
    candidates, providers = candidate_queries(fleet), provider_queries(fleet)
    kinds = (lookups(fleet), providers, *[candidates] * 6, spoiled(candidates), spoiled(providers))
    return draw(kinds[draw(st.integers(0, len(kinds) - 1))])
