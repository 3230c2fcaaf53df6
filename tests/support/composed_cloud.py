"""The cloud that the compose file describes: what it is made of, and a server on it, whoever started it."""

from __future__ import annotations

import importlib
import shutil
import subprocess
import sys
from collections.abc import Set
from contextlib import suppress
from pathlib import Path
from typing import Any

import requests

from packages import source
from tests.support.processes import wait_until

CONTAINERS = source.ROOT / "packages/containers"
ADMIN = ("admin", "moorage")
HOSTS = frozenset({"agent-1", "agent-2"})


def services() -> dict[str, Any]:
    yaml: Any = importlib.import_module("yaml")  # comes with oslo.config
    found: dict[str, Any] = yaml.safe_load((CONTAINERS / "compose.yaml").read_text())["services"]
    return found


def lay_out(clone: Path) -> Path:
    """As much of a clone as images are made of, after `make deb`; the directory of the compose file."""
    subprocess.run(
        [sys.executable, "-m", "packages.debian", str(clone / "dist")], check=True, cwd=source.ROOT
    )
    return shutil.copytree(CONTAINERS, clone / "packages/containers")


def boots(compute: str, placement: str, hosts: Set[str] = HOSTS) -> None:
    """A server, as soon as the cloud has come up: in whatever order its pieces have."""
    wait_until(lambda: _hosts_up(compute) == hosts, "all hosts", 120)
    wait_until(lambda: _providers(placement) == hosts, "all hosts to say what they have", 60)
    wait_until(lambda: bool(_images(compute)), "the catalogue, which is filled last", 60)
    asked = {"server": {"name": "one", "flavorRef": "1", "imageRef": _images(compute)[0]}}
    made = requests.post(f"{compute}/v2.1/servers", json=asked, auth=ADMIN, timeout=30)
    assert made.status_code == 202, made.text
    path = f"/v2.1/servers/{made.json()['server']['id']}"
    wait_until(lambda: bool(_answer(compute, path)["server"]["status"] == "ACTIVE"), "the server", 120)


def _hosts_up(compute: str) -> set[str]:
    with suppress(requests.ConnectionError):
        found = _answer(compute, "/v2.1/os-services?binary=nova-compute")["services"]
        return {row["host"] for row in found if row["state"] == "up"}
    return set()


def _providers(placement: str) -> set[str]:
    """Those that can take a server."""
    with suppress(requests.ConnectionError):
        found = _answer(placement, "/resource_providers?resources=VCPU:1")["resource_providers"]
        return {provider["name"] for provider in found}
    return set()


def _images(compute: str) -> list[str]:
    return [
        found["id"] for found in _answer(compute, "/image/v2/images")["images"] if "cirros" in found["name"]
    ]


def _answer(url: str, path: str) -> Any:
    newest = {"OpenStack-API-Version": "placement 1.39"}
    answer = requests.get(f"{url}{path}", auth=ADMIN, headers=newest, timeout=30)
    assert answer.status_code == 200, answer.text
    return answer.json()
