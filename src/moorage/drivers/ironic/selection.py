"""The way in which a bare-metal agent gets machines, as `[ironic] node_selection` says.

Servers that got their machines in the other way are looked after until they are gone: a host may change its
way at any restart.
"""

from __future__ import annotations

import logging

from oslo_config import cfg

from moorage.core.config import ConfigError
from moorage.drivers.ironic.api.client import RESERVATIONS, BusyError, IronicClient, IronicError
from moorage.drivers.ironic.nodes.partition import Partition
from moorage.drivers.ironic.reservations.choosing import ChoosingDriver
from moorage.drivers.ironic.reservations.reserving import ReservingDriver
from moorage.drivers.ironic.settings import IronicSettings
from moorage.drivers.shared_nodes import RESERVATION

LOG = logging.getLogger(__name__)


def driver(conf: cfg.ConfigOpts, host: str, client: IronicClient) -> ReservingDriver:
    kind = (
        ReservingDriver
        if conf.ironic.node_selection == RESERVATION and _can_reserve(client)
        else ChoosingDriver
    )
    return kind(client, Partition.from_conf(conf), host, IronicSettings.from_conf(conf))


def _can_reserve(client: IronicClient) -> bool:
    """An Ironic that is away is taken for one that can: if it can't, nothing happens until a restart."""
    try:
        version = client.version()
    except BusyError as error:
        LOG.warning("it is not known yet whether this Ironic can reserve nodes: %s", error)
        return True
    except IronicError as error:
        raise ConfigError(f"[ironic]: {error}") from error
    if version >= RESERVATIONS:
        return True
    LOG.warning(
        "DEPRECATED: this Ironic can't reserve nodes, which takes API version %d.%d: it knows %d.%d. "
        "[ironic] node_selection = reservation is taken for `scheduler`, which a later release will refuse",
        *RESERVATIONS,
        *version,
    )
    return False
