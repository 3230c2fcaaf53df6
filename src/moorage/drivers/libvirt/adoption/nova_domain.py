"""What a domain of Nova's says of its server: in Nova's own metadata, and in its devices. Pure."""

from __future__ import annotations

from pathlib import Path
from typing import Any
from xml.etree.ElementTree import Element

import msgspec

from moorage.drivers.contract import ServerSpec
from moorage.drivers.libvirt.domain import live_xml
from moorage.drivers.libvirt.host.topology import GuestTopology
from moorage.drivers.libvirt.vifs.contract import Vif, tap_of
from moorage.topology.cpu_set import parse_cpu_set

_NAMESPACES = tuple(f"{{http://openstack.org/xmlns/libvirt/nova/{version}}}" for version in ("1.1", "1.0"))
_NO_NETWORK = "00000000-0000-0000-0000-000000000000"
"""Nobody has written down which network a port is of, and nobody here asks."""
_AGENT, _AGENT_CHANNEL = "hw_qemu_guest_agent", "org.qemu.guest_agent.0"
_MANNERS = ("os_require_quiesce", "os_admin_user", "os_type", "os_shutdown_timeout")
"""Properties of an image that are about how a guest is spoken to. All others are about its definition, which
it has, and may ask for what we would refuse."""


class NovaGuest(msgspec.Struct, frozen=True):
    spec: ServerSpec
    vifs: list[Vif]
    machine: str
    """The type of machine that QEMU makes for it."""
    topology: GuestTopology = GuestTopology()
    """The processors that it has for itself: nobody else shall be put there."""


class NotAdoptableError(Exception):
    """Why not, in a sentence."""


def is_novas(domain: Element) -> bool:
    return _instance(domain) is not None


def read(domain: Element, node_uuid: str, directory: Path) -> NovaGuest:
    """`directory` is the server's: its disks have to be in there."""
    uuid = domain.findtext("uuid") or ""
    _require_local_disks(domain, directory)
    told = _instance(domain)
    assert told is not None, "only Nova's domains are asked about"
    if domain.find("devices/hostdev") is not None:
        raise NotAdoptableError("it has devices of the host")
    network = [_port(one, told) for one in domain.iterfind("devices/interface")]
    owner, root = _child(told, "owner"), _child(told, "root")
    image = "" if root is None or root.get("type") != "image" else root.get("uuid", "")
    spec = ServerSpec(
        uuid=uuid,
        name=_text(told, "name") or uuid,
        project_id=_attribute(owner, "project", "uuid"),
        user_id=_attribute(owner, "user", "uuid"),
        node_uuid=node_uuid,
        flavor=_flavor(_child(told, "flavor")),
        image={"id": image, "properties": _manners(domain, told)} if image else None,
        network=network,
        config_drive=any(Path(disk.source).name == "disk.config" for disk in live_xml.disks(domain)),
        instance_name=domain.findtext("name") or "",
        work="adopted",
    )
    vifs = [_vif(port) for port in network]
    return NovaGuest(spec, vifs, live_xml.machine_type(domain), _topology(domain))


def _manners(domain: Element, told: Element) -> dict[str, str]:
    """Older releases tell of no properties; whether there is an agent in the guest, the domain says."""
    properties = _child(_child(told, "image"), "properties")
    known = {found.get("name", ""): found.text or "" for found in ([] if properties is None else properties)}
    manners = {name: known[name] for name in _MANNERS if name in known}
    if domain.find(f"devices/channel/target[@name='{_AGENT_CHANNEL}']") is not None:
        manners[_AGENT] = "yes"
    return manners


def _topology(domain: Element) -> GuestTopology:
    """A processor of the guest that may run on one of the host's only has that for itself."""
    pins = {
        int(pin.get("vcpu", "0")): tuple(sorted(parse_cpu_set(pin.get("cpuset", ""))))
        for pin in domain.iterfind("cputune/vcpupin")
    }
    dedicated = {cpus[0] for cpus in pins.values() if len(cpus) == 1}
    return GuestTopology(vcpu_pins=pins, dedicated=tuple(sorted(dedicated)))


def _require_local_disks(domain: Element, directory: Path) -> None:
    for disk in domain.iterfind("devices/disk"):
        source = disk.find("source")
        if source is None:  # an empty drive
            continue
        file = source.get("file", "")
        if disk.get("type") != "file" or Path(file).parent != directory:
            raise NotAdoptableError(f"it has a disk that is not in {directory}: a volume, or remote storage")
        if Path(file).name.startswith("disk.rescue"):
            raise NotAdoptableError("it is being rescued")


def _instance(domain: Element) -> Element | None:
    for namespace in _NAMESPACES:
        found = domain.find(f"metadata/{namespace}instance")
        if found is not None:
            return found
    return None


def _child(element: Element | None, name: str) -> Element | None:
    for found in () if element is None else element:
        if found.tag.rpartition("}")[2] == name:
            return found
    return None


def _text(element: Element | None, name: str) -> str:
    found = _child(element, name)
    return "" if found is None else found.text or ""


def _attribute(element: Element | None, name: str, attribute: str) -> str:
    found = _child(element, name)
    return "" if found is None else found.get(attribute, "")


def _flavor(told: Element | None) -> dict[str, Any]:
    numbers = {"ram": "memory", "disk": "disk", "swap": "swap", "ephemeral": "ephemeral", "vcpus": "vcpus"}
    return {
        "name": "" if told is None else told.get("name", ""),
        **{ours: int(_text(told, theirs) or 0) for ours, theirs in numbers.items()},
        "extra_specs": {},
    }


def _port(interface: Element, told: Element) -> dict[str, Any]:
    """As the network would have told of it, so that it can be plugged again."""
    mac, target, source = (interface.find(name) for name in ("mac", "target", "source"))
    tap = "" if target is None else target.get("dev", "")
    parameters = interface.find("virtualport/parameters")
    port_id = ("" if parameters is None else parameters.get("interfaceid", "")) or _port_of(tap, told)
    kind, bridge = interface.get("type", ""), "" if source is None else source.get("bridge", "")
    port: dict[str, Any] = {
        "id": port_id,
        "mac": "" if mac is None else mac.get("address", ""),
        "network_id": _NO_NETWORK,
        "mtu": int(_mtu(interface)),
    }
    if kind == "ethernet":
        return {**port, "vif_type": "ovs", "vif_details": {"ovs_create_tap": True}}
    if kind == "bridge":
        is_switched = interface.find("virtualport[@type='openvswitch']") is not None
        return {
            **port,
            "vif_type": "ovs" if is_switched else "bridge",
            "vif_details": {"bridge_name": bridge},
        }
    raise NotAdoptableError(f"it has an interface of the type {kind}")


def _mtu(interface: Element) -> str:
    found = interface.find("mtu")
    return "0" if found is None else found.get("size", "0")


def _port_of(tap: str, told: Element) -> str:
    """Its device is called after the beginning of its id."""
    ports = _child(told, "ports")
    known = [port.get("uuid", "") for port in ([] if ports is None else ports)]
    found = next((port_id for port_id in known if tap_of(port_id) == tap), "")
    if not found:
        raise NotAdoptableError(f"nobody says which port its interface {tap or '(without a name)'} is of")
    return found


def _vif(port: dict[str, Any]) -> Vif:
    return Vif(port["id"], port["mac"], tap_of(port["id"]), port["mtu"])
