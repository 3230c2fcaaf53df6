"""The Placement service that `[placement_client]` names, for processes that have none of their own.

The section is keystoneauth's: `auth_type` is `password` with Keystone, or `http_basic` or `none` with an
`endpoint`.
"""

from __future__ import annotations

from keystoneauth1 import exceptions, loading
from oslo_config import cfg

from moorage.core.config import ConfigError
from moorage.placement.client.http import HttpPlacement
from moorage.placement.client.transport import AdapterTransport

GROUP = "placement_client"


def connect(conf: cfg.ConfigOpts) -> HttpPlacement:
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
    return HttpPlacement(AdapterTransport(adapter))
