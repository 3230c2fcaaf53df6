"""The way in which a bare-metal agent gets machines, as `[ironic] node_selection` says, and if it may.

Servers that got their machines in one way can't be looked after in the other: a host does not change its way
as long as there are such.
"""

from __future__ import annotations

import logging

from oslo_config import cfg

from moorage.core.config import ConfigError
from moorage.drivers.contract import DriverError
from moorage.drivers.ironic.api.client import RESERVATIONS, BusyError, IronicClient, IronicError
from moorage.drivers.ironic.driver import IronicDriver
from moorage.drivers.ironic.nodes.partition import Partition
from moorage.drivers.ironic.reservations import reservation
from moorage.drivers.ironic.reservations.reserving import ReservingDriver
from moorage.drivers.ironic.settings import IronicSettings
from moorage.drivers.shared_nodes import RESERVATION
from moorage.placement.client.contract import PlacementClient, PlacementUnavailableError

LOG = logging.getLogger(__name__)


def driver(
    conf: cfg.ConfigOpts, host: str, client: IronicClient, placement: PlacementClient
) -> IronicDriver | ReservingDriver:
    """ConfigError if the host has servers that got their machines in another way."""
    partition, settings = Partition.from_conf(conf), IronicSettings.from_conf(conf)
    if conf.ironic.node_selection == RESERVATION and _can_reserve(client):
        reserving = ReservingDriver(client, partition, host, settings)
        _require_none_chosen(reserving, placement)
        return reserving
    _require_none_reserved(client, host)
    return IronicDriver(client, partition, settings)


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


def _require_none_chosen(reserving: ReservingDriver, placement: PlacementClient) -> None:
    """A server whose own machine is its provider was put there by the scheduler."""
    try:
        reserving.look()
        chosen = [
            server
            for node, server in sorted(reserving.unreserved().items())
            if node in placement.allocations(server)[0]
        ]
    except (DriverError, PlacementUnavailableError) as error:
        LOG.warning("it is not known yet whether the scheduler chose machines in this partition: %s", error)
        return
    if chosen:
        raise ConfigError(
            f"[ironic] node_selection = reservation: the scheduler chose the machines of {len(chosen)} "
            f"servers in this partition, {chosen[0]} for one. Delete them first, or set node_selection to "
            "scheduler"
        )


def _require_none_reserved(client: IronicClient, host: str) -> None:
    try:
        if client.version() < RESERVATIONS:
            return
        found = [reservation.read(record) for record in client.reservations()]
    except BusyError as error:
        LOG.warning("it is not known yet whether this host has reserved machines: %s", error)
        return
    except IronicError as error:
        raise ConfigError(f"[ironic]: {error}") from error
    reserved = sorted(one.server_uuid for one in found if one is not None and one.home == host)
    if reserved:
        raise ConfigError(
            f"[ironic] node_selection = scheduler: this host has reserved the machines of {len(reserved)} "
            f"servers, {reserved[0]} for one. Delete them first, or set node_selection = reservation"
        )
