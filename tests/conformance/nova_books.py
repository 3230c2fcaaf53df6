"""What Placement holds for a Nova, with names in the place of what differs from one Nova to the next."""

from __future__ import annotations

import re
from typing import Any

import requests

VERSION = "1.39"
UUID = re.compile(r"[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}")
Books = dict[str, Any]


class Auditor:
    """Reads everything in a Placement service, and changes what an operator would change by hand."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.names: dict[str, str] = {}
        """By UUID: servers, migrations, aggregates."""

    def ask(self, method: str, path: str, body: Any = None) -> Any:
        headers = {"X-Auth-Token": "admin", "OpenStack-API-Version": f"placement {VERSION}"}
        answer = requests.request(method, f"{self.url}{path}", json=body, headers=headers, timeout=60)
        assert answer.ok, f"{method} {path}: {answer.status_code} {answer.text}"
        return answer.json() if answer.content else None

    def providers(self) -> dict[str, str]:
        """UUIDs by name."""
        found = self.ask("GET", "/resource_providers")["resource_providers"]
        return {provider["name"]: provider["uuid"] for provider in found}

    def consumers(self) -> set[str]:
        """Names of all that hold something."""
        return set(self.books()["consumers"])

    def books(self) -> Books:
        providers = self.ask("GET", "/resource_providers")["resource_providers"]
        known = {**self.names, **{provider["uuid"]: provider["name"] for provider in providers}}
        holders: set[str] = set()
        told = {}
        for provider in providers:
            path = f"/resource_providers/{provider['uuid']}"
            holders |= set(self.ask("GET", f"{path}/allocations")["allocations"])
            told[provider["name"]] = {
                "parent": known.get(provider["parent_provider_uuid"]),
                "root": known[provider["root_provider_uuid"]],
                "inventories": self.ask("GET", f"{path}/inventories")["inventories"],
                "traits": sorted(self.ask("GET", f"{path}/traits")["traits"]),
                "aggregates": sorted(
                    known.get(uuid, uuid) for uuid in self.ask("GET", f"{path}/aggregates")["aggregates"]
                ),
                "usages": self.ask("GET", f"{path}/usages")["usages"],
            }
        return {
            "providers": told,
            "consumers": {known.get(uuid, uuid): self._held(uuid, known) for uuid in holders},
        }

    def _held(self, consumer: str, known: dict[str, str]) -> dict[str, Any]:
        held = self.ask("GET", f"/allocations/{consumer}")
        del held["consumer_generation"]  # counts how often Nova wrote
        held["allocations"] = {
            known[uuid]: allocation["resources"] for uuid, allocation in held["allocations"].items()
        }
        return dict(held)

    def in_words(self, text: str) -> str:
        """What a command printed, with names in it."""
        known = {**self.names, **{uuid: name for name, uuid in self.providers().items()}}
        return UUID.sub(lambda found: known.get(found.group(), found.group()), text)
