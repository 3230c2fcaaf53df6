"""What Ironic is told of a server."""

from __future__ import annotations

import re
from typing import Any

import msgspec
import pytest

from moorage.drivers.contract import DriverError, ServerSpec
from moorage.drivers.ironic.api.record import NodeRecord
from moorage.drivers.ironic.servers import mark
from moorage.drivers.ironic.servers.deployment import instance_info, is_rebuilt, rebuild_info, whole_info

FLAVOR: dict[str, Any] = {"vcpus": 16, "ram": 65536, "disk": 480, "swap": 0, "ephemeral": 0}


def spec(**more: Any) -> ServerSpec:
    flavor = {**FLAVOR, "extra_specs": more.pop("extra_specs", {})}
    return ServerSpec("server-1", "web", "project-1", "user-1", "node-1", flavor, **more)


def test_an_image_of_glance_goes_by_its_id() -> None:
    info = instance_info(spec(image={"id": "image-1", "properties": {"os_distro": "debian"}}))
    assert info["image_source"] == "image-1"
    assert "os_distro" not in info
    assert (info["display_name"], info["root_gb"]) == ("web", "480")


def test_an_image_may_say_what_ironic_shall_take_instead() -> None:
    properties = {"baremetal:image_source": "http://x/y.img", "baremetal:image_type": "whole-disk"}
    info = instance_info(spec(image={"id": "image-1", "properties": properties}))
    assert (info["image_source"], info["image_type"]) == ("http://x/y.img", "whole-disk")


def test_a_flavor_chooses_the_root_disk_and_the_traits() -> None:
    specs = {"baremetal:root_device": '{"size": ">= 200"}', "trait:CUSTOM_B": "required"}
    info = instance_info(spec(extra_specs={**specs, "trait:CUSTOM_A": "forbidden"}))
    assert info["root_device"] == {"size": ">= 200"}
    assert info["traits"] == ["CUSTOM_B"]


@pytest.mark.parametrize("hints", ["sda", "[1]", "{"])
def test_hints_that_make_no_sense_are_told_and_tried_nowhere_else(hints: str) -> None:
    with pytest.raises(DriverError, match="root_device") as error:
        instance_info(spec(extra_specs={"baremetal:root_device": hints}))
    assert not error.value.retry_elsewhere


def test_a_rebuild_is_done_once_the_state_has_changed_since_it_was_marked() -> None:
    deployed = NodeRecord("node-1", provision_updated_at="10:00")
    server = spec(work="7")
    info = rebuild_info(server, mark.of(server, "node-1"), deployed)
    marked = NodeRecord("node-1", instance_info=info, provision_updated_at="10:00")
    changed = msgspec.structs.replace(marked, provision_updated_at="10:05")
    assert not is_rebuilt(spec(work="7"), deployed)
    assert not is_rebuilt(spec(work="7"), marked), "whoever marked it may have died before it ordered"
    assert is_rebuilt(spec(work="7"), changed)
    assert not is_rebuilt(spec(work="8"), changed), "the user has asked for another one"


def test_a_deployment_says_whose_it_is_whatever_an_image_says() -> None:
    server = spec(work="7-1", image={"id": "image-1", "properties": {"baremetal:moorage": "somebody's"}})
    mine = mark.of(server, "node-1")
    record = NodeRecord("node-1", instance_info=whole_info(server, mine))
    assert mark.read(record) == mine
    assert mark.read(NodeRecord("node-1", instance_info={"moorage": "somebody's"})) is None
    assert mark.read(NodeRecord("node-1", instance_info={"moorage": {"other": {}}})) is None
    assert re.fullmatch(r"(/[\w-]+)+", mark.only_if(mine)["path"]), "Ironic takes no other paths"


def test_an_image_that_is_at_a_url_goes_there_with_its_checksum() -> None:
    image = {
        "id": "image-1",
        "location": "http://x/y.qcow2",
        "disk_format": "qcow2",
        "hash_algorithm": "sha512",
        "hash_value": "ab",
        "properties": {"baremetal:image_type": "whole-disk"},
    }
    info = instance_info(spec(image=image))
    assert {name: value for name, value in info.items() if name.startswith("image_")} == {
        "image_source": "http://x/y.qcow2",
        "image_disk_format": "qcow2",
        "image_os_hash_algo": "sha512",
        "image_os_hash_value": "ab",
        "image_type": "whole-disk",
    }
