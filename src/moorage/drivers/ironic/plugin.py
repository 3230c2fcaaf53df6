"""How an agent gets the driver `ironic`."""

from __future__ import annotations

from collections.abc import Iterable

from oslo_config import cfg

from moorage.drivers.host_check import HostCheck
from moorage.drivers.ironic.options import OPTIONS
from moorage.drivers.machines import ListedMachine
from moorage.drivers.plugin import DriverContext, Loaded, Plugin


def _load(context: DriverContext) -> Loaded:
    """What reaches an Ironic is imported only where one is reached: every command reads the options."""
    from moorage.drivers.ironic import loading

    return loading.load(context)


def _check(conf: cfg.ConfigOpts) -> list[HostCheck]:
    from moorage.drivers.ironic import host_checks

    return host_checks.check(conf)


def _machines(conf: cfg.ConfigOpts) -> Iterable[ListedMachine]:
    from moorage.drivers.ironic.nodes import machines

    return machines.listed(conf)


_FIRST_STEPS = (
    "{moorage} doctor --driver ironic --config {config}  # which flavors there should be",
    "{moorage} nodes --config-file {config} --data {data}",
    "{moorage} image add IMAGE --url https://… --checksum sha512:… --data {data}",
    "openstack server create --flavor FLAVOR --image IMAGE --wait one",
)
PLUGIN = Plugin(_load, OPTIONS, check=_check, machines=_machines, first_steps=_FIRST_STEPS)
