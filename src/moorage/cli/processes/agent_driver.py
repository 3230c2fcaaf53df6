"""The driver that `[agent] driver` names, and what SIGHUP means to it."""

from __future__ import annotations

from dataclasses import dataclass

from oslo_config import cfg

from moorage.agent.ownership import Ownership
from moorage.drivers.contract import Driver
from moorage.drivers.plugin import DriverContext, Loaded, Plugin
from moorage.drivers.shared_nodes import SharedNodes


@dataclass(frozen=True)
class ChosenDriver:
    loaded: Loaded
    ownership: Ownership | None
    """For a driver whose nodes several hosts share."""

    @property
    def driver(self) -> Driver:
        return self.loaded.driver

    def apply(self, conf: cfg.ConfigOpts) -> bool:
        """Follow a new configuration; whether that changed which nodes are served."""
        changed = self.loaded.apply(conf)
        if changed and self.ownership is not None:
            self.ownership.part()
        return changed


def choose(plugin: Plugin, context: DriverContext) -> ChosenDriver:
    loaded = plugin.load(context)
    if not isinstance(loaded.driver, SharedNodes):
        return ChosenDriver(loaded, None)
    failover = loaded.failover_servers
    return ChosenDriver(loaded, Ownership(context.host, loaded.driver, failover_servers=failover))
