"""Rebuild: a server is made anew where it is, if its new image can run there."""

from __future__ import annotations

from typing import Any

import pytest

from moorage.core import uuids
from moorage.placement.client.contract import ReportedProvider
from tests.functional.conductor.conftest import Make
from tests.functional.conductor.harbour import Harbour


def image_of(place: Harbour, uuid: str) -> Any:
    return place.cloud.server(uuid)["image"]["id"]


def test_the_same_image_on_the_same_host_and_nothing_more_is_held(harbour: Make) -> None:
    place = harbour(hosts=1, **{"fake.vcpus": 1})
    uuid = place.running(metadata={"colour": "red"})
    before, held = place.copies(uuid)["fake-1"], place.held(uuid)
    body = {"imageRef": image_of(place, uuid), "name": "new", "metadata": {"colour": "blue"}}
    answer = place.act(uuid, {"rebuild": body})["server"]
    assert (answer["name"], answer["status"], len(answer["adminPass"])) == ("new", "REBUILD", 12)
    server = place.settled(uuid, "ACTIVE")
    assert (server["name"], server["metadata"]) == ("new", {"colour": "blue"})
    after = place.only_on(uuid, "fake-1")
    assert after.disk != before.disk
    assert after.metadata == {"colour": "blue"}
    assert place.held(uuid) == held
    (action,) = [
        found
        for found in place.cloud.get(f"/v2.1/servers/{uuid}/os-instance-actions")["instanceActions"]
        if found["action"] == "rebuild"
    ]
    assert action["message"] is None


def test_another_image_on_a_full_host(harbour: Make) -> None:
    place = harbour(hosts=1, **{"fake.vcpus": 1})
    uuid = place.running()
    other = place.add_image({"trait:HW_CPU_X86_VMX": "required", "hw_architecture": "x86_64"})
    place.act(uuid, {"rebuild": {"imageRef": other}})
    place.settled(uuid, "ACTIVE")
    assert image_of(place, uuid) == other
    assert place.only_on(uuid, "fake-1").image == other


def test_what_an_image_asks_for_may_be_anywhere_in_the_tree(harbour: Make) -> None:
    place = harbour(hosts=1)
    uuid = place.running()
    card = ReportedProvider(uuids.generate(), "card", traits=["CUSTOM_CARD"])
    card.parent_provider_uuid = place.node_of("fake-1")
    place.cloud.client.report([card])
    other = place.add_image({"trait:HW_CPU_X86_VMX": "required", "trait:CUSTOM_CARD": "required"})
    place.act(uuid, {"rebuild": {"imageRef": other}})
    place.settled(uuid, "ACTIVE")
    assert image_of(place, uuid) == other
    picky = place.add_image({"trait:CUSTOM_CARD": "required", "trait:HW_CPU_X86_AVX512F": "required"})
    place.act(uuid, {"rebuild": {"imageRef": picky}})
    place.settled(uuid, "ACTIVE")
    assert place.last_error(uuid).endswith("its host does not have HW_CPU_X86_AVX512F.")


def test_a_server_that_was_off_stays_off(harbour: Make) -> None:
    place = harbour(hosts=1)
    uuid = place.running()
    place.act(uuid, {"os-stop": None})
    place.settled(uuid, "SHUTOFF")
    place.act(uuid, {"rebuild": {"imageRef": image_of(place, uuid)}})
    place.settled(uuid, "SHUTOFF")
    assert place.only_on(uuid, "fake-1").power == 4


@pytest.mark.parametrize(
    ("properties", "words"),
    [
        ({"trait:HW_CPU_X86_AVX512F": "required"}, "HW_CPU_X86_AVX512F"),
        ({"hw_architecture": "s390x"}, "s390x"),
        ({"trait:HW_CPU_X86_VMX": "maybe"}, "must be 'required'"),
    ],
)
def test_an_image_that_can_not_run_there_changes_nothing(
    harbour: Make, properties: dict[str, str], words: str
) -> None:
    place = harbour(hosts=2)
    uuid = place.running(metadata={"colour": "red"})
    before = (place.cloud.server(uuid), place.copies(uuid))
    picky = place.add_image(properties)
    place.act(uuid, {"rebuild": {"imageRef": picky, "name": "new", "metadata": {}}})
    server = place.settled(uuid, "ACTIVE")
    assert (server["name"], server["image"], server["metadata"]) == (
        before[0]["name"],
        before[0]["image"],
        {"colour": "red"},
    )
    assert place.copies(uuid) == before[1]
    assert words in place.last_error(uuid)


