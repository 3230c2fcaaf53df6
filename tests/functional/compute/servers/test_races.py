"""Many requests at once: quotas hold, and a state is changed by one of them."""

from __future__ import annotations

from collections import Counter
from concurrent.futures import ThreadPoolExecutor

from tests.functional.compute.servers.conftest import Cloud

CALLERS = 8


def test_quotas_hold_when_everybody_boots_at_once(cloud: Cloud) -> None:
    with ThreadPoolExecutor(CALLERS) as pool:
        answers = list(pool.map(lambda _: cloud.alice.boot().status_code, range(24)))
    assert Counter(answers) == {202: 10, 403: 14}
    assert cloud.count() == 10
    assert cloud.usage("red") == (10, 10, 10 * 512)


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
