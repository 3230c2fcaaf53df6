"""Placing in a real cloud: what is unfit hides nobody, and one bad request spoils no other."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pytest

from moorage.core import uuids
from moorage.placement.client.contract import ConsumerClaim, PlacementRefusedError, ReportedProvider
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


def test_who_loses_all_choices_to_a_rival_is_decided_anew(
    yard: Callable[..., Yard], monkeypatch: pytest.MonkeyPatch
) -> None:
    cloud = yard(hosts=8)
    claim, rival = LocalPlacement.claim, LocalPlacement(cloud.placement)
    lost: list[str] = []

    def too_late(
        placement: LocalPlacement, claims: Sequence[ConsumerClaim]
    ) -> list[PlacementRefusedError | None]:
        (wanted,) = claims
        (node,) = wanted.allocations
        if len(lost) < 5:  # more than one decision has choices
            lost.append(node)
            _fill(rival, node, claim)
        return claim(placement, claims)

    monkeypatch.setattr(LocalPlacement, "claim", too_late)
    (server,) = cloud.await_status(cloud.boot(), "ACTIVE", "ERROR")
    assert server["status"] == "ACTIVE"
    assert len(set(lost)) == 5
    (decision,) = cloud.get(f"/v2.1/servers/{server['id']}/moorage-trace")["traces"]
    claims = [one["outcome"] for one in decision["trace"]["attempts"] if one["step"] == "claim"]
    assert claims == ["refused"] * 5 + ["done"]


def _fill(
    placement: LocalPlacement, node: str, claim: Callable[..., list[PlacementRefusedError | None]]
) -> None:
    """Take all the disk that a node has left."""
    candidates = placement.candidates([("resources", "DISK_GB:1"), ("in_tree", node), ("limit", "1")])
    disk = candidates.provider_summaries[node].resources["DISK_GB"]
    amounts = {node: {"DISK_GB": disk["capacity"] - disk["used"]}}
    assert claim(placement, [ConsumerClaim(uuids.generate(), amounts, "rivals", "rival")]) == [None]
