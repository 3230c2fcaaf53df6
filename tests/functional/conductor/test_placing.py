"""Placing in a real cloud: what is unfit hides nobody, and one bad request spoils no other."""

from __future__ import annotations

from collections.abc import Callable

from moorage.core import uuids
from moorage.placement.client.contract import ReportedProvider
from moorage.placement.client.local import LocalPlacement
from tests.functional.conductor.conftest import Yard

LARGE = {"VCPU": {"total": 640}, "MEMORY_MB": {"total": 2**24}, "DISK_GB": {"total": 10**6}}


def test_a_host_is_found_behind_many_nodes_that_nobody_serves(yard: Callable[..., Yard]) -> None:
    cloud = yard(hosts=1)
    nobodys = [ReportedProvider(uuids.generate(), f"nobody-{number}", LARGE) for number in range(80)]
    LocalPlacement(cloud.placement).report(nobodys)
    (server,) = cloud.await_status(cloud.boot(), "ACTIVE", "ERROR")
    assert server["status"] == "ACTIVE"


def test_a_trait_that_nobody_knows_fails_only_who_asks_for_it(yard: Callable[..., Yard]) -> None:
    cloud = yard(hosts=2)
    flavor = {"name": "odd", "id": "odd", "ram": 64, "vcpus": 1, "disk": 1}
    assert cloud.api.simulate_post("/v2.1/flavors", json={"flavor": flavor}).status_code == 200
    specs = {"extra_specs": {"trait:CUSTOM_UNHEARD_OF": "required"}}
    assert cloud.api.simulate_post("/v2.1/flavors/odd/os-extra_specs", json=specs).status_code == 200
    odd, plain = cloud.boot(flavorRef="odd"), cloud.boot()
    assert cloud.await_status(plain, "ACTIVE", "ERROR")[0]["status"] == "ACTIVE"
    (failed,) = cloud.await_status(odd, "ACTIVE", "ERROR")
    assert failed["status"] == "ERROR"
    assert "CUSTOM_UNHEARD_OF" in failed["fault"]["message"]
