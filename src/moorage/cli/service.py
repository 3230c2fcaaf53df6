"""How the command line reaches a running Placement service: as any OpenStack client does.

A cloud is named with `--cloud` or `OS_CLOUD`, or described by the other `OS_…` variables. Without either, the
`clouds.yaml` that `moorage up` left in its data directory is used, so that nothing has to be set for it.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import typer
from keystoneauth1 import exceptions
from openstack.config import OpenStackConfig
from openstack.config.cloud_region import CloudRegion
from openstack.exceptions import ConfigException

from moorage.cli.errors import CommandError

MICROVERSION = "placement 1.39"

Cloud = Annotated[
    str | None,
    typer.Option(envvar="OS_CLOUD", help="A cloud of your clouds.yaml.", show_default=False),
]
Data = Annotated[Path, typer.Option(help="The data directory of `moorage up`; used if no cloud is named.")]


def ask(path: str, parameters: Mapping[str, Any], cloud: str | None, data: Path) -> Any:
    """The decoded answer of the service; its refusal becomes a sentence."""
    try:
        session = _region(cloud, data).get_session_client("placement")
        answer = session.get(
            path, params=parameters, headers={"OpenStack-API-Version": MICROVERSION}, raise_exc=False
        )
    except (exceptions.ClientException, ConfigException) as error:
        raise CommandError(f"Placement can't be reached: {error}") from error
    if answer.status_code >= 400:
        raise CommandError(_reason(answer))
    return answer.json()


def _region(cloud: str | None, data: Path) -> CloudRegion:
    own = data / "clouds.yaml"
    if cloud is None and not any(name in os.environ for name in ("OS_AUTH_URL", "OS_AUTH_TYPE")):
        if not own.exists():
            raise CommandError(f"no cloud is named (--cloud, OS_CLOUD), and there is no {own}")
        return OpenStackConfig(config_files=[str(own)], load_envvars=False).get_one(cloud="moorage")
    return OpenStackConfig().get_one(cloud=cloud)


def _reason(answer: Any) -> str:
    try:
        detail = answer.json()["errors"][0]["detail"]
    except (ValueError, LookupError, TypeError):
        detail = answer.text
    return f"Placement answered {answer.status_code}: {' '.join(detail.split())}"
