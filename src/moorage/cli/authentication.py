"""Ways to run without authentication by mistake, refused before anything listens."""

from __future__ import annotations

from keystoneauth1 import loading
from oslo_config import cfg

from moorage.cli.address import is_loopback
from moorage.core.config import ConfigError

KEYSTONE_SECTION = "keystone_authtoken"


def check(conf: cfg.ConfigOpts, listen: str) -> None:
    """Refuse a strategy that would let everybody in, or nobody."""
    if conf.auth.strategy == "none" and not is_loopback(listen):
        # Everybody who can reach the address would be an administrator.
        raise ConfigError(
            f"authentication `none` is allowed on a loopback address only, and {listen} is not one; "
            "use basic or keystone"
        )
    if conf.auth.strategy == "keystone" and not _keystone_is_configured(conf):
        raise ConfigError(
            f"authentication `keystone` needs [{KEYSTONE_SECTION}] with an auth_type in the configuration"
        )


def _keystone_is_configured(conf: cfg.ConfigOpts) -> bool:
    loading.register_auth_conf_options(conf, KEYSTONE_SECTION)
    return bool(conf[KEYSTONE_SECTION].auth_type or conf[KEYSTONE_SECTION].auth_section)
