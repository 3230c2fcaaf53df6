"""Whatever is sent, the answer is a refusal and never an error of ours."""

from __future__ import annotations

import re
from typing import Any

import pytest

from moorage.compute_api.routes import ROUTES
from tests.support.compute import User

NASTY = ["%00", "%F0%9F%92%A9", "x" * 300, "9" * 30, "-1", "%25", "a%2Fb", "%ED%A0%80", "' OR 1=1 --"]
BODIES: list[Any] = [None, [], {}, "text", 7, {"flavor": None}, {"server": 1}, {"a\u0000b": "\u0000"}]
QUERIES = [
    *(f"{name}=99999999999999999999" for name in ("limit", "offset", "marker", "minRam", "minDisk")),
    "marker=%00",
    "user_id=%00",
    "limit=1&limit=2",
    "%00=1",
    "host=%FF",
]
VERSIONS = ["2.1", "2.52", "2.96"]
PATHS = sorted({route.path for route in ROUTES})


def fill(path: str, value: str) -> str:
    return re.sub(r"{\w+}", value, path)


@pytest.mark.parametrize("path", [path for path in PATHS if "{" in path])
def test_nasty_names_in_paths(admin: User, path: str) -> None:
    for version in VERSIONS:
        for value in NASTY:
            for method in ("GET", "DELETE"):
                answer = admin.at(version).call(method, fill(path, value))
                assert answer.status != 500, (version, method, path, value, answer.text)


@pytest.mark.parametrize("path", PATHS)
def test_nasty_queries(admin: User, path: str) -> None:
    for version in VERSIONS:
        for query in QUERIES:
            answer = admin.at(version).get(f"{fill(path, 'x')}?{query}")
            assert answer.status != 500, (version, path, query, answer.text)


@pytest.mark.parametrize("path", PATHS)
def test_nasty_bodies(admin: User, path: str) -> None:
    for version in VERSIONS:
        for method in ("POST", "PUT"):
            for body in BODIES:
                answer = admin.at(version).call(method, fill(path, "x"), body)
                assert answer.status >= 400, (version, method, path, body, answer.text)
                assert answer.status != 500, (version, method, path, body, answer.text)
