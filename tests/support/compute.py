"""A Compute API on a database, driven through WSGI as any user one likes to be."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

from falcon import testing
from oslo_config import cfg

from moorage.compute.options import OPTIONS as COMPUTE_OPTIONS
from moorage.compute.quotas import unified
from moorage.compute_api import wsgi
from moorage.compute_api.service import ComputeService, ComputeSettings
from moorage.core import config
from moorage.db import engine, migrate
from moorage.db.database import Database
from moorage.db.options import OPTIONS as DATABASE_OPTIONS
from moorage.http.options import OPTIONS as HTTP_OPTIONS
from moorage.images.api import wsgi as image_wsgi
from moorage.images.options import OPTIONS as IMAGE_OPTIONS
from moorage.images.service import ImageService
from moorage.network.options import OPTIONS as NETWORK_OPTIONS
from moorage.network.pool import PoolNetwork, PoolSettings
from moorage.placement.client.local import LocalPlacement
from moorage.placement.options import OPTIONS as PLACEMENT_OPTIONS
from moorage.placement.service import PlacementService

LATEST = "2.96"
_AREAS = (
    DATABASE_OPTIONS,
    HTTP_OPTIONS,
    COMPUTE_OPTIONS,
    PLACEMENT_OPTIONS,
    NETWORK_OPTIONS,
    IMAGE_OPTIONS,
)


@dataclass(frozen=True)
class Answer:
    status: int
    json: Any
    headers: dict[str, str]
    text: str

    @property
    def fault(self) -> tuple[str, str]:
        """The key and the sentence of a refusal."""
        ((key, fault),) = self.json.items()
        assert fault["code"] == self.status
        return key, fault["message"]


@dataclass(frozen=True)
class User:
    """Somebody who talks to the API, at one microversion."""

    client: testing.TestClient
    user_id: str = "root"
    project_id: str = "admin-project"
    roles: str = "admin,member,reader"
    version: str | None = LATEST
    root: str = "/v2.1"

    def at(self, version: str | None) -> User:
        return replace(self, version=version)

    def call(self, method: str, path: str, body: Any = None, headers: dict[str, str] | None = None) -> Answer:
        sent = {"X-Auth-Token": f"{self.user_id}:{self.project_id}", "X-Roles": self.roles}
        if self.version is not None:
            sent["OpenStack-API-Version"] = f"compute {self.version}"
        path, _, query = path.partition("?")
        result = self.client.simulate_request(
            method,
            f"{self.root}{path}",
            query_string=query,
            headers={**sent, **(headers or {})},
            **({} if body is None else {"json": body}),
        )
        is_json = result.content and "json" in result.headers.get("content-type", "")
        return Answer(result.status_code, result.json if is_json else None, dict(result.headers), result.text)

    def get(self, path: str) -> Answer:
        return self.call("GET", path)

    def post(self, path: str, body: Any) -> Answer:
        return self.call("POST", path, body)

    def put(self, path: str, body: Any) -> Answer:
        return self.call("PUT", path, body)

    def delete(self, path: str) -> Answer:
        return self.call("DELETE", path)


@dataclass(frozen=True)
class Cloud:
    conf: cfg.ConfigOpts
    service: ComputeService
    client: testing.TestClient

    @property
    def database(self) -> Database:
        return self.service.database

    @property
    def admin(self) -> User:
        return User(self.client)

    def member(self, user_id: str = "alice", project_id: str = "wonderland") -> User:
        return User(self.client, user_id, project_id, "member,reader")

    def reader(self, user_id: str = "bob", project_id: str = "wonderland") -> User:
        return User(self.client, user_id, project_id, "reader")


@contextmanager
def cloud_on(
    url: str, overrides: dict[str, object] | None = None, files: Sequence[str] = ()
) -> Iterator[Cloud]:
    """All but conductors and agents: what a request writes stays as it was written."""
    directory = tempfile.TemporaryDirectory()
    own = {"database.connection": url, "auth.strategy": "none", "images.directory": directory.name}
    settings = {**own, **(overrides or {})}
    conf = config.read(files, _AREAS, settings)
    connected = engine.for_service(conf)
    migrate.sync(connected)
    database = Database(connected)
    placement = PlacementService.from_conf(conf)
    placement.start()
    images = ImageService.from_conf(conf, database)
    images.catalogue.seed()
    service = ComputeService(
        database,
        ComputeSettings.from_conf(conf),
        images=images.catalogue,
        network=PoolNetwork(database, PoolSettings.from_conf(conf)),
        placement=LocalPlacement(placement),
        unified_limits=unified.connect(conf),
    )
    application = wsgi.build(conf, service, {"/image": image_wsgi.build(conf, images)})
    yield Cloud(conf, service, testing.TestClient(application))
    placement.stop()
    connected.dispose()
    directory.cleanup()
