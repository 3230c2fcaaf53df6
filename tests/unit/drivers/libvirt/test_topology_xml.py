from __future__ import annotations

from xml.etree import ElementTree
from xml.etree.ElementTree import Element

from moorage.drivers.libvirt.host import topology_xml
from moorage.drivers.libvirt.host.topology import GuestCell, GuestTopology, PciAddress

PLAIN = "<domain><cpu mode='host-model'/><cputune><shares>5</shares></cputune><devices/></domain>"


def _put(topology: GuestTopology) -> str:
    domain = ElementTree.fromstring(PLAIN)
    topology_xml.put(domain, topology)
    return ElementTree.tostring(domain, encoding="unicode").replace('"', "'").replace(" />", "/>")


def test_nothing_is_said_of_a_plain_guest() -> None:
    assert _put(GuestTopology()) == PLAIN


def test_a_guest_is_where_its_topology_says() -> None:
    found = _put(
        GuestTopology(
            vcpu_pins={0: (2,), 1: (0, 1)},
            dedicated=(2,),
            emulator_pin=(0, 1),
            cells=(GuestCell(0, (0, 1), 1024, 1),),
            memory_cells=(1,),
            page_kib=2048,
            devices=(PciAddress.parse("0000:81:10.1"),),
        )
    )
    assert found == (
        "<domain><cpu mode='host-model'><numa><cell id='0' cpus='0-1' memory='1024' unit='MiB'/></numa></cpu>"
        "<cputune><shares>5</shares><vcpupin vcpu='0' cpuset='2'/><vcpupin vcpu='1' cpuset='0-1'/>"
        "<emulatorpin cpuset='0-1'/></cputune>"
        "<devices><hostdev mode='subsystem' type='pci' managed='yes'><source>"
        "<address domain='0x0000' bus='0x81' slot='0x10' function='0x1'/></source></hostdev></devices>"
        "<numatune><memory mode='strict' nodeset='1'/>"
        "<memnode cellid='0' mode='strict' nodeset='1'/></numatune>"
        "<memoryBacking><hugepages><page size='2048' unit='KiB'/></hugepages></memoryBacking></domain>"
    )


def test_a_guest_that_moves_keeps_what_it_sees_and_is_pinned_anew() -> None:
    here = GuestTopology({0: (2,)}, (2,), (0,), (GuestCell(0, (0,), 512, 0),), (0,), page_kib=2048)
    there = GuestTopology({0: (7,)}, (7,), (4, 5), (GuestCell(0, (0,), 512, 1),), (1,), page_kib=2048)
    domain, target = ElementTree.fromstring(PLAIN), ElementTree.fromstring(PLAIN)
    topology_xml.put(domain, here)
    topology_xml.replace(domain, there)
    topology_xml.put(target, there)
    assert _sorted(domain) == _sorted(target)


def _sorted(domain: Element) -> list[str]:
    """Their order is of no importance."""
    return sorted(ElementTree.tostring(element, encoding="unicode") for element in domain)
