"""Many requests at once: quotas hold, and a state is changed by one of them."""

from __future__ import annotations

from collections import Counter
from concurrent.futures import ThreadPoolExecutor

from tests.functional.compute.servers.conftest import Cloud, cloud_on

CALLERS = 8


def test_quotas_hold_when_everybody_boots_at_once(cloud: Cloud) -> None:
    with ThreadPoolExecutor(CALLERS) as pool:
        answers = list(pool.map(lambda _: cloud.alice.boot().status_code, range(24)))
    assert Counter(answers) == {202: 10, 403: 14}
    assert cloud.count() == 10
    assert cloud.usage("red") == (10, 10, 10 * 512)


def test_of_two_processes_that_together_exceed_a_quota_one_gets_its_server(
    cloud: Cloud, database_url: str
) -> None:
    """Each of them fits alone; whoever comes second counts what the first one took."""
    cloud.limit("red", cores=8, instances=-1, ram=-1)
    with cloud_on(database_url, first=False) as other, ThreadPoolExecutor(2) as pool:
        for _ in range(5):
            asked = [
                pool.submit(user.boot, flavorRef="big", name=user.user) for user in (cloud.alice, other.anna)
            ]
            answers = [each.result() for each in asked]
            assert sorted(answer.status_code for answer in answers) == [202, 403]
            assert cloud.usage("red") == (1, 8, 8192)
            (made,) = (answer.json["server"]["id"] for answer in answers if answer.status_code == 202)
            assert cloud.alice.call("DELETE", f"/servers/{made}").status_code == 204
            cloud.end(made)


def test_quotas_of_keys_groups_and_members_hold_at_once(cloud: Cloud) -> None:
    cloud.limit("red", key_pairs=2, server_groups=2, server_group_members=2)
    kept = {"server_group": {"name": "kept", "policy": "affinity"}}
    group = cloud.alice.call("POST", "/os-server-groups", kept).json["server_group"]["id"]

    def key(number: int) -> int:
        body = {"keypair": {"name": f"key{number}", "type": "ssh"}}
        return cloud.alice.call("POST", "/os-keypairs", body, version="2.91").status_code

    def another(_: int) -> int:
        return cloud.alice.call("POST", "/os-server-groups", kept).status_code

    def member(_: int) -> int:
        return int(cloud.alice.boot(hints={"group": group}).status_code)

    with ThreadPoolExecutor(CALLERS) as pool:
        assert Counter(pool.map(key, range(CALLERS))) == {201: 2, 403: CALLERS - 2}
        assert Counter(pool.map(another, range(CALLERS))) == {200: 1, 403: CALLERS - 1}
        assert Counter(pool.map(member, range(CALLERS))) == {202: 2, 403: CALLERS - 2}


def test_booting_and_deleting_at_once_keeps_the_books(cloud: Cloud) -> None:
    def one(_: int) -> None:
        uuid = cloud.alice.booted()
        assert cloud.alice.call("DELETE", f"/servers/{uuid}").status_code == 204
        cloud.end(uuid)

    with ThreadPoolExecutor(CALLERS) as pool:
        list(pool.map(one, range(24)))
    assert cloud.usage("red") == (0, 0, 0)
    assert cloud.alice.get("/servers") == {"servers": []}


def test_of_several_that_stop_a_server_one_does(cloud: Cloud) -> None:
    uuid = cloud.alice.booted()
    cloud.run(uuid)
    path, body = f"/servers/{uuid}/action", {"os-stop": None}
    with ThreadPoolExecutor(CALLERS) as pool:
        answers = list(pool.map(lambda _: cloud.alice.call("POST", path, body).status_code, range(CALLERS)))
    assert Counter(answers) == {202: 1, 409: CALLERS - 1}
    assert cloud.operations(uuid) == [("build", None), ("stop", None)]


def test_tags_that_come_at_once_are_all_kept(cloud: Cloud) -> None:
    uuid = cloud.alice.booted()
    cloud.run(uuid)
    names = [f"tag{number}" for number in range(CALLERS)]
    with ThreadPoolExecutor(CALLERS) as pool:
        list(pool.map(lambda name: cloud.alice.call("PUT", f"/servers/{uuid}/tags/{name}"), names))
    assert cloud.server(uuid).tags == names
