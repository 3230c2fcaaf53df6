"""The Placement service that `[placement_client]` names, for processes that have none of their own.

The section is keystoneauth's: `auth_type` is `password` with Keystone, or `http_basic` or `none` with an
`endpoint`.
"""

from __future__ import annotations

from collections.abc import Mapping

from keystoneauth1 import exceptions, loading
from oslo_config import cfg

from moorage.core.config import ConfigError
from moorage.placement.client.contract import PlacementUnavailableError
from moorage.placement.client.http import HttpPlacement
from moorage.placement.client.transport import (
    ATTEMPTS,
    AdapterTransport,
    PatientTransport,
    Response,
    Transport,
)

GROUP = "placement_client"


def connect(conf: cfg.ConfigOpts, attempts: int = ATTEMPTS) -> HttpPlacement:
    """The client of a process; nothing is sent yet."""
    try:
        transport = _transport(conf)
    except ConfigError as error:
        if conf.placement.required:
            raise
        transport = _Unconfigured(str(error))
    return HttpPlacement(PatientTransport(transport, attempts))


def is_configured(conf: cfg.ConfigOpts) -> bool:
    """Whether the configuration speaks of a Placement elsewhere at all."""
    loading.register_auth_conf_options(conf, GROUP)
    return conf[GROUP].auth_type is not None


def _transport(conf: cfg.ConfigOpts) -> Transport:
    loading.register_auth_conf_options(conf, GROUP)
    loading.register_session_conf_options(conf, GROUP)
    loading.register_adapter_conf_options(conf, GROUP)
    conf.set_default("service_type", "placement", group=GROUP)
    try:
        auth = loading.load_auth_from_conf_options(conf, GROUP)
        session = loading.load_session_from_conf_options(conf, GROUP, auth=auth)
        adapter = loading.load_adapter_from_conf_options(conf, GROUP, session=session, auth=auth)
    except (exceptions.ClientException, cfg.Error) as error:
        raise ConfigError(f"[{GROUP}]: {error}") from error
    if auth is None:
        raise ConfigError(f"[{GROUP}] does not say how to reach Placement: set auth_type and what it needs")
    return AdapterTransport(adapter)


class _Unconfigured:
    """Stands in for a service that nobody has named, where it may be missing."""

    def __init__(self, problem: str) -> None:
        self._problem = problem

    def send(self, method: str, path: str, body: bytes | None, headers: Mapping[str, str]) -> Response:
        raise PlacementUnavailableError(self._problem)
