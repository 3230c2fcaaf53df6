"""Random writes, as hypothesis strategies: a sequence that fails shrinks to the few that matter."""

from __future__ import annotations

import uuid
from dataclasses import dataclass, replace
from typing import Any

from hypothesis import strategies as st

from tests.support.wire import Wire

NEWEST = 39


def _named(kind: str, count: int) -> tuple[str, ...]:
    return tuple(str(uuid.uuid5(uuid.NAMESPACE_DNS, f"{kind}-{n}")) for n in range(count))


PROVIDERS = _named("provider", 5)
CONSUMERS = _named("consumer", 4)
AGGREGATES = _named("aggregate", 3)
CLASSES = ("VCPU", "DISK_GB", "CUSTOM_A", "CUSTOM_B")
TRAITS = ("HW_CPU_X86_AVX2", "STORAGE_DISK_SSD", "CUSTOM_RED", "CUSTOM_BLUE")
Draw = st.DrawFn


@dataclass(frozen=True)
class Generation:
    """Stands for a provider's generation at the time of sending, or for one that is off."""

    provider: str
    off: int = 0

    def resolve(self, wire: Wire) -> int:
        answer = wire.get(f"/resource_providers/{self.provider}")
        current: int = answer.json()["generation"] if answer.status == 200 else 0
        return current + self.off


@dataclass(frozen=True)
class ConsumerGeneration:
    """The same for a consumer, which has none (null) as long as it has no allocations."""

    consumer: str
    off: int = 0

    def resolve(self, wire: Wire) -> int | None:
        current: int | None = wire.get(f"/allocations/{self.consumer}").json().get("consumer_generation")
        if self.off == 0:
            return current
        return None if current is not None and self.off < 0 else (current or 0) + self.off


@dataclass(frozen=True)
class Write:
    method: str
    path: str
    body: Any = None
    version: int = NEWEST

    def resolved(self, wire: Wire) -> Any:
        return _resolve(self.body, wire)

    @property
    def names_consumers(self) -> bool:
        return self.path.startswith(("/allocations", "/reshaper"))


def _resolve(value: Any, wire: Wire) -> Any:
    if isinstance(value, Generation | ConsumerGeneration):
        return value.resolve(wire)
    if isinstance(value, dict):
        return {key: _resolve(item, wire) for key, item in value.items()}
    if isinstance(value, list):
        return [_resolve(item, wire) for item in value]
    return value


def prelude() -> list[Write]:
    """Something to work on: a tree of two, another root, room on each, names of our own."""
    writes = [Write("PUT", f"/resource_classes/{name}") for name in CLASSES if name.startswith("CUSTOM_")]
    writes += [Write("PUT", f"/traits/{name}") for name in TRAITS if name.startswith("CUSTOM_")]
    for number, provider in enumerate(PROVIDERS[:3]):
        parent = PROVIDERS[0] if number == 1 else None
        body = {"name": f"p{number}", "uuid": provider, "parent_provider_uuid": parent}
        inventories = {name: {"total": 8} for name in CLASSES[:3]}
        writes.append(Write("POST", "/resource_providers", body))
        writes.append(
            Write(
                "PUT",
                f"/resource_providers/{provider}/inventories",
                {"resource_provider_generation": Generation(provider), "inventories": inventories},
            )
        )
    return writes


def seldom(common: Any, *rare: Any) -> st.SearchStrategy[Any]:
    return st.sampled_from([common] * (5 * len(rare)) + list(rare))


generations = st.builds(Generation, st.sampled_from(PROVIDERS), seldom(0, -1, 1))
consumers = st.sampled_from(CONSUMERS)
providers = st.sampled_from([*PROVIDERS[:3], *PROVIDERS])
versions = st.one_of(st.just(NEWEST), st.just(NEWEST), st.integers(0, NEWEST))


@st.composite
def inventory(draw: Draw) -> dict[str, Any]:
    body: dict[str, Any] = {"total": draw(st.sampled_from((8, 8, 1, 4, 100, 0, 2**31 - 1, 2**31)))}
    for name, values in (
        ("reserved", (1, 8, 9, 0, -1)),
        ("min_unit", (1, 2, 0)),
        ("max_unit", (8, 1, 2, 0)),
        ("step_size", (1, 2, 0)),
        ("allocation_ratio", (2.0, 0.5, 16, 0.0, -1.0)),
    ):
        if draw(seldom(False, True)):
            body[name] = draw(st.sampled_from(values))
    return body


@st.composite
def provider_writes(draw: Draw) -> Write:
    provider, version = draw(providers), draw(versions)
    path = f"/resource_providers/{provider}"
    body: dict[str, Any] = {"name": f"p{draw(st.integers(0, 5))}"}
    if version >= 14 and draw(st.booleans()):
        body["parent_provider_uuid"] = draw(st.sampled_from((None, *PROVIDERS)))
    method = draw(st.sampled_from(("POST", "POST", "PUT", "PUT", "DELETE")))
    if method == "POST":
        return Write("POST", "/resource_providers", {**body, "uuid": provider}, version)
    return Write(method, path, body if method == "PUT" else None, version)


