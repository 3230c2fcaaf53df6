"""How the command line reaches a running Placement service: as any OpenStack client does.

A cloud is named with `--cloud` or `OS_CLOUD`, or described by the other `OS_…` variables. Without either, the
`clouds.yaml` that `moorage up` left in its data directory is used, so that nothing has to be set for it.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from keystoneauth1 import exceptions
from keystoneauth1.adapter import Adapter

from moorage.cli.errors import CommandError

MICROVERSION = "placement 1.39"


def ask(path: str, query: str, cloud: str | None, data: Path) -> bytes:
    """The service's answer as it sent it; its refusal becomes a sentence."""
    try:
        answer = _placement(cloud, data).get(
            f"{path}?{query}", headers={"OpenStack-API-Version": MICROVERSION}, raise_exc=False
        )
    except exceptions.ClientException as error:
        raise CommandError(f"Placement can't be reached: {error}") from error
    if answer.status_code >= 400:
        raise CommandError(_reason(answer))
    content: bytes = answer.content
    return content


def _placement(cloud: str | None, data: Path) -> Adapter:
    from openstack import config  # half a second to import, which only these commands should pay
    from openstack.exceptions import ConfigException

    own = data / "clouds.yaml"
    described = cloud is not None or any(name in os.environ for name in ("OS_AUTH_URL", "OS_AUTH_TYPE"))
    if not described and not own.exists():
        raise CommandError(f"no cloud is named (--cloud, OS_CLOUD), and there is no {own}")
    try:
        if described:
            region = config.OpenStackConfig().get_one(cloud=cloud)
        else:
            region = config.OpenStackConfig(config_files=[str(own)], load_envvars=False).get_one("moorage")
    except ConfigException as error:
        raise CommandError(str(error)) from error
    return Adapter(
        region.get_session(),
        service_type="placement",
        interface=region.get_interface("placement"),
        region_name=region.get_region_name("placement"),
        endpoint_override=region.get_endpoint("placement"),
    )


def _reason(answer: Any) -> str:
    try:
        detail = answer.json()["errors"][0]["detail"]
    except (ValueError, LookupError, TypeError):
        detail = answer.text
    return f"Placement answered {answer.status_code}: {' '.join(detail.split())}"
