"""The network of a process: the built-in pools, or the Neutron that `[neutron]` names."""

from __future__ import annotations

from oslo_config import cfg

from moorage.core import neighbours
from moorage.db.database import Database
from moorage.network.contract import Network
from moorage.network.neutron import NeutronNetwork
from moorage.network.neutron_link import NeutronLink
from moorage.network.pool import PoolNetwork, PoolSettings

GROUP = "neutron"


def connect(conf: cfg.ConfigOpts, database: Database) -> Network:
    """What `[network] provider` says; nothing is sent yet."""
    if conf.network.provider == "neutron":
        return NeutronNetwork(link(conf), threads=conf.network.threads)
    return PoolNetwork(database, PoolSettings.from_conf(conf))


def link(conf: cfg.ConfigOpts) -> NeutronLink:
    return NeutronLink(neighbours.adapter(conf, GROUP, "network", conf.network.timeout))
