"""Requests that nobody should send: valid ones with something broken in them, and plain noise."""

from __future__ import annotations

import json
import uuid
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import quote, urlencode

from hypothesis import strategies as st

from moorage.placement.api.routes import ROUTES

METHODS = ("GET", "PUT", "POST", "DELETE", "PATCH", "HEAD", "OPTIONS")
PROVIDER = "4e8e5957-649f-477b-9e5b-f1f75b21c03c"
CONSUMER = "d9f4a9a0-6a0a-4e09-9a3f-2f1f7a3a8d11"
ENDPOINTS = tuple((route.path, method) for route in ROUTES for method in route.methods)
Draw = st.DrawFn

_INVENTORY = {
    "total": 8,
    "reserved": 0,
    "min_unit": 1,
    "max_unit": 8,
    "step_size": 1,
    "allocation_ratio": 1.0,
}
_CLAIM = {
    "allocations": {PROVIDER: {"resources": {"VCPU": 1}}},
    "project_id": "p",
    "user_id": "u",
    "consumer_generation": None,
    "consumer_type": "INSTANCE",
    "mappings": {"_A": [PROVIDER]},
}
_SET = {"resource_provider_generation": 1, "inventories": {"VCPU": _INVENTORY}}
_NEW = {"name": "a-name", "uuid": str(uuid.uuid4()), "parent_provider_uuid": PROVIDER}
_REPORT = {"uuid": PROVIDER, "name": "n", "inventories": {"VCPU": _INVENTORY}, "traits": [], "aggregates": []}
BODIES: dict[str, Any] = {
    "/resource_providers": _NEW,
    "/resource_providers/{uuid}": {"name": "a-name", "parent_provider_uuid": None},
    "/resource_providers/{uuid}/inventories": _SET,
    "/resource_providers/{uuid}/inventories/{resource_class}": {
        **_INVENTORY,
        "resource_provider_generation": 1,
    },
    "/resource_providers/{uuid}/traits": {"resource_provider_generation": 1, "traits": ["HW_CPU_X86_AVX2"]},
    "/resource_providers/{uuid}/aggregates": {"resource_provider_generation": 1, "aggregates": [CONSUMER]},
    "/resource_classes": {"name": "CUSTOM_X"},
    "/allocations": {CONSUMER: _CLAIM},
    "/allocations/{consumer_uuid}": _CLAIM,
    "/reshaper": {"inventories": {PROVIDER: _SET}, "allocations": {CONSUMER: _CLAIM}},
    "/moorage/v1/providers": {"providers": [_REPORT]},
    "/moorage/v1/aggregates/members": {"aggregates": [CONSUMER]},
    "/moorage/v1/aggregates/providers": {
        "providers": [{"uuid": PROVIDER, "generation": 1, "aggregates": [CONSUMER]}]
    },
}
"""A valid body for each path that takes one."""

PARTS = {
    "uuid": (PROVIDER, PROVIDER, PROVIDER, PROVIDER, CONSUMER),
    "consumer_uuid": (CONSUMER, CONSUMER, CONSUMER, PROVIDER),
    "resource_class": ("VCPU", "VCPU", "DISK_GB", "CUSTOM_NONE"),
    "name": ("CUSTOM_X", "HW_CPU_X86_AVX2", "VCPU", "CUSTOM_NONE"),
}
ODD_PARTS = ("x", "\u2603", "a" * 300, "%", PROVIDER.upper(), PROVIDER.replace("-", ""), "\x00")

ODD_VALUES: tuple[Any, ...] = (
    *(None, True, False, 0, -1, 1, 2**31, 2**63, 2**64, -(2**63) - 1, 10**400, 1.5, 1e308, -0.0),
    *(
        "",
        " ",
        "x",
        "\x00",
        "\ud83d\ude00",
        "a" * 300,
        "a" * 70000,
        "CUSTOM_\u00c4",
        "../..",
        "%00",
        "'; DROP TABLE x",
    ),
    *([], {}, [[]], [None], {"": None}, {"x": {}}, PROVIDER, PROVIDER.upper(), [PROVIDER, PROVIDER]),
)
ODD_BYTES = (
    *(
        b"",
        b" ",
        b"{",
        b"[]",
        b"null",
        b'"',
        b"\x00",
        b"\xff\xfe",
        b"{}" * 2,
        b'{"a":1,"a":2}',
        b"NaN",
        b"Infinity",
    ),
    *(
        b'{"total": 1e999}',
        b'{"name": "\\ud800"}',
        b"[" * 5000,
        b'{"a":' * 5000,
        b"\xef\xbb\xbf{}",
        b"1" * 5000,
    ),
)


@dataclass(frozen=True)
class Junk:
    method: str
    target: str
    body: bytes = b""
    headers: dict[str, str] = field(default_factory=dict)