def test_the_same_image_stays_though_others_of_its_kind_may_not_come_any_more(harbour: Make) -> None:
    place = harbour(hosts=1, **{"fake.vcpus": 1})
    old = place.add_image({"os_distro": "windows"})
    uuid = place.running(imageRef=old)
    place.make_aggregate("free", "fake-1", {"os_distro": "debian"})
    place.set_service("fake-1", status="disabled")
    place.act(uuid, {"rebuild": {"imageRef": old, "name": "new"}})
    assert place.settled(uuid, "ACTIVE")["name"] == "new"
    place.act(uuid, {"rebuild": {"imageRef": place.add_image({"os_distro": "windows"})}})
    assert place.settled(uuid, "ACTIVE")["image"]["id"] == old
    assert "images with another os_distro" in place.last_error(uuid)


def test_whose_a_host_is_says_nothing_about_an_image(harbour: Make) -> None:
    """It may have changed since the boot; a server that runs stays where it is."""
    place = harbour(hosts=1)
    uuid = place.running()
    place.make_aggregate("theirs", "fake-1", {"filter_tenant_id": "others"})
    other = place.add_image({"os_distro": "debian"})
    place.act(uuid, {"rebuild": {"imageRef": other}})
    assert place.settled(uuid, "ACTIVE")["image"]["id"] == other


def test_what_the_flavor_requires_is_asked_of_the_host_too(harbour: Make) -> None:
    place = harbour(hosts=1, **{"fake.traits": ["CUSTOM_LICENSED", "COMPUTE_NODE"]})
    place.make_aggregate("licensed", "fake-1", {"trait:CUSTOM_LICENSED": "required"})
    place.make_flavor("licensed", "VCPU", {"trait:CUSTOM_LICENSED": "required"})
    uuid = place.running(flavorRef="licensed")
    other = place.add_image({})
    place.act(uuid, {"rebuild": {"imageRef": other}})
    assert place.settled(uuid, "ACTIVE")["image"]["id"] == other


def test_a_rebuild_that_fails_is_an_error_from_which_another_one_recovers(harbour: Make) -> None:
    place = harbour(hosts=1)
    uuid = place.running(metadata={"fake:rebuild": "fail"})
    place.act(uuid, {"rebuild": {"imageRef": image_of(place, uuid)}})
    server = place.settled(uuid, "ERROR")
    assert "rebuild shall fail" in server["fault"]["message"]
    assert set(place.held(uuid)) == {"fake-1"}
    place.act(uuid, {"rebuild": {"imageRef": image_of(place, uuid), "metadata": {}}})
    place.settled(uuid, "ACTIVE")


def test_what_makes_no_sense_is_refused(harbour: Make) -> None:
    place = harbour(hosts=1)
    uuid = place.running()
    nothing = "aaaaaaaa-0000-4000-8000-00000000dead"
    image = image_of(place, uuid)
    for body, words in (
        ({"imageRef": nothing}, "Cannot find image for rebuild"),
        ({"imageRef": "x"}, "imageRef"),
        ({"imageRef": image, "key_name": "nobodys"}, "Invalid key_name provided."),
        ({"imageRef": image, "user_data": "?"}, "user_data"),
        ({}, "imageRef"),
    ):
        assert words in place.refused(uuid, {"rebuild": body}, 400)
    place.act(uuid, {"migrate": None})
    place.settled(uuid, "ACTIVE")


def test_ephemeral_disks_that_can_not_be_kept_are_not_lost(harbour: Make) -> None:
    place = harbour(hosts=1)
    uuid = place.running()
    before, image = place.only_on(uuid, "fake-1"), image_of(place, uuid)
    other = place.add_image({})
    place.act(uuid, {"rebuild": {"imageRef": other, "preserve_ephemeral": True}})
    place.settled(uuid, "ACTIVE")
    assert (place.only_on(uuid, "fake-1"), image_of(place, uuid)) == (before, image)
    assert "can't preserve ephemeral disks" in place.last_error(uuid)


def test_a_config_drive_can_be_forced_on_new_servers(harbour: Make) -> None:
    place = harbour(hosts=1, **{"compute.force_config_drive": True})
    uuid = place.running(config_drive=False)
    assert place.cloud.server(uuid)["config_drive"] == "True"
