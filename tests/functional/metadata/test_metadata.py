"""The metadata service, as Neutron's agents and ours ask it: what it says, and to whom."""

from __future__ import annotations

import base64
import io
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pycdlib
import pytest
import requests

from moorage.agent.metadata_forwarder import ForwarderSettings, GuestOnHost, MetadataForwarder
from moorage.cli.embedded.cloud import METADATA_PATH
from moorage.compute.servers import server_spec, servers
from moorage.drivers import config_drive
from moorage.drivers.contract import ServerSpec
from moorage.http.server import HttpServer
from moorage.metadata import signature
from tests.functional.conductor.conftest import Yard
from tests.support.processes import free_port

SECRET = "sesame"
USER_DATA = b"#!/bin/sh\necho \xff hello\n"
KEY = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIJ0cQ1q7y0B6s7cE6a3lqgk1R3uO8W5y0a8v4mB6w6yq alice"


class Cloud:
    def __init__(self, yard: Yard) -> None:
        self.yard = yard
        key = {"keypair": {"name": "k", "type": "ssh", "public_key": KEY}}
        yard.api.simulate_post("/v2.1/os-keypairs", json=key)
        fields: dict[str, Any] = {"key_name": "k", "metadata": {"colour": "blue"}}
        encoded = base64.b64encode(USER_DATA).decode()
        [self.uuid] = yard.boot(name="one", hostname="uno", user_data=encoded, **fields)
        yard.await_status([self.uuid], "ACTIVE")

    def ask(self, path: str, method: str = "GET", body: bytes | None = None, **headers: Any) -> Any:
        signed = {
            "X-Instance-ID": self.uuid,
            "X-Tenant-ID": "admin",
            "X-Instance-ID-Signature": signature.sign(SECRET, self.uuid),
            "X-Forwarded-For": "10.0.0.7",
        }
        given = {**signed, **{name.replace("_", "-"): value for name, value in headers.items()}}
        return self.yard.api.simulate_request(
            method, f"{METADATA_PATH}{path}", headers={name: v for name, v in given.items() if v}, body=body
        )

    def text(self, path: str) -> str:
        answer = self.ask(path)
        assert answer.status_code == 200, (path, answer.text)
        assert answer.headers["content-type"]
        return str(answer.text)


@pytest.fixture
def cloud(database_url: str, tmp_path: Path) -> Iterator[Cloud]:
    options: dict[str, Any] = {"metadata.shared_secret": SECRET}
    yard = Yard(database_url, tmp_path / "agents", 1, **options)
    yield Cloud(yard)
    yard.stop()


def test_openstacks_documents(cloud: Cloud) -> None:
    assert {"2012-08-10", "2018-08-27", "latest"} <= set(cloud.text("/openstack").split("\n"))
    names = cloud.text("/openstack/latest/").split("\n")
    assert names[:2] == ["meta_data.json", "user_data"]
    assert {"password", "vendor_data.json", "vendor_data2.json", "network_data.json"} <= set(names)
    answer = cloud.ask("/openstack/2018-08-27/meta_data.json")
    assert answer.headers["content-type"] == "application/json"
    meta = answer.json
    assert (meta["uuid"], meta["name"], meta["hostname"]) == (cloud.uuid, "one", "uno")
    assert (meta["meta"], meta["public_keys"]) == ({"colour": "blue"}, {"k": KEY})
    assert len(base64.b64decode(meta["random_seed"])) == 512
    assert cloud.ask("/openstack/latest/user_data").content == USER_DATA
    network = cloud.ask("/openstack/latest/network_data.json").json
    assert network["networks"][0]["ip_address"]
    assert cloud.ask("/openstack/latest/vendor_data2.json").json == {}
    for path in (
        "/openstack/2001-01-01/meta_data.json",
        "/openstack/latest/nope",
        "/openstack/latest/password/x",
    ):
        assert cloud.ask(path).status_code == 404


def test_ec2s_words(cloud: Cloud) -> None:
    assert "latest" in cloud.text("/").split("\n")
    assert cloud.text("/latest").split("\n") == ["meta-data/", "user-data"]
    words = cloud.text("/latest/meta-data/").split("\n")
    assert {"instance-id", "local-ipv4", "placement/", "public-keys/"} <= set(words)
    assert cloud.text("/2009-04-04/meta-data/hostname") == "uno"
    assert cloud.text("/latest/meta-data/public-keys/") == "0=k"
    assert cloud.text("/latest/meta-data/public-keys/0/") == "openssh-key"
    assert cloud.text("/latest/meta-data/public-keys/0/openssh-key") == KEY
    assert cloud.ask("/ec2/latest/user-data").content == USER_DATA
    assert cloud.text("/latest/meta-data/local-ipv4").count(".") == 3
    for path in ("/latest/meta-data/nope", "/1999-01-01/meta-data", "/latest/meta-data/public-keys/0/_name"):
        assert cloud.ask(path).status_code == 404


def test_config_drive_and_metadata_say_the_same(cloud: Cloud) -> None:
    with cloud.yard.placement.database.read() as connection:
        server = servers.find(connection, cloud.uuid)
    drive = pycdlib.PyCdlib()
    drive.open_fp(io.BytesIO(config_drive.of(msgspec.convert(server_spec.of(server), ServerSpec))))

    def read(path: str) -> bytes:
        found = io.BytesIO()
        drive.get_file_from_iso_fp(found, rr_path=path)
        return found.getvalue()

    for name in ("meta_data.json", "network_data.json", "vendor_data.json", "vendor_data2.json"):
        served = dict(cloud.ask(f"/openstack/latest/{name}").json)
        served.pop("random_seed", None)
        assert served == json.loads(read(f"/openstack/latest/{name}"))
    assert read("/openstack/latest/user_data") == cloud.ask("/openstack/latest/user_data").content
    words = json.loads(read("/ec2/latest/meta-data.json"))
    for name, value in words.items():
        if isinstance(value, str | int):
            assert cloud.text(f"/latest/meta-data/{name}") == str(value)


