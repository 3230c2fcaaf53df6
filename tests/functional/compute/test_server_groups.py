"""Server groups."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
import sqlalchemy as sa

from moorage.core import uuids
from moorage.db.tables.compute import server_group_members, server_groups, servers
from tests.functional.compute.rows import add_server
from tests.support.compute import Answer, Cloud, User, cloud_on


def make(user: User, name: str, policy: str = "affinity", **more: Any) -> Answer:
    return user.post("/os-server-groups", {"server_group": {"name": name, "policy": policy, **more}})


def make_old(user: User, name: str, *policies: str) -> Answer:
    return user.post("/os-server-groups", {"server_group": {"name": name, "policies": list(policies)}})


def test_body_by_microversion(cloud: Cloud) -> None:
    user = cloud.member(project_id="bodies")
    group = make_old(user.at("2.1"), "first", "anti-affinity").json["server_group"]
    expected = {"id": group["id"], "name": "first", "members": []}
    old = {"policies": ["anti-affinity"], "metadata": {}}
    owner = {"project_id": "bodies", "user_id": "alice"}
    path = f"/os-server-groups/{group['id']}"
    assert group == {**expected, **old}
    assert user.at("2.12").get(path).json["server_group"] == group
    assert user.at("2.13").get(path).json["server_group"] == {**expected, **old, **owner}
    assert user.at("2.64").get(path).json["server_group"] == {
        **expected,
        **owner,
        "policy": "anti-affinity",
        "rules": {},
    }
    assert user.at("2.64").get("/os-server-groups").json["server_groups"][0]["policy"] == "anti-affinity"


def test_soft_policies_come_with_2_15(cloud: Cloud) -> None:
    user = cloud.member(project_id="soft")
    assert make_old(user.at("2.14"), "g", "soft-affinity").status == 400
    assert make_old(user.at("2.15"), "g", "soft-affinity").status == 200
    assert make_old(user.at("2.15"), "g", "affinity", "anti-affinity").status == 400
    assert make_old(user.at("2.15"), "g").status == 400


def test_rules_come_with_2_64(cloud: Cloud) -> None:
    user = cloud.member(project_id="rules")
    made = make(user, "three", "anti-affinity", rules={"max_server_per_host": "3"})
    assert made.json["server_group"]["rules"] == {"max_server_per_host": 3}
    refused = make(user, "g", "affinity", rules={"max_server_per_host": 3})
    assert refused.fault[1] == "Only anti-affinity policy supports rules."
    for wrong in ({"max_server_per_host": 0}, {"colour": 1}):
        assert make(user, "g", "anti-affinity", rules=wrong).status == 400
    assert make_old(user.at("2.64"), "g", "affinity").status == 400
    assert make(user.at("2.63"), "g").status == 400
    assert len(user.get("/os-server-groups").json["server_groups"]) == 1


@pytest.mark.parametrize("name", ["", " ", "x" * 256, " padded"])
def test_bad_names(cloud: Cloud, name: str) -> None:
    assert make(cloud.member(project_id="names"), name).status == 400


def test_members_are_those_that_live(cloud: Cloud) -> None:
    user = cloud.member(project_id="wonderland")
    group = make(user, "members").json["server_group"]["id"]
    living, deleted = (add_server(cloud, name, "h", uuids.generate()) for name in ("living", "deleted"))
    with cloud.database.write() as connection:
        both = server_groups.join(servers, servers.c.uuid.in_([living, deleted]))
        joined = sa.select(server_groups.c.id, servers.c.id).select_from(both)
        joined = joined.where(server_groups.c.uuid == group)
        connection.execute(sa.insert(server_group_members).from_select(["group_id", "server_id"], joined))
        now = sa.func.current_timestamp()
        connection.execute(sa.update(servers).where(servers.c.uuid == deleted).values(deleted_at=now))
    assert user.get(f"/os-server-groups/{group}").json["server_group"]["members"] == [living]
    assert user.delete(f"/os-server-groups/{group}").status == 204
    assert user.get(f"/os-server-groups/{group}").fault[0] == "itemNotFound"


def test_lists_and_pages(cloud: Cloud, admin: User) -> None:
    user = cloud.member(project_id="lists")
    for name in ("a", "b", "c"):
        make(user, name)

    def names(query: str = "") -> list[str]:
        return [group["name"] for group in user.get(f"/os-server-groups{query}").json["server_groups"]]

    assert names() == ["a", "b", "c"]
    assert names("?limit=1&offset=1") == ["b"]
    assert names("?all_projects=true") == ["a", "b", "c"]
    assert admin.get("/os-server-groups").json["server_groups"] == []
    everywhere = admin.get("/os-server-groups?all_projects=true").json["server_groups"]
    assert {"a", "b", "c"} <= {group["name"] for group in everywhere}
    assert user.get("/os-server-groups?limit=x").status == 400
    assert user.at("2.74").get("/os-server-groups?colour=red").status == 200
    assert user.at("2.75").get("/os-server-groups?colour=red").status == 400


def test_who_may_do_what(cloud: Cloud, admin: User) -> None:
    group = make(cloud.member(), "guarded").json["server_group"]["id"]
    path = f"/os-server-groups/{group}"
    stranger, reader = cloud.member(project_id="elsewhere"), cloud.reader()
    assert stranger.get(path).status == 404, "nobody is told that it exists"
    assert stranger.delete(path).status == 404
    assert reader.get(path).status == 200
    assert reader.delete(path).status == 403
    assert make(reader, "mine").status == 403
    assert admin.delete(path).status == 204


def test_quota(database_url: str) -> None:
    with cloud_on(database_url, {"quota.server_groups": 2}) as cloud, ThreadPoolExecutor(6) as threads:
        user = cloud.member()
        answers = list(threads.map(lambda number: make(user, f"g{number}"), range(8)))
        assert sorted(answer.status for answer in answers) == [200] * 2 + [403] * 6
        refused = next(answer for answer in answers if answer.status == 403)
        assert refused.fault == ("forbidden", "Quota exceeded, too many server groups.")
        assert make(cloud.member(project_id="other"), "g").status == 200
