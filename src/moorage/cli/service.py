"""How the command line reaches a running service: as any OpenStack client does.

A cloud is named with `--cloud` or `OS_CLOUD`, or described by the other `OS_…` variables. Without either, the
`clouds.yaml` that `moorage up` left in its data directory is used, so that nothing has to be set for it.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from keystoneauth1 import exceptions
from keystoneauth1.adapter import Adapter

from moorage.cli.errors import CommandError

if TYPE_CHECKING:
    from openstack.config.cloud_region import CloudRegion
    from openstack.connection import Connection


T = TypeVar("T")
_PATIENCE, _PAUSE = 120.0, 1.0
_AWAY = (502, 503, 504)


class AwayError(CommandError):
    """Nobody answers now. Who watches what goes on by itself asks again."""


class ServiceType(StrEnum):
    """Which of the cloud's services is asked; the value is its microversion header."""

    PLACEMENT = "placement 1.39"
    COMPUTE = "compute 2.96"
    IMAGE = "image 2.0"

    @property
    def type(self) -> str:
        return self.split()[0]


def ask(
    path: str, query: str, cloud: str | None, data: Path, service: ServiceType = ServiceType.PLACEMENT
) -> bytes:
    """The service's answer as it sent it; its refusal becomes a sentence."""
    return answer("GET", f"{path}?{query}", None, cloud, data, service)


def patiently(ask: Callable[[], T]) -> T:
    """Its answer, over a restart of who is asked; for a watch, which nothing depends on."""
    deadline = time.monotonic() + _PATIENCE
    while True:
        try:
            return ask()
        except AwayError:
            if time.monotonic() > deadline:
                raise
            time.sleep(_PAUSE)


def put_to(path: str, body: Any, cloud: str | None, data: Path, service: ServiceType) -> bytes:
    """As `ask`, for a question that has a body."""
    return answer("POST", path, body, cloud, data, service)


def connect(cloud: str | None, data: Path) -> Connection:
    """The cloud as openstacksdk sees it: for what it finds by names."""
    from openstack.connection import Connection  # half a second to import, which only some commands pay

    return Connection(config=_region(cloud, data))


@contextmanager
def plain_words() -> Iterator[None]:
    """What may go wrong while openstacksdk is at work, in a sentence."""
    from openstack.exceptions import SDKException

    try:
        yield
    except exceptions.ClientException as error:
        raise CommandError(f"the cloud can't be reached: {error}") from error
    except SDKException as error:
        raise CommandError(str(error)) from error


def answer(method: str, path: str, body: Any, cloud: str | None, data: Path, service: ServiceType) -> bytes:
    """As `ask`, by any method."""
    name = service.type.capitalize()
    headers = {"OpenStack-API-Version": service.value}
    try:
        said = adapter(cloud, data, service).request(
            path, method, headers=headers, raise_exc=False, **({} if body is None else {"json": body})
        )
    except exceptions.ClientException as error:
        raise AwayError(f"{name} can't be reached: {error}") from error
    if said.status_code >= 400:
        kind = AwayError if said.status_code in _AWAY else CommandError
        raise kind(f"{name} answered {said.status_code}: {reason(said)}")
    content: bytes = said.content
    return content


def adapter(cloud: str | None, data: Path, service: ServiceType) -> Adapter:
    region = _region(cloud, data)
    return Adapter(
        region.get_session(),
        service_type=service.type,
        interface=region.get_interface(service.type),
        region_name=region.get_region_name(service.type),
        endpoint_override=region.get_endpoint(service.type),
    )


def _region(cloud: str | None, data: Path) -> CloudRegion:
    from openstack import config
    from openstack.exceptions import ConfigException

    own = data / "clouds.yaml"
    described = cloud is not None or any(name in os.environ for name in ("OS_AUTH_URL", "OS_AUTH_TYPE"))
    if not described and not own.exists():
        raise CommandError(f"no cloud is named (--cloud, OS_CLOUD), and there is no {own}")
    try:
        if described:
            return config.OpenStackConfig().get_one(cloud=cloud)
        return config.OpenStackConfig(config_files=[str(own)], load_envvars=False).get_one("moorage")
    except ConfigException as error:
        raise CommandError(str(error)) from error


def reason(answer: Any) -> str:
    """Placement says `errors`, Compute the kind of the refusal; both have a sentence in it."""
    try:
        body = answer.json()
        detail = body["errors"][0]["detail"] if "errors" in body else next(iter(body.values()))["message"]
    except (ValueError, LookupError, TypeError, AttributeError):
        detail = answer.text
    said = " ".join(detail.split())
    return said.partition(" Failed validating ")[0]  # what follows is the schema, for programmers
