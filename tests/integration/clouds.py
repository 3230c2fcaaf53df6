"""What tests of real clients share: a node to look at, and ways to write a clouds.yaml."""

from __future__ import annotations

import json
from typing import Any

import requests

from tests.lab.keystone.service import Keystone, Person
from tests.lab.keystone.settings import REGION

NODE = "10000000-0000-4000-8000-000000000001"


def add_node(url: str, headers: dict[str, str], auth: tuple[str, str] | None = None) -> None:
    """Report one node with 16 cores."""
    node: dict[str, Any] = {"uuid": NODE, "name": "node-1", "inventories": {"VCPU": {"total": 16}}}
    answer = requests.post(
        f"{url}/moorage/v1/providers", json={"providers": [node]}, headers=headers, auth=auth, timeout=30
    )
    assert answer.status_code == 200, answer.text


def keystone_clouds(keystone: Keystone, *people: Person) -> str:
    """A cloud for each person. (JSON is YAML.)"""
    clouds = {
        person.name: {"auth": person.auth(keystone.url), "region_name": REGION, "identity_api_version": "3"}
        for person in people
    }
    return json.dumps({"clouds": clouds})