def test_files_that_came_with_the_request_reach_the_guest_until_it_is_rebuilt(cloud: Cloud) -> None:
    file = {"path": "/etc/motd", "contents": base64.b64encode(b"hello \xff").decode()}
    older = {"openstack-api-version": "compute 2.56"}
    image = cloud.yard.image()
    body = {"name": "two", "flavorRef": "1", "imageRef": image, "networks": "auto", "personality": [file]}
    made = cloud.yard.api.simulate_post("/v2.1/servers", json={"server": body}, headers=older)
    cloud.uuid = made.json["server"]["id"]
    cloud.yard.await_status([cloud.uuid], "ACTIVE")
    told = cloud.ask("/openstack/latest/meta_data.json").json["files"]
    assert told == [{"path": "/etc/motd", "content_path": "/content/0000"}]
    assert cloud.ask("/openstack/content/0000").content == b"hello \xff"
    for path in ("/openstack/content", "/openstack/content/0001", "/openstack/content/0000/x"):
        assert cloud.ask(path).status_code == 404
    rebuild = {"rebuild": {"imageRef": image}}
    asked = cloud.yard.api.simulate_post(f"/v2.1/servers/{cloud.uuid}/action", json=rebuild, headers=older)
    assert asked.status_code == 202, asked.text
    cloud.yard.await_rest()
    assert "files" not in cloud.ask("/openstack/latest/meta_data.json").json
    assert cloud.ask("/openstack/content/0000").status_code == 404


def test_who_is_not_vouched_for_gets_nothing(cloud: Cloud) -> None:
    path = "/openstack/latest/meta_data.json"
    wrong = signature.sign("another", cloud.uuid)
    assert cloud.ask(path, X_Instance_ID_Signature=wrong).status_code == 403
    assert cloud.ask(path, X_Instance_ID_Signature="é").status_code == 403
    for header in ("X_Instance_ID", "X_Instance_ID_Signature", "X_Tenant_ID"):
        left_out: dict[str, Any] = {header: ""}
        answer = cloud.ask(path, **left_out)
        assert answer.status_code == 400
        assert header.replace("_", "-") in answer.text
    assert cloud.ask(path, X_Tenant_ID="another").status_code == 404
    other = "11111111-2222-3333-4444-555555555555"
    signed: dict[str, Any] = {
        "X_Instance_ID": other,
        "X_Instance_ID_Signature": signature.sign(SECRET, other),
    }
    assert cloud.ask(path, **signed).status_code == 404
    assert cloud.ask(path, X_Tenant_ID="", X_Moorage_Host="fake-1").status_code == 200
    assert cloud.ask(path, X_Tenant_ID="", X_Moorage_Host="fake-2").status_code == 404
    cloud.yard.delete(cloud.uuid)
    cloud.yard.await_gone([cloud.uuid])
    assert cloud.ask(path).status_code == 404


def test_a_guest_tells_its_password_once(cloud: Cloud) -> None:
    path = "/openstack/latest/password"
    assert cloud.text(path) == ""
    assert cloud.ask(path, "POST", b"x" * 1021).status_code == 400
    assert cloud.ask(path, "POST", b"\xff\xfe").status_code == 400
    assert cloud.ask(path, "POST", b"encrypted=").status_code == 200
    assert cloud.text(path) == "encrypted="
    assert cloud.ask(path, "POST", b"another").status_code == 409
    shown = cloud.yard.get(f"/v2.1/servers/{cloud.uuid}/os-server-password")
    assert shown == {"password": "encrypted="}
    assert cloud.ask("/openstack/latest/meta_data.json", "POST", b"x").status_code == 400


def test_an_agent_vouches_for_the_guests_of_its_host(cloud: Cloud) -> None:
    port = free_port()
    api = HttpServer("127.0.0.1", port, cloud.yard.cloud.application(), threads=2, longest_body=10_000)
    api.start()
    guests = {"127.0.0.1": GuestOnHost(cloud.uuid, "fake-1")}
    settings = ForwarderSettings(f"http://127.0.0.1:{port}{METADATA_PATH}", SECRET, "127.0.0.1", 0)
    forwarder = MetadataForwarder(settings, guests.get)
    forwarder.start()
    url = f"http://127.0.0.1:{forwarder.port}"
    assert requests.get(f"{url}/latest/meta-data/hostname", timeout=10).text == "uno"
    forged = {"X-Instance-ID": "other", "X-Tenant-ID": "evil"}
    answer = requests.get(f"{url}/openstack/latest/meta_data.json", headers=forged, timeout=10)
    assert (answer.json()["uuid"], answer.headers["content-type"]) == (cloud.uuid, "application/json")
    assert requests.post(f"{url}/openstack/latest/password", data=b"secret", timeout=10).status_code == 200
    guests.clear()
    assert requests.get(f"{url}/latest/meta-data/hostname", timeout=10).status_code == 404
    guests["127.0.0.1"] = GuestOnHost(cloud.uuid, "fake-1")
    api.stop(5)
    assert requests.get(f"{url}/latest/meta-data/hostname", timeout=30).status_code == 503
    forwarder.stop()
