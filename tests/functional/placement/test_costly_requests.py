"""Query strings with thousands of values, and long texts: answered or refused, and soon."""

from __future__ import annotations

import time
from typing import Any

import pytest
from falcon.testing import Result, simulate_request

from moorage.core.uuids import generate
from moorage.http.auth import Wsgi

ADMIN = {
    "X-Auth-Token": "admin",
    "OpenStack-API-Version": "placement 1.39",
    "Content-Type": "application/json",
}
PROVIDERS = 1000
MOST_SECONDS = 5.0
"""Of processor time."""


def ask(application: Wsgi, method: str, path: str, query: str = "", **more: Any) -> Result:
    return simulate_request(application, method, path, query_string=query, headers=ADMIN, **more)


@pytest.fixture(scope="module")
def fleet(application: Wsgi) -> Wsgi:
    providers = [
        {"uuid": generate(), "name": f"node-{number}", "inventories": {"VCPU": {"total": 16}}}
        for number in range(PROVIDERS)
    ]
    for provider in providers:
        provider["traits"] = ["HW_CPU_X86_AVX2", "HW_CPU_X86_AVX"]
    assert ask(application, "POST", "/moorage/v1/providers", json={"providers": providers}).status_code == 200
    return application


def repeated(count: int, form: str) -> str:
    return "&".join(form.format(n=number, uuid=generate()) for number in range(1, count + 1))


COSTLY = {
    "groups": repeated(2000, "resources{n}=VCPU:1") + "&group_policy=none",
    "isolated groups": repeated(2000, "resources{n}=VCPU:1") + "&group_policy=isolate",
    "groups with traits": repeated(2000, "resources{n}=VCPU:1&required{n}=HW_CPU_X86_AVX2")
    + "&group_policy=none",
    "aggregates": "resources=VCPU:1&member_of=in:" + ",".join(generate() for _ in range(3000)),
    "forbidden aggregates": "resources=VCPU:1&member_of=!in:" + ",".join(generate() for _ in range(3000)),
    "member_of again and again": "resources=VCPU:1&" + repeated(2500, "member_of={uuid}"),
    "required again and again": "resources=VCPU:1&" + repeated(5000, "required=HW_CPU_X86_AVX2"),
    "required in:": "resources=VCPU:1&" + repeated(2500, "required=in:HW_CPU_X86_AVX2,HW_CPU_X86_AVX"),
    "traits": "resources=VCPU:1&required=" + ",".join(["HW_CPU_X86_AVX2"] * 6000),
    "unknown traits": "resources=VCPU:1&required=" + ",".join(f"CUSTOM_{n}" for n in range(8000)),
    "classes": "resources=" + ",".join(["VCPU:1"] * 12_000),
    "same_subtree": repeated(200, "resources_{n}=VCPU:1")
    + "&group_policy=none&"
    + repeated(4000, "same_subtree=_1,_2"),
    "a long amount": "resources=VCPU:" + "9" * 5000,
    "an odd amount": "resources=VCPU:%C2%B2",
    "a long limit": "resources=VCPU:1&limit=" + "9" * 5000,
    "an odd limit": "resources=VCPU:1&limit=%C2%B2",
    "a long query": "resources=VCPU:1&name=" + "a" * 140_000,
}


@pytest.mark.parametrize("name", COSTLY)
def test_candidates(fleet: Wsgi, name: str) -> None:
    for path in (
        "/allocation_candidates",
        "/resource_providers",
        "/moorage/v1/why",
        "/moorage/v1/capacity",
        "/traits",
    ):
        begun = time.process_time()
        answer = ask(fleet, "GET", path, COSTLY[name])
        assert time.process_time() - begun < MOST_SECONDS, path
        assert answer.status_code in (200, 400, 404, 414), (path, answer.text[:300])


LONG = ["a" * 60_000 + "!", "A" * 60_000 + "!", "-" * 60_000, "\x01" * 20_000]


@pytest.mark.parametrize("text", LONG, ids=lambda text: ascii(text[0]))
def test_long_texts(fleet: Wsgi, text: str) -> None:
    for method, path, body in (
        ("POST", "/resource_providers", {"name": text, "uuid": text}),
        ("POST", "/resource_classes", {"name": text}),
        ("PUT", f"/allocations/{generate()}", {"allocations": {text: {}}, "project_id": text}),
        (
            "PUT",
            f"/resource_providers/{generate()}/traits",
            {"traits": [text], "resource_provider_generation": 1},
        ),
    ):
        begun = time.process_time()
        answer = ask(fleet, method, path, json=body)
        assert time.process_time() - begun < MOST_SECONDS, path
        assert 400 <= answer.status_code < 500, (path, answer.text[:300])


def test_a_body_has_an_end(fleet: Wsgi) -> None:
    answer = ask(fleet, "POST", "/resource_providers", body=b'{"name": "' + b"a" * 17_000_000 + b'"}')
    assert answer.status_code == 413, answer.text[:200]


def test_many_odd_items_are_refused_soon(fleet: Wsgi) -> None:
    """Telling whether each is there once takes one pass, not as many as there are items."""
    traits: list[Any] = [{"a": number} for number in range(100_000)]
    begun = time.process_time()
    body = {"traits": traits, "resource_provider_generation": 1}
    answer = ask(fleet, "PUT", f"/resource_providers/{generate()}/traits", json=body)
    assert answer.status_code == 400
    small = {"traits": traits[:4000], "resource_provider_generation": 1}
    answer = ask(fleet, "PUT", f"/resource_providers/{generate()}/traits", json=small)
    assert answer.status_code == 400
    assert time.process_time() - begun < 3 * MOST_SECONDS
