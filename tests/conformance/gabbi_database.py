"""Stands in for the database helpers that the reference's fixtures use, on top of the HTTP API."""

from __future__ import annotations

import json
import urllib.error
import urllib.request
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any


class FixtureError(Exception):
    """The service refused what a fixture needs; the suite can't be judged."""


class Api:
    """What the fixtures need of the Placement API."""

    def __init__(self, url: str, token: str = "admin") -> None:
        self.url = url.rstrip("/")
        self.token = token

    def __call__(self, method: str, path: str, body: Any = None, version: str = "1.39") -> Any:
        headers = {
            "x-auth-token": self.token,
            "accept": "application/json",
            "openstack-api-version": f"placement {version}",
        }
        data = None
        if body is not None:
            data = json.dumps(body).encode()
            headers["content-type"] = "application/json"
        request = urllib.request.Request(self.url + path, data, headers, method=method)
        try:
            with urllib.request.urlopen(request, timeout=60) as reply:
                text = reply.read()
        except urllib.error.HTTPError as error:
            raise FixtureError(f"{method} {path}: {error.code} {error.read()[:500]!r}") from None
        return json.loads(text) if text else None


@dataclass(frozen=True)
class Named:
    """A user or a project: the API knows them by their external id alone."""

    external_id: str


@dataclass(frozen=True)
class Consumer:
    """Comes into being with its first allocation."""

    uuid: str
    user: Named
    project: Named


@dataclass(frozen=True)
class Creatable:
    """An object whose `create()` the fixtures call."""

    external_id: str
    create: Callable[[], None] = lambda: None


@dataclass(frozen=True)
class Provider:
    api: Api
    uuid: str

    @property
    def path(self) -> str:
        return f"/resource_providers/{self.uuid}"

    @property
    def generation(self) -> int:
        generation: int = self.api("GET", self.path)["generation"]
        return generation

    def set_aggregates(self, aggregates: Iterable[str]) -> None:
        """Below 1.19 this leaves the generation alone, as the reference's object does."""
        self.api("PUT", f"{self.path}/aggregates", list(aggregates), version="1.18")


class Database:
    """The names and signatures are those that the fixtures call."""

    def __init__(self, api: Api, sentinels: Any, generate_uuid: Callable[[], str]) -> None:
        self.api = api
        self.sentinels = sentinels
        self.generate_uuid = generate_uuid

    def create_provider(self, context: object, name: str, *aggregates: str, **options: Any) -> Provider:
        uuid = options.get("uuid") or getattr(self.sentinels, name)
        body = {"name": name, "uuid": uuid}
        if options.get("parent"):
            body["parent_provider_uuid"] = options["parent"]
        self.api("POST", "/resource_providers", body)
        provider = Provider(self.api, uuid)
        if aggregates:
            provider.set_aggregates(aggregates)
        return provider

    def ensure_rc(self, context: object, name: str) -> None:
        if name.startswith("CUSTOM_"):
            self.api("PUT", f"/resource_classes/{name}")

    def add_inventory(self, provider: Provider, resource_class: str, total: int, **options: Any) -> None:
        self.ensure_rc(None, resource_class)
        body = {
            "resource_class": resource_class,
            "total": total,
            "max_unit": total,
            "reserved": 0,
            "min_unit": 1,
            "step_size": 1,
            "allocation_ratio": 1.0,
            "resource_provider_generation": provider.generation,
            **options,
        }
        self.api("POST", f"{provider.path}/inventories", body)

    def set_traits(self, provider: Provider, *traits: str) -> None:
        for name in traits:
            if name.startswith("CUSTOM_"):
                self.api("PUT", f"/traits/{name}")
        body = {"traits": list(traits), "resource_provider_generation": provider.generation}
        self.api("PUT", f"{provider.path}/traits", body)

    def create_user_and_project(self, context: object, prefix: str = "fake") -> tuple[Named, Named]:
        return Named(f"{prefix}-user"), Named(f"{prefix}-project")

    def ensure_consumer(
        self, context: object, user: Named, project: Named, consumer_id: str | None = None
    ) -> Consumer:
        return Consumer(consumer_id or self.generate_uuid(), user, project)

    def set_allocation(
        self, context: object, provider: Provider, consumer: Consumer, used: dict[str, int]
    ) -> None:
        """At 1.28 there is no consumer type, as for a consumer that the reference's objects make."""
        body = {
            "allocations": {provider.uuid: {"resources": used}},
            "project_id": consumer.project.external_id,
            "user_id": consumer.user.external_id,
            "consumer_generation": None,
        }
        self.api("PUT", f"/allocations/{consumer.uuid}", body, version="1.28")

    def User(self, context: object, external_id: str) -> Creatable:  # noqa: N802
        return Creatable(external_id)

    Project = User

    def ResourceClass(self, context: object, name: str) -> Creatable:  # noqa: N802
        return Creatable(name, lambda: self.ensure_rc(context, name))
