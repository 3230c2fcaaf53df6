"""Our mark on a domain: an element of our own in its metadata."""

from __future__ import annotations

from xml.etree import ElementTree
from xml.etree.ElementTree import Element, SubElement

from moorage.drivers.libvirt.domain.description import DomainMark

NAMESPACE = "urn:moorage:libvirt:server:1"
ElementTree.register_namespace("moorage", NAMESPACE)


def element(mark: DomainMark) -> Element:
    made = Element(f"{{{NAMESPACE}}}server")
    for name in DomainMark.__struct_fields__:
        SubElement(made, f"{{{NAMESPACE}}}{name}").text = getattr(mark, name)
    return made


def text(mark: DomainMark) -> str:
    """For a domain that is there already: libvirt itself puts it into our namespace."""
    made = Element("server")
    for name in DomainMark.__struct_fields__:
        SubElement(made, name).text = getattr(mark, name)
    return ElementTree.tostring(made, encoding="unicode")


def read(domain: Element) -> DomainMark | None:
    """None if the domain is somebody else's."""
    found = domain.find(f"metadata/{{{NAMESPACE}}}server")
    return None if found is None else _read(found)


def parse(text: str) -> DomainMark | None:
    """From the element alone, which libvirt gives with our namespace or without."""
    found = ElementTree.fromstring(text)
    return _read(found) if found.tag.rpartition("}")[2] == "server" else None


def _read(found: Element) -> DomainMark:
    texts = {child.tag.rpartition("}")[2]: child.text or "" for child in found}
    return DomainMark(**{name: texts.get(name, "") for name in DomainMark.__struct_fields__})
