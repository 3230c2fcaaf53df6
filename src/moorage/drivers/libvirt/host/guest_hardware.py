"""What a guest can have, as `domcapabilities` say for one kind of virtualisation and one machine type.

Under emulation a guest has other processor features than the host. So these documents count, of the virt
type in use, and never what `capabilities` say of the host's own processor.
"""

from __future__ import annotations

from xml.etree import ElementTree
from xml.etree.ElementTree import Element

import msgspec

_SUPPORTED = "yes"


class GuestHardware(msgspec.Struct, frozen=True):
    virt_type: str
    architecture: str
    machine: str
    emulator: str
    host_model: str
    """The `<cpu>` that `host-model` stands for; empty if there is none."""
    disk_buses: frozenset[str] = frozenset()
    video_models: frozenset[str] = frozenset()
    tpm_models: frozenset[str] = frozenset()
    tpm_backends: frozenset[str] = frozenset()
    tpm_versions: frozenset[str] = frozenset()
    firmwares: frozenset[str] = frozenset()
    secure_loader: bool = False
    file_systems: frozenset[str] = frozenset()


def parse_domain_capabilities(xml: str) -> GuestHardware:
    root = ElementTree.fromstring(xml)
    return GuestHardware(
        virt_type=root.findtext("domain", ""),
        architecture=root.findtext("arch", ""),
        machine=root.findtext("machine", ""),
        emulator=root.findtext("path", ""),
        host_model=_host_model(root),
        disk_buses=_values(root, "./devices/disk", "bus"),
        video_models=_values(root, "./devices/video", "modelType"),
        tpm_models=_values(root, "./devices/tpm", "model"),
        tpm_backends=_values(root, "./devices/tpm", "backendModel"),
        tpm_versions=_values(root, "./devices/tpm", "backendVersion"),
        firmwares=_values(root, "./os", "firmware"),
        secure_loader="yes" in _values(root, "./os/loader", "secure"),
        file_systems=_values(root, "./devices/filesystem", "driverType"),
    )


def parse_cpu_features(xml: str) -> frozenset[str]:
    """The features that a `<cpu>` has, of one whose features are all listed."""
    root = ElementTree.fromstring(xml)
    return frozenset(
        feature.get("name", "")
        for feature in root.iterfind("feature")
        if feature.get("policy", "require") in ("require", "force")
    )


def named_cpu(model: str) -> str:
    """A `<cpu>` of one of libvirt's models."""
    root = Element("cpu")
    ElementTree.SubElement(root, "model").text = model
    return ElementTree.tostring(root, encoding="unicode")


def _host_model(root: Element) -> str:
    mode = root.find("./cpu/mode[@name='host-model']")
    if mode is None or mode.get("supported") != _SUPPORTED:
        return ""
    cpu = Element("cpu")
    cpu.extend(mode)
    return ElementTree.tostring(cpu, encoding="unicode")


def _values(root: Element, path: str, name: str) -> frozenset[str]:
    """Of an enumeration of something that is supported; of nothing else can guests have anything."""
    device = root.find(path)
    if device is None or device.get("supported") != _SUPPORTED:
        return frozenset()
    return frozenset(value.text or "" for value in device.iterfind(f"./enum[@name='{name}']/value"))
