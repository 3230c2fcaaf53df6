"""Nodes of fake hardware: how a test enrols them, and what it asks Ironic about them behind our back."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import requests

from tests.support.processes import wait_until

HEADERS = {"X-OpenStack-Ironic-API-Version": "1.82"}


class Nodes:
    """An administrator at Ironic's own API."""

    def __init__(self, url: str, directory: Path, token: str = "") -> None:
        self.url = url
        self.directory = directory
        """Ironic takes images from files in it."""
        self.token = token
        self._headers = {**HEADERS, "X-Auth-Token": token} if token else HEADERS

    def image(self, name: str) -> str:
        """The address of something that Ironic takes for an image."""
        path = self.directory / name
        path.write_bytes(b"an image")
        return path.as_uri()

    def enrol(self, name: str, group: str, resource_class: str = "gold", **more: Any) -> str:
        """A new node that is ready for use; its UUID."""
        traits = more.pop("traits", [])
        node: str = self.ask(
            "POST",
            "nodes",
            {
                "name": name,
                "driver": "fake-hardware",
                "conductor_group": group,
                "resource_class": resource_class,
                "properties": {"cpus": 16, "memory_mb": 65_536, "local_gb": 480, "cpu_arch": "x86_64"},
                **more,
            },
        )["uuid"]
        if traits:
            self.ask("PUT", f"nodes/{node}/traits", {"traits": traits})
        self.provision(node, "manage", "manageable")
        # Fake hardware has no power state until it is given one.
        self.ask("PUT", f"nodes/{node}/states/power", {"target": "power off"})
        self._wait(node, "power_state", "power off")
        self.provision(node, "provide", "available")
        return node

    def provision(self, node: str, target: str, until: str) -> None:
        self.ask("PUT", f"nodes/{node}/states/provision", {"target": target})
        self._wait(node, "provision_state", until)

    def change(self, node: str, **values: Any) -> None:
        self.ask(
            "PATCH",
            f"nodes/{node}",
            [{"op": "add", "path": f"/{name}", "value": value} for name, value in values.items()],
        )

    def show(self, node: str) -> dict[str, Any]:
        shown: dict[str, Any] = self.ask("GET", f"nodes/{node}")
        return shown

    def all(self) -> dict[str, dict[str, Any]]:
        return {node["uuid"]: node for node in self.listed("nodes", "uuid", "detail=true")}

    def conductors(self) -> int:
        return sum(conductor["alive"] for conductor in self.listed("conductors", "hostname"))

    def listed(self, collection: str, key: str = "uuid", query: str = "") -> list[dict[str, Any]]:
        """Page after page, until one is empty."""
        found: list[dict[str, Any]] = []
        while True:
            marker = f"&marker={found[-1][key]}" if found else ""
            page = self.ask("GET", f"{collection}?{query}{marker}")[collection]
            if not page:
                return found
            found += page

    def ask(self, method: str, path: str, body: Any = None) -> Any:
        """Waits a while for a node that is locked."""
        deadline = time.monotonic() + 20
        while True:
            url = f"{self.url}/v1/{path}"
            answer = requests.request(method, url, json=body, headers=self._headers, timeout=30)
            if answer.status_code not in (409, 503) or time.monotonic() > deadline:
                assert answer.ok, f"{method} {path}: {answer.status_code} {answer.text}"
                return answer.json() if answer.content else None
            time.sleep(0.2)

    def _wait(self, node: str, field: str, value: str) -> None:
        def reached() -> bool:
            shown = self.show(node)
            return shown[field] == value and not shown["reservation"]

        wait_until(reached, f"{field} = {value}", 60)