@st.composite
def inventory_writes(draw: Draw) -> Write:
    provider, version, name = (
        draw(providers),
        draw(versions),
        draw(st.sampled_from((*CLASSES, "CUSTOM_NONE"))),
    )
    path = f"/resource_providers/{provider}/inventories"
    generation = Generation(provider, draw(seldom(0, -1, 1)))
    way = draw(st.sampled_from(("all", "all", "new", "one", "one", "remove", "clear")))
    if way == "all":
        wanted = draw(st.dictionaries(st.sampled_from(CLASSES), inventory(), max_size=3))
        return Write(
            "PUT", path, {"resource_provider_generation": generation, "inventories": wanted}, version
        )
    if way == "new":
        return Write("POST", path, {**draw(inventory()), "resource_class": name}, version)
    if way == "one":
        body = {**draw(inventory()), "resource_provider_generation": generation}
        return Write("PUT", f"{path}/{name}", body, version)
    return Write("DELETE", f"{path}/{name}" if way == "remove" else path, None, version)


@st.composite
def label_writes(draw: Draw) -> Write:
    """Traits and aggregates of a provider."""
    provider, version = draw(providers), draw(versions)
    path, generation = f"/resource_providers/{provider}", Generation(provider, draw(seldom(0, -1, 1)))
    if draw(st.booleans()):
        if draw(seldom(False, True)):
            return Write("DELETE", f"{path}/traits", None, version)
        traits = draw(st.lists(st.sampled_from((*TRAITS, "CUSTOM_NONE")), max_size=3, unique=True))
        return Write(
            "PUT", f"{path}/traits", {"resource_provider_generation": generation, "traits": traits}, version
        )
    aggregates = draw(st.lists(st.sampled_from(AGGREGATES), max_size=3, unique=True))
    body: Any = aggregates
    if version >= 19:
        body = {"resource_provider_generation": generation, "aggregates": aggregates}
    return Write("PUT", f"{path}/aggregates", body, version)


@st.composite
def claim(draw: Draw, consumer: str, version: int, may_be_empty: bool) -> dict[str, Any]:
    """The body of a claim in the form of its microversion."""
    amounts = st.dictionaries(
        st.sampled_from((*CLASSES[:3], *CLASSES)), st.sampled_from((1, 1, 2, 4, 8, 9)), min_size=1, max_size=2
    )
    wanted = draw(st.dictionaries(providers, amounts, min_size=0 if may_be_empty else 1, max_size=2))
    if version < 12:
        listed = [{"resource_provider": {"uuid": one}, "resources": used} for one, used in wanted.items()]
        body: dict[str, Any] = {"allocations": listed}
    else:
        body = {"allocations": {one: {"resources": used} for one, used in wanted.items()}}
    if version >= 8:
        body["project_id"] = draw(st.sampled_from(("project-a", "project-b")))
        body["user_id"] = draw(st.sampled_from(("user-a", "user-b")))
    if version >= 28:
        body["consumer_generation"] = ConsumerGeneration(consumer, draw(seldom(0, -1, 1)))
    if version >= 34 and wanted and draw(seldom(False, True)):
        body["mappings"] = {"_A": [next(iter(wanted))]}
    if version >= 38:
        body["consumer_type"] = draw(st.sampled_from(("INSTANCE", "MIGRATION")))
    return body


@st.composite
def claim_writes(draw: Draw) -> Write:
    version = draw(versions)
    consumer = draw(consumers)
    way = draw(st.sampled_from(("one", "one", "one", "many", "drop")))
    if way == "drop":
        return Write("DELETE", f"/allocations/{consumer}", None, version)
    if way == "many":
        version = max(version, 13)
        several = draw(st.lists(consumers, min_size=1, max_size=2, unique=True))
        return Write(
            "POST", "/allocations", {one: draw(claim(one, version, True)) for one in several}, version
        )
    return Write("PUT", f"/allocations/{consumer}", draw(claim(consumer, version, version >= 28)), version)


@st.composite
def reshape_writes(draw: Draw) -> Write:
    version = max(draw(versions), 30)
    moved = draw(st.lists(providers, min_size=1, max_size=2, unique=True))
    inventories = {
        provider: {
            "resource_provider_generation": Generation(provider, draw(seldom(0, -1))),
            "inventories": draw(st.dictionaries(st.sampled_from(CLASSES[:3]), inventory(), max_size=3)),
        }
        for provider in moved
    }
    several = draw(st.lists(consumers, max_size=2, unique=True))
    allocations = {one: draw(claim(one, version, True)) for one in several}
    return Write("POST", "/reshaper", {"inventories": inventories, "allocations": allocations}, version)


@st.composite
def name_writes(draw: Draw) -> Write:
    """Resource classes and traits themselves."""
    version = draw(versions)
    name = draw(st.sampled_from((*CLASSES, *TRAITS, "CUSTOM_NEW", "CUSTOM_bad", "NEITHER")))
    if draw(st.booleans()):
        return Write(draw(st.sampled_from(("PUT", "DELETE"))), f"/traits/{name}", None, version)
    method = draw(st.sampled_from(("POST", "PUT", "PUT", "DELETE")))
    if method == "POST":
        return Write(method, "/resource_classes", {"name": name}, version)
    body = (
        {"name": draw(st.sampled_from(("CUSTOM_NEW", "CUSTOM_OTHER")))}
        if version < 7 and method == "PUT"
        else None
    )
    return Write(method, f"/resource_classes/{name}", body, version)


@st.composite
def any_write(draw: Draw) -> Write:
    kinds = (
        *(
            claim_writes(),
            claim_writes(),
            claim_writes(),
            claim_writes(),
            inventory_writes(),
            inventory_writes(),
        ),
        *(provider_writes(), provider_writes(), label_writes(), reshape_writes(), name_writes()),
    )
    write = draw(kinds[draw(st.integers(0, len(kinds) - 1))])
    if draw(st.sampled_from((False,) * 14 + (True,))):
        return replace(write, version=draw(st.integers(0, NEWEST)))
    return write
