"""The security groups that a server is shown with."""

from __future__ import annotations

from typing import Any

from moorage.compute.ports import group_names


def test_who_asks_for_none_is_in_the_default_one() -> None:
    assert list(group_names.of({})) == ["default"]
    assert list(group_names.of({"security_groups": []})) == ["default"]
    assert list(group_names.of({"security_groups": ["web"]})) == ["web"]


def test_a_server_that_left_all_of_them_is_in_none_until_it_joins_one() -> None:
    request: dict[str, Any] = {"security_groups": [], "host": None}
    left = group_names.changed(request, "default", joins=False)
    assert list(group_names.of(left)) == []
    assert left["host"] is None
    assert list(group_names.of(group_names.changed(left, "web", joins=True))) == ["web"]


def test_nobody_joins_twice() -> None:
    request = {"security_groups": ["web", "db"]}
    assert list(group_names.of(group_names.changed(request, "web", joins=True))) == ["db", "web"]
