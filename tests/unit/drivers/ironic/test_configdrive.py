"""What is on a config drive, read as a system reads it that finds the disk by its label."""

from __future__ import annotations

import base64
import gzip
import io
import json
import os
from typing import Any

import pycdlib
import pytest

from moorage.drivers.contract import DriverError, ServerSpec
from moorage.drivers.ironic.servers import configdrive

PORT = {"id": "port-1", "mac": "fa:16:3e:00:00:01", "addresses": ["10.0.0.5", "fd00::5"]}


def spec(**more: Any) -> ServerSpec:
    return ServerSpec("server-1", "web", "project-1", "user-1", "node-1", {}, **more)


def disk(server: ServerSpec) -> pycdlib.PyCdlib:
    read = pycdlib.PyCdlib()
    read.open_fp(io.BytesIO(gzip.decompress(base64.b64decode(configdrive.encoded(server)))))
    return read


def content(read: pycdlib.PyCdlib, path: str, names: str) -> bytes:
    found = io.BytesIO()
    read.get_file_from_iso_fp(found, **{names: path})
    return found.getvalue()


@pytest.mark.parametrize("names", ["rr_path", "joliet_path"])
@pytest.mark.parametrize("version", ["latest", "2012-08-10"])
def test_a_system_finds_what_it_looks_for(names: str, version: str) -> None:
    script = b"#!/bin/sh\n"
    read = disk(
        spec(
            user_data=base64.b64encode(script).decode(),
            key_name="mine",
            public_key="ssh-ed25519 AAAA",
            metadata={"role": "web"},
            network=[PORT],
        )
    )
    assert read.pvd.volume_identifier.decode().strip() == "config-2"
    directory = f"/openstack/{version}"
    assert content(read, f"{directory}/user_data", names) == script
    meta = json.loads(content(read, f"{directory}/meta_data.json", names))
    assert (meta["uuid"], meta["public_keys"], meta["meta"]) == (
        "server-1",
        {"mine": "ssh-ed25519 AAAA"},
        {"role": "web"},
    )
    network = json.loads(content(read, f"{directory}/network_data.json", names))
    assert network["links"][0]["ethernet_mac_address"] == PORT["mac"]
    kinds = [(one["type"], one["ip_address"]) for one in network["networks"]]
    assert kinds == [("ipv4", "10.0.0.5"), ("ipv6", "fd00::5")]


@pytest.mark.parametrize("names", ["rr_path", "joliet_path"])
def test_files_of_the_request_are_beside_the_versions(names: str) -> None:
    files = [{"path": f"/etc/{name}", "contents": base64.b64encode(name.encode()).decode()} for name in "ab"]
    read = disk(spec(files=files))
    told = json.loads(content(read, "/openstack/latest/meta_data.json", names))["files"]
    assert [file["path"] for file in told] == ["/etc/a", "/etc/b"]
    assert [content(read, f"/openstack{file['content_path']}", names) for file in told] == [b"a", b"b"]


def test_user_data_need_not_be_text() -> None:
    data = b"\x1f\x8b\xff\xfe\x00"
    read = disk(spec(user_data=base64.b64encode(data).decode()))
    assert content(read, "/openstack/latest/user_data", "rr_path") == data


def test_without_user_data_there_is_no_such_file() -> None:
    with pytest.raises(pycdlib.pycdlibexception.PyCdlibException):
        content(disk(spec()), "/openstack/latest/user_data", "rr_path")


def test_the_largest_user_data_that_the_api_takes_fits_and_what_can_not_fit_is_told() -> None:
    largest = base64.b64encode(os.urandom(49_000)).decode()
    assert len(configdrive.encoded(spec(user_data=largest))) < 300_000
    with pytest.raises(DriverError, match="too large") as error:
        configdrive.encoded(spec(user_data=base64.b64encode(os.urandom(600_000)).decode()))
    assert not error.value.retry_elsewhere


def test_user_data_that_is_no_base64_is_told() -> None:
    with pytest.raises(DriverError, match="user data"):
        configdrive.encoded(spec(user_data="A"))
