"""Other OpenStack services, reached with the sections that operators know: keystoneauth's options."""

from __future__ import annotations

from keystoneauth1 import exceptions, loading
from keystoneauth1.adapter import Adapter
from oslo_config import cfg

from moorage.core.config import ConfigError

DENIALS = (
    exceptions.AuthPluginException,
    exceptions.BadRequest,
    exceptions.CatalogException,
    exceptions.Forbidden,
    exceptions.NotFound,
    exceptions.Unauthorized,
)
"""What a Keystone that is there says to credentials, or to a wish, that are wrong."""


class NoCredentialsError(ConfigError):
    """The section of a service has no credentials."""


def adapter(conf: cfg.ConfigOpts, group: str, service_type: str, timeout: float) -> Adapter:
    """With the credentials of a section; nothing is sent yet. `timeout` holds where the section has none."""
    loading.register_auth_conf_options(conf, group)
    loading.register_session_conf_options(conf, group)
    loading.register_adapter_conf_options(conf, group)
    conf.set_default("timeout", timeout, group=group)
    conf.set_default("service_type", service_type, group=group)
    try:
        auth = loading.load_auth_from_conf_options(conf, group)
        session = loading.load_session_from_conf_options(conf, group, auth=auth)
        made = loading.load_adapter_from_conf_options(conf, group, session=session, auth=auth)
    except (exceptions.ClientException, cfg.Error) as error:
        raise ConfigError(f"[{group}]: {error}") from error
    if auth is None:
        raise NoCredentialsError(f"[{group}] has no credentials: set auth_type and what it needs")
    return made


def versioned(adapter: Adapter, version: str) -> str:
    """What paths of this API version begin with: some catalogues have it in the address already."""
    endpoint = adapter.get_endpoint() or ""
    return "" if endpoint.rstrip("/").endswith(version) else version
