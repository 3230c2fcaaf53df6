"""Connections to other OpenStack services, from the sections that operators know: keystoneauth's options."""

from __future__ import annotations

from keystoneauth1 import exceptions, loading
from openstack.connection import Connection
from oslo_config import cfg

from moorage.core.config import ConfigError


def connect(conf: cfg.ConfigOpts, group: str, service_type: str, timeout: float) -> Connection:
    """With the credentials of a section; nothing is sent yet. `timeout` holds where the section has none."""
    loading.register_auth_conf_options(conf, group)
    loading.register_session_conf_options(conf, group)
    loading.register_adapter_conf_options(conf, group)
    conf.set_default("timeout", timeout, group=group)
    try:
        auth = loading.load_auth_from_conf_options(conf, group)
        session = loading.load_session_from_conf_options(conf, group, auth=auth)
    except (exceptions.ClientException, cfg.Error) as error:
        raise ConfigError(f"[{group}]: {error}") from error
    if auth is None:
        raise ConfigError(f"[{group}] has no credentials: set auth_type and what it needs")
    return Connection(session=session, oslo_conf=conf, service_types=[service_type])


def is_configured(conf: cfg.ConfigOpts, group: str) -> bool:
    """Whether the section has credentials at all."""
    loading.register_auth_conf_options(conf, group)
    return conf[group].auth_type is not None
