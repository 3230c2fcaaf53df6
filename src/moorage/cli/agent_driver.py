"""The driver that `[agent] driver` names, and what SIGHUP means to it."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from oslo_config import cfg

from moorage.agent.ownership import Ownership
from moorage.cli import ironic_selection
from moorage.core.config import ConfigError
from moorage.drivers.contract import Driver
from moorage.drivers.fake import FakeDriver, FakeSettings
from moorage.drivers.ironic.client import BusyError, IronicError, connect
from moorage.drivers.ironic.driver import IronicDriver
from moorage.drivers.ironic.partition import Partition
from moorage.drivers.ironic.reserving import ReservingDriver
from moorage.placement.client.contract import PlacementClient

LOG = logging.getLogger(__name__)


@dataclass(frozen=True)
class Chosen:
    driver: Driver
    ownership: Ownership | None = None
    """For a driver whose nodes several hosts share."""
    apply: Callable[[cfg.ConfigOpts], bool] = lambda conf: False
    """Takes what may change while it runs from a new configuration; whether anything did. ConfigError if that
    makes no sense: then nothing has changed."""


def choose(conf: cfg.ConfigOpts, directory: Path, placement: PlacementClient) -> Chosen:
    if conf.agent.driver == "ironic":
        return _ironic(conf, placement)
    return Chosen(FakeDriver(conf.agent.host, FakeSettings.from_conf(conf), directory))


def _ironic(conf: cfg.ConfigOpts, placement: PlacementClient) -> Chosen:
    driver = ironic_selection.driver(conf, connect(conf), placement)
    _check(driver, driver.partition)
    ownership = Ownership(conf.agent.host, driver, failover_servers=conf.ironic.failover_servers)

    def apply(changed: cfg.ConfigOpts) -> bool:
        partition = Partition.from_conf(changed)
        _check(driver, partition)
        if partition == driver.partition:
            return False
        LOG.info("this host serves %s from now on, not %s", partition, driver.partition)
        driver.partition = partition
        ownership.part()
        return True

    return Chosen(driver, ownership, apply)


def _check(driver: IronicDriver | ReservingDriver, partition: Partition) -> None:
    """An Ironic that is away may come; one that can't filter would show us nodes that are not ours."""
    try:
        driver.check(partition)
    except BusyError as error:
        LOG.warning("it is not known yet what this Ironic can do: %s", error)
    except IronicError as error:
        raise ConfigError(f"[ironic]: {error}") from error
