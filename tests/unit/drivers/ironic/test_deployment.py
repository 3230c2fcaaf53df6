"""What Ironic is told of a server."""

from __future__ import annotations

import base64
from typing import Any

import msgspec
import pytest

from moorage.drivers.contract import DriverError, ServerSpec
from moorage.drivers.ironic.deployment import config_drive, instance_info, is_rebuilt, rebuild_info
from moorage.drivers.ironic.record import NodeRecord

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


def test_a_config_drive_has_the_users_data_as_it_shall_be_read() -> None:
    port = {"id": "port-1", "mac": "fa:16:3e:00:00:01", "addresses": ["10.0.0.5", "fd00::5"]}
    drive = config_drive(
        spec(
            user_data=base64.b64encode(b"#!/bin/sh\n").decode(),
            key_name="mine",
            public_key="ssh-ed25519 AAAA",
            metadata={"role": "web"},
            network=[port],
        )
    )
    assert drive["user_data"] == "#!/bin/sh\n"
    assert drive["meta_data"]["public_keys"] == {"mine": "ssh-ed25519 AAAA"}
    assert drive["meta_data"]["meta"] == {"role": "web"}
    assert drive["network_data"]["links"][0]["ethernet_mac_address"] == port["mac"]
    kinds = [(one["type"], one["ip_address"]) for one in drive["network_data"]["networks"]]
    assert kinds == [("ipv4", "10.0.0.5"), ("ipv6", "fd00::5")]


def test_user_data_that_is_no_text_is_refused() -> None:
    with pytest.raises(DriverError, match="user data"):
        config_drive(spec(user_data=base64.b64encode(b"\xff\xfe\x00").decode()))


def test_a_rebuild_is_done_once_the_state_has_changed_since_it_was_marked() -> None:
    deployed = NodeRecord("node-1", provision_updated_at="10:00")
    marked = NodeRecord(
        "node-1", instance_info=rebuild_info(spec(work="7"), deployed), provision_updated_at="10:00"
    )
    changed = msgspec.structs.replace(marked, provision_updated_at="10:05")
    assert not is_rebuilt(spec(work="7"), deployed)
    assert not is_rebuilt(spec(work="7"), marked), "whoever marked it may have died before it ordered"
    assert is_rebuilt(spec(work="7"), changed)
    assert not is_rebuilt(spec(work="8"), changed), "the user has asked for another one"
