"""The driver `ironic`, as it is configured, and what SIGHUP means to it."""

from __future__ import annotations

import logging

from oslo_config import cfg

from moorage.core.config import ConfigError
from moorage.drivers.ironic import selection
from moorage.drivers.ironic.api.client import BusyError, IronicError, connect
from moorage.drivers.ironic.nodes.partition import Partition
from moorage.drivers.ironic.reservations.reserving import ReservingDriver
from moorage.drivers.plugin import DriverContext, Loaded

LOG = logging.getLogger(__name__)


def load(context: DriverContext) -> Loaded:
    conf = context.conf
    driver = selection.driver(conf, context.host, connect(conf))
    _check(driver, driver.partition)

    def apply(changed: cfg.ConfigOpts) -> bool:
        partition = Partition.from_conf(changed)
        _check(driver, partition)
        if partition == driver.partition:
            return False
        LOG.info("this host serves %s from now on, not %s", partition, driver.partition)
        driver.partition = partition
        return True

    return Loaded(
        driver,
        apply,
        failover_servers=conf.ironic.failover_servers,
        sweep_grace=conf.ironic.sweep_grace,
    )


def _check(driver: ReservingDriver, partition: Partition) -> None:
    """An Ironic that is away may come; one that can't filter would show us nodes that are not ours."""
    try:
        driver.check(partition)
    except BusyError as error:
        LOG.warning("it is not known yet what this Ironic can do: %s", error)
    except IronicError as error:
        raise ConfigError(f"[ironic]: {error}") from error
