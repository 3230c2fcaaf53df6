"""Config drives: a small disk with what a server shall know of itself, as cloud-init and glean look for it.

Ironic would make one from its contents, but only with the order to deploy, which must bring nothing along. So
it is made here, and written down with the rest of the deployment.
"""

from __future__ import annotations

import base64
import binascii
import gzip
import io
from collections.abc import Mapping
from typing import Any

import msgspec
import pycdlib

from moorage.drivers.contract import DriverError, ServerSpec

_LABEL = "config-2"
"""By which systems find the disk."""
_VERSIONS = ("2012-08-10", "latest")
_LARGEST = 768 * 1024
"""Of what goes to Ironic, whose API takes 1 MiB in a change of a node."""


def encoded(spec: ServerSpec) -> str:
    """The drive as Ironic takes it; an error that says so if it is too large for that."""
    disk = gzip.compress(_disk(files(spec)), mtime=0)
    text = base64.b64encode(disk).decode()
    if len(text) > _LARGEST:
        raise DriverError(
            f"the config drive is too large: {len(text) // 1024} KiB, Ironic takes {_LARGEST // 1024}"
        )
    return text


def files(spec: ServerSpec) -> dict[str, bytes]:
    """The contents, by name."""
    meta: dict[str, Any] = {
        "uuid": spec.uuid,
        "name": spec.name,
        "hostname": spec.name,
        "project_id": spec.project_id,
        "meta": spec.metadata,
        "launch_index": 0,
    }
    if spec.public_key:
        meta["public_keys"] = {spec.key_name or "key": spec.public_key}
    found = {
        "meta_data.json": msgspec.json.encode(meta),
        "network_data.json": msgspec.json.encode(_network_data(spec)),
    }
    if spec.user_data:
        found["user_data"] = _decoded(spec.user_data)
    return found


def _disk(contents: Mapping[str, bytes]) -> bytes:
    """An ISO 9660 image, with the names that Linux and Windows read."""
    disk = pycdlib.PyCdlib()
    disk.new(interchange_level=4, joliet=3, rock_ridge="1.09", vol_ident=_LABEL)
    disk.add_directory("/openstack", rr_name="openstack", joliet_path="/openstack")
    for version in _VERSIONS:
        directory = f"/openstack/{version}"
        disk.add_directory(directory, rr_name=version, joliet_path=directory)
        for name, content in contents.items():
            path = f"{directory}/{name}"
            disk.add_fp(io.BytesIO(content), len(content), path, rr_name=name, joliet_path=path)
    written = io.BytesIO()
    disk.write_fp(written)
    disk.close()
    return written.getvalue()


def _decoded(user_data: str) -> bytes:
    """Users send it in base64; it goes to the disk as it shall be read, text or not."""
    try:
        return base64.b64decode(user_data)
    except (binascii.Error, ValueError) as error:
        raise DriverError(f"the user data can't be decoded: {error}") from error


def _network_data(spec: ServerSpec) -> dict[str, Any]:
    links: list[dict[str, Any]] = []
    networks: list[dict[str, Any]] = []
    for number, port in enumerate(spec.network):
        link = f"link{number}"
        links.append(
            {"id": link, "type": "phy", "ethernet_mac_address": port.get("mac", ""), "vif_id": port["id"]}
        )
        for address in port.get("addresses", []):
            networks.append(
                {
                    "id": f"network{len(networks)}",
                    "type": "ipv6" if ":" in address else "ipv4",
                    "link": link,
                    "ip_address": address,
                    "network_id": port.get("network_id", ""),
                }
            )
    return {"links": links, "networks": networks, "services": []}
