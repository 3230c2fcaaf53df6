"""What guests are told of themselves, in OpenStack's form and in EC2's."""

from __future__ import annotations

import io
from typing import Any

import msgspec
import pycdlib

from moorage.drivers import config_drive, guest_metadata
from moorage.drivers.contract import ServerSpec
from moorage.drivers.guest_metadata import GuestIdentity

SUBNET = {
    "cidr": "10.0.0.0/24",
    "gateway_ip": "10.0.0.1",
    "dns_nameservers": ["10.0.0.2"],
    "host_routes": [{"destination": "192.168.0.0/16", "nexthop": "10.0.0.3"}],
}
PORT: dict[str, Any] = {
    "id": "port-1",
    "mac": "fa:16:3e:00:00:01",
    "addresses": ["10.0.0.5", "fd00::5"],
    "floating": ["203.0.113.7"],
    "network_id": "net-1",
    "mtu": 1442,
    "vif_type": "ovs",
    "tag": "front",
    "subnets": [SUBNET],
}
SPEC = ServerSpec(
    "5a2c0b5e-0000-4000-8000-000000000001",
    "web",
    "project-1",
    "user-1",
    "node-1",
    {"name": "small"},
    {"id": "6b3d1c6f-0000-4000-8000-000000000002"},
    [PORT],
    key_name="mine",
    public_key="ssh-ed25519 AAAA",
)


def told(name: str, guest: GuestIdentity) -> Any:
    return msgspec.json.decode(guest_metadata.documents(guest)[name])


def test_a_network_is_told_with_its_mask_routes_and_servers() -> None:
    network = told("network_data.json", GuestIdentity.of(SPEC))
    assert network["links"][0] == {
        "id": "link0",
        "type": "ovs",
        "ethernet_mac_address": PORT["mac"],
        "vif_id": "port-1",
        "mtu": 1442,
    }
    first, second = network["networks"]
    assert (first["ip_address"], first["netmask"], first["type"]) == ("10.0.0.5", "255.255.255.0", "ipv4")
    assert first["routes"] == [
        {"network": "0.0.0.0", "netmask": "0.0.0.0", "gateway": "10.0.0.1"},
        {"network": "192.168.0.0", "netmask": "255.255.0.0", "gateway": "10.0.0.3"},
    ]
    assert (second["type"], "netmask" in second) == ("ipv6", False), "of a subnet that nobody told of"
    assert network["services"] == [{"type": "dns", "address": "10.0.0.2"}]


def test_meta_data_say_who_the_guest_is() -> None:
    meta = told("meta_data.json", GuestIdentity.of(SPEC))
    assert (meta["uuid"], meta["name"], meta["project_id"]) == (SPEC.uuid, "web", "project-1")
    assert meta["keys"] == [{"name": "mine", "type": "ssh", "data": "ssh-ed25519 AAAA"}]
    assert meta["devices"] == [
        {"type": "nic", "bus": "none", "address": "none", "mac": PORT["mac"], "tags": ["front"]}
    ]
    seeded = msgspec.structs.replace(GuestIdentity.of(SPEC), random_seed=b"\x00\x01", admin_password="secret")
    meta = told("meta_data.json", seeded)
    assert (meta["random_seed"], meta["admin_pass"]) == ("AAE=", "secret")


def test_ec2_has_its_own_words_for_it() -> None:
    ec2 = guest_metadata.ec2_meta_data(GuestIdentity.of(SPEC))
    assert (ec2["local-ipv4"], ec2["public-ipv4"]) == ("10.0.0.5", "203.0.113.7")
    assert (ec2["instance-id"], ec2["ami-id"]) == ("i-5a2c0b5e", "ami-6b3d1c6f")
    assert ec2["public-keys"]["0"]["openssh-key"] == "ssh-ed25519 AAAA"
    assert ec2["instance-type"] == "small"


def test_a_config_drive_has_both_forms() -> None:
    disk = pycdlib.PyCdlib()
    disk.open_fp(io.BytesIO(config_drive.of(SPEC)))
    for path in (
        "/openstack/latest/vendor_data.json",
        "/openstack/2018-08-27/meta_data.json",
        "/ec2/latest/meta-data.json",
        "/ec2/2009-04-04/meta-data.json",
    ):
        found = io.BytesIO()
        disk.get_file_from_iso_fp(found, joliet_path=path)
        assert isinstance(msgspec.json.decode(found.getvalue()), dict)
