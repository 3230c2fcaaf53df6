"""Whether an agent on this machine would get at its Ironic, and find nodes there. Looking changes nothing."""

from __future__ import annotations

from oslo_config import cfg

from moorage.core.config import ConfigError
from moorage.core.microversions import text
from moorage.drivers.host_check import CheckOutcome, HostCheck
from moorage.drivers.ironic.api.client import IronicClient, IronicError, connect
from moorage.drivers.ironic.driver import IronicDriver
from moorage.drivers.ironic.nodes.partition import Partition

_IRONIC, _PARTITION = "Ironic", "partition"


def check(conf: cfg.ConfigOpts) -> list[HostCheck]:
    try:
        client, partition = connect(conf), Partition.from_conf(conf)
    except ConfigError as error:
        return [HostCheck("configuration", CheckOutcome.FAILED, str(error), "edit [ironic]")]
    try:
        version = client.version()
    except IronicError as error:
        advice = "see [ironic] in the configuration, and whether Ironic runs"
        return [HostCheck(_IRONIC, CheckOutcome.FAILED, str(error), advice)]
    answers = HostCheck(_IRONIC, CheckOutcome.OK, f"its API knows version {text(version)}")
    return [answers, _nodes(client, partition)]


def _nodes(client: IronicClient, partition: Partition) -> HostCheck:
    try:
        IronicDriver(client, partition).check(partition)
        found = len(next(client.pages(partition.filters()), []))
    except IronicError as error:
        advice = "change partition_key or shard, or upgrade Ironic"
        return HostCheck(_PARTITION, CheckOutcome.FAILED, str(error), advice)
    if not found:
        advice = "`openstack baremetal node list --fields uuid conductor_group shard` shows what there is"
        return HostCheck(_PARTITION, CheckOutcome.WARNING, f"there are no nodes of {partition}", advice)
    return HostCheck(_PARTITION, CheckOutcome.OK, f"there are nodes of {partition}")
