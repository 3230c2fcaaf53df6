"""What a domain of Nova's tells of its server, and which of them can't be adopted."""

from __future__ import annotations

from pathlib import Path
from xml.etree import ElementTree
from xml.etree.ElementTree import Element

import pytest

from moorage.drivers.libvirt.adoption import nova_domain
from moorage.drivers.libvirt.adoption.nova_domain import NotAdoptableError

PORT = "0f3c4e10-22aa-4bcd-9e00-6f1d2c3b4a59"
INSTANCES = Path("/var/lib/nova/instances")
UUID = "3a0c6c2e-58a5-4a0e-8f0e-9f4a3c1f2d11"
_DISK = "<disk type='file' device='disk'><source file='{}'/><target dev='vda'/></disk>"
_OWN_DISK = _DISK.format(INSTANCES / UUID / "disk")
_SWITCHED = (
    "<interface type='bridge'><mac address='fa:16:3e:00:00:01'/><source bridge='br-int'/>"
    f"<virtualport type='openvswitch'><parameters interfaceid='{PORT}'/></virtualport>"
    "<target dev='tap0f3c4e10-22'/><mtu size='1450'/></interface>"
)
_TAP = "<interface type='ethernet'><mac address='fa:16:3e:00:00:01'/><target dev='tap{}'/></interface>"
_BRIDGED = (
    "<interface type='bridge'><mac address='fa:16:3e:00:00:01'/><source bridge='qbr0f3c4e10-22'/>"
    "<target dev='tap0f3c4e10-22'/></interface>"
)


def _domain(*devices: str, version: str = "1.1") -> Element:
    return ElementTree.fromstring(
        f"""
        <domain><name>instance-0000002a</name><uuid>{UUID}</uuid>
        <metadata>
          <nova:instance xmlns:nova="http://openstack.org/xmlns/libvirt/nova/{version}">
            <nova:name>web</nova:name>
            <nova:flavor name="m1.small"><nova:memory>2048</nova:memory><nova:disk>20</nova:disk>
              <nova:swap>0</nova:swap><nova:ephemeral>1</nova:ephemeral><nova:vcpus>2</nova:vcpus></nova:flavor>
            <nova:owner><nova:user uuid="u">alice</nova:user><nova:project uuid="p"/></nova:owner>
            <nova:root type="image" uuid="image-1"/>
            <nova:ports><nova:port uuid="{PORT}"/></nova:ports>
          </nova:instance>
        </metadata>
        <os><type machine="pc-q35-8.2">hvm</type></os><devices>{"".join(devices)}</devices></domain>
        """
    )


def _read(*devices: str) -> nova_domain.NovaGuest:
    return nova_domain.read(_domain(*devices), "node-1", INSTANCES / UUID)


@pytest.mark.parametrize("version", ["1.0", "1.1"])
def test_novas_domains_are_known_by_their_metadata(version: str) -> None:
    assert nova_domain.is_novas(_domain(version=version))
    assert not nova_domain.is_novas(_domain(version="9.9"))


def test_it_says_whose_server_it_is_and_of_what_size() -> None:
    drive = "<disk type='file' device='cdrom'><source file='{}'/><target dev='sda'/></disk>"
    guest = _read(_OWN_DISK, drive.format(INSTANCES / UUID / "disk.config"), "<disk type='file'/>")
    spec = guest.spec
    assert (spec.uuid, spec.name, spec.project_id, spec.user_id) == (UUID, "web", "p", "u")
    assert (spec.node_uuid, spec.instance_name) == ("node-1", "instance-0000002a")
    sizes = {name: spec.flavor[name] for name in ("vcpus", "ram", "disk", "ephemeral", "swap")}
    assert sizes == {"vcpus": 2, "ram": 2048, "disk": 20, "ephemeral": 1, "swap": 0}
    assert spec.image == {"id": "image-1", "properties": {}}
    assert spec.config_drive
    assert guest.machine == "pc-q35-8.2"


def test_it_says_how_its_guest_is_spoken_to() -> None:
    channel = "<channel type='unix'><target type='virtio' name='org.qemu.guest_agent.0'/></channel>"
    domain = _domain(_OWN_DISK, channel)
    (told,) = domain.findall("metadata/*")
    told.append(
        ElementTree.fromstring(
            """
            <nova:image xmlns:nova="http://openstack.org/xmlns/libvirt/nova/1.1"><nova:properties>
              <nova:property name="os_require_quiesce">True</nova:property>
              <nova:property name="hw_tpm_version">2.0</nova:property>
            </nova:properties></nova:image>
            """
        )
    )
    spec = nova_domain.read(domain, "node-1", INSTANCES / UUID).spec
    assert spec.image == {
        "id": "image-1",
        "properties": {"hw_qemu_guest_agent": "yes", "os_require_quiesce": "True"},
    }


def test_processors_that_it_has_for_itself_are_known_to_be_taken() -> None:
    domain = _domain(_OWN_DISK)
    domain.append(
        ElementTree.fromstring(
            "<cputune><vcpupin vcpu='0' cpuset='4'/><vcpupin vcpu='1' cpuset='6'/>"
            "<vcpupin vcpu='2' cpuset='0-2'/><emulatorpin cpuset='4,6'/></cputune>"
        )
    )
    topology = nova_domain.read(domain, "node-1", INSTANCES / UUID).topology
    assert topology.dedicated == (4, 6)
    assert topology.vcpu_pins == {0: (4,), 1: (6,), 2: (0, 1, 2)}


@pytest.mark.parametrize(
    ("interface", "kind", "details"),
    [
        (_SWITCHED, "ovs", {"bridge_name": "br-int"}),
        (_TAP.format("0f3c4e10-22"), "ovs", {"ovs_create_tap": True}),
        (_BRIDGED, "bridge", {"bridge_name": "qbr0f3c4e10-22"}),
    ],
)
def test_its_ports_can_be_plugged_as_they_were(interface: str, kind: str, details: dict[str, object]) -> None:
    guest = _read(_OWN_DISK, interface)
    (port,), (vif,) = guest.spec.network, guest.vifs
    assert (port["id"], port["vif_type"], port["vif_details"]) == (PORT, kind, details)
    assert (vif.port_id, vif.mac, vif.tap) == (PORT, "fa:16:3e:00:00:01", "tap0f3c4e10-22")


@pytest.mark.parametrize(
    ("device", "why"),
    [
        ("<disk type='network' device='disk'><source protocol='rbd' name='vms/disk'/></disk>", "a volume"),
        ("<disk type='block' device='disk'><source dev='/dev/sdb'/></disk>", "a volume"),
        (_DISK.format("/mnt/elsewhere/volume-1"), "a volume"),
        (_DISK.format(INSTANCES / UUID / "disk.rescue"), "rescued"),
        ("<hostdev mode='subsystem' type='pci'/>", "devices of the host"),
        ("<interface type='vhostuser'><target dev='tap0f3c4e10-22'/></interface>", "the type vhostuser"),
        (_TAP.format("ffffffff-ff"), "which port"),
    ],
)
def test_what_can_not_be_adopted(device: str, why: str) -> None:
    with pytest.raises(NotAdoptableError, match=why):
        _read(_OWN_DISK, device)
