"""Whether an agent on this machine would get at its Ironic, and find nodes there. Looking changes nothing."""

from __future__ import annotations

from collections.abc import Iterator

from oslo_config import cfg

from moorage.core.config import ConfigError
from moorage.core.microversions import text
from moorage.drivers.host_check import CheckOutcome, HostCheck
from moorage.drivers.ironic.api.client import IronicClient, IronicError, connect
from moorage.drivers.ironic.driver import IronicDriver
from moorage.drivers.ironic.nodes import inventory
from moorage.drivers.ironic.nodes.partition import Partition

_IRONIC, _PARTITION, _CLASSES = "Ironic", "partition", "resource class"


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
    return [answers, *_nodes(client, partition)]


def _nodes(client: IronicClient, partition: Partition) -> list[HostCheck]:
    try:
        IronicDriver(client, partition).check(partition)
        records = next(client.pages(partition.filters()), [])
    except IronicError as error:
        advice = "change partition_key or shard, or upgrade Ironic"
        return [HostCheck(_PARTITION, CheckOutcome.FAILED, str(error), advice)]
    if not records:
        advice = "`openstack baremetal node list --fields uuid conductor_group shard` shows what there is"
        return [HostCheck(_PARTITION, CheckOutcome.WARNING, f"there are no nodes of {partition}", advice)]
    there = HostCheck(_PARTITION, CheckOutcome.OK, f"there are nodes of {partition}")
    return [there, *_flavors({record.resource_class for record in records if record.resource_class})]


def _flavors(resource_classes: set[str]) -> Iterator[HostCheck]:
    """How to make a flavor for each class of the machines at the beginning of the list."""
    if not resource_classes:
        advice = (
            "`openstack baremetal node set NODE --resource-class gold`: a machine without one is left alone"
        )
        yield HostCheck(_CLASSES, CheckOutcome.WARNING, "these nodes have none", advice)
    for name in sorted(resource_classes):
        nothing_else = "".join(f" --property resources:{each}=0" for each in ("VCPU", "MEMORY_MB", "DISK_GB"))
        advice = (
            f"a flavor for it: openstack flavor create --vcpus 1 --ram 1024 --disk 10 "
            f"--property resources:{inventory.class_of(name)}=1{nothing_else} {name}"
        )
        yield HostCheck(_CLASSES, CheckOutcome.OK, name, advice)
