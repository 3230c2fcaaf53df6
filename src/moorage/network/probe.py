"""A first look at the network service that the configuration names: would a conductor get along with it?"""

from __future__ import annotations

from enum import StrEnum
from typing import NamedTuple

from oslo_config import cfg

from moorage.core.config import ConfigError
from moorage.core.openstack_services import NoCredentialsError
from moorage.network.connect import link
from moorage.network.contract import NetworkDeniedError, NetworkUnavailableError
from moorage.network.neutron_link import NeutronFault


class NetworkHealth(StrEnum):
    READY = "ready"
    MISSING = "missing"
    """There are no credentials."""
    MISCONFIGURED = "misconfigured"
    DENIED = "denied"
    UNREACHABLE = "unreachable"
    """It may be there in a moment; all others need an operator."""


class NetworkProbe(NamedTuple):
    health: NetworkHealth
    sentence: str = ""
    """What is wrong."""


def probe(conf: cfg.ConfigOpts) -> NetworkProbe:
    """Ask once; the built-in pools are always ready."""
    if conf.network.provider != "neutron":
        return NetworkProbe(NetworkHealth.READY)
    try:
        link(conf).find_some("networks", [("limit", "1"), ("fields", "id")])
    except NoCredentialsError as error:
        return NetworkProbe(NetworkHealth.MISSING, str(error))
    except ConfigError as error:
        return NetworkProbe(NetworkHealth.MISCONFIGURED, str(error))
    except (NetworkDeniedError, NeutronFault) as error:
        return NetworkProbe(NetworkHealth.DENIED, str(error))
    except NetworkUnavailableError as error:
        return NetworkProbe(NetworkHealth.UNREACHABLE, str(error))
    return NetworkProbe(NetworkHealth.READY)