def positions(value: Any, at: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Every place in a JSON document, the whole included."""
    found = [at]
    if isinstance(value, dict):
        for key, item in value.items():
            found += positions(item, (*at, key))
    elif isinstance(value, list):
        for number, item in enumerate(value):
            found += positions(item, (*at, number))
    return found


def replaced(value: Any, at: tuple[Any, ...], by: Any) -> Any:
    if not at:
        return by
    copy = dict(value) if isinstance(value, dict) else list(value)
    copy[at[0]] = replaced(copy[at[0]], at[1:], by)
    return copy


def renamed(value: Any, at: tuple[Any, ...], name: str) -> Any:
    """The same document with one key called otherwise."""
    if not at or not isinstance(value, dict):
        return value
    if len(at) == 1:
        return {(name if key == at[0] else key): item for key, item in value.items()}
    return {**value, at[0]: renamed(value[at[0]], at[1:], name)}


def seldom(one_in: int) -> st.SearchStrategy[bool]:
    return st.sampled_from((False,) * (one_in - 1) + (True,))


@st.composite
def bodies(draw: Draw, path: str) -> bytes:
    """Mostly the right one for the path, with one or two things in it that are odd."""
    if draw(seldom(5)):
        return draw(st.one_of(st.sampled_from(ODD_BYTES), st.binary(max_size=200)))
    body = BODIES.get(path)
    if body is None or draw(seldom(8)):
        body = draw(st.sampled_from(list(BODIES.values())))
    for _ in range(draw(st.sampled_from((1, 1, 1, 2, 0)))):
        at = draw(st.sampled_from(positions(body)))
        odd = draw(st.one_of(st.sampled_from(ODD_VALUES), st.text(max_size=20), st.integers()))
        body = renamed(body, at, str(odd)) if draw(seldom(4)) else replaced(body, at, odd)
    return json.dumps(body).encode("utf-8", "surrogatepass")


@st.composite
def targets(draw: Draw, path: str) -> str:
    """The path with real or odd parts, and perhaps a query."""
    while "{" in path:
        before, _, rest = path.partition("{")
        name, _, after = rest.partition("}")
        part = draw(st.sampled_from(ODD_PARTS if draw(seldom(6)) else PARTS[name]))
        path = before + quote(part, safe="") + after
    if draw(seldom(12)):
        return path + draw(
            st.sampled_from(("/", "//", "/x", "%2F", ";a", "/../", "?", "?&&", "?%FF=%FE", "?resources=%00"))
        )
    if draw(seldom(2)):
        keys = (
            *(
                "resources",
                "resources",
                "resources1",
                "required",
                "member_of",
                "in_tree",
                "limit",
                "name",
                "uuid",
            ),
            *("project_id", "group_policy", "same_subtree", "root_required"),
        )
        odd = [str(value) for value in ODD_VALUES if len(str(value)) < 2000]
        values = st.one_of(st.just("VCPU:1"), st.sampled_from(odd), st.text(max_size=20))
        pairs = draw(st.lists(st.tuples(st.sampled_from(keys), values), max_size=3))
        path += "?" + urlencode(pairs, errors="surrogatepass")
    return path


@st.composite
def headers(draw: Draw) -> dict[str, str]:
    chosen: dict[str, str] = {}
    if not draw(seldom(3)):
        return chosen
    odd = {
        "Content-Type": ("text/plain", "application/json; charset=utf-16", "", "application/json;;"),
        "Accept": ("text/html", "*/*", "", "application/json;q=0", "a" * 500),
        "OpenStack-API-Version": (
            *("placement 1.0", "placement 1.99", "placement latest", "placement", "compute 2.1", ""),
            *("placement 1.39, placement 1.0", "placement -1.1", "placement x.y", "\xff"),
        ),
        "X-Auth-Token": ("", ":", "a:b:c", "user"),
        "X-Roles": ("", ",", "reader", "\xff"),
    }
    for name in draw(st.lists(st.sampled_from(sorted(odd)), min_size=1, max_size=2, unique=True)):
        chosen[name] = draw(st.sampled_from(odd[name]))
    return chosen


@st.composite
def junk(draw: Draw) -> Junk:
    path, method = draw(st.sampled_from(ENDPOINTS))
    if draw(seldom(15)):
        method = draw(st.sampled_from(METHODS))
    version = draw(st.sampled_from((39, 39, 38, 36, 28, 27, 19, 12, 10, 8, 1, 0)))
    chosen = {"OpenStack-API-Version": f"placement 1.{version}", **draw(headers())}
    body = draw(bodies(path)) if method in ("PUT", "POST", "PATCH") else b""
    return Junk(method, draw(targets(path)), body, chosen)
