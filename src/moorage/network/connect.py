"""The network of a process: the built-in pools, or the Neutron that `[neutron]` names.

The pools need the database's library, which an agent, who never has them, starts without.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from oslo_config import cfg

from moorage.core import openstack_services
from moorage.network.absent import AbsentNetwork
from moorage.network.contract import Network
from moorage.network.neutron import NeutronNetwork
from moorage.network.neutron_link import NeutronLink

if TYPE_CHECKING:
    from moorage.db.database import Database

GROUP = "neutron"


def connect(conf: cfg.ConfigOpts, database: Database) -> Network:
    """What `[network] provider` says; nothing is sent yet."""
    if conf.network.provider == "neutron":
        return NeutronNetwork(link(conf), threads=conf.network.threads)
    from moorage.network.pool import PoolNetwork, PoolSettings

    return PoolNetwork(database, PoolSettings.from_conf(conf))


def connect_conductor(conf: cfg.ConfigOpts, database: Database) -> Network:
    """As `connect`; without credentials, conductors leave to agents what they can't do."""
    try:
        return connect(conf, database)
    except openstack_services.NoCredentialsError:
        return AbsentNetwork()


def connect_agent(conf: cfg.ConfigOpts) -> Network | None:
    """None for an agent that was given no credentials, as most are: then conductors do all."""
    if conf.network.provider != "neutron":
        return None
    try:
        return NeutronNetwork(link(conf), threads=conf.network.threads)
    except openstack_services.NoCredentialsError:
        return None


def link(conf: cfg.ConfigOpts) -> NeutronLink:
    return NeutronLink(openstack_services.adapter(conf, GROUP, "network", conf.network.timeout))
