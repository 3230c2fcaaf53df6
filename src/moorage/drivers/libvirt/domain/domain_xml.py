"""From a guest's description to libvirt's XML."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from xml.etree import ElementTree
from xml.etree.ElementTree import Element, SubElement

from moorage.drivers.libvirt.domain import mark
from moorage.drivers.libvirt.domain.description import DiskDevice, DiskRole, GuestDescription, SerialConsole
from moorage.drivers.libvirt.host import topology_xml
from moorage.drivers.libvirt.vifs.contract import Vif

_OFFLOADS = {
    "host": ("csum", "gso", "tso4", "tso6", "ecn", "ufo"),
    "guest": ("csum", "tso4", "tso6", "ecn", "ufo"),
}
AGENT_CHANNEL = "org.qemu.guest_agent.0"


def render(guest: GuestDescription) -> str:
    domain = Element("domain", {"type": guest.virt_type})
    _add(domain, "name", guest.name)
    _add(domain, "uuid", guest.uuid)
    _add(domain, "title", guest.title)
    SubElement(domain, "metadata").append(mark.element(guest.mark))
    _add(domain, "memory", str(guest.memory_mb), unit="MiB")
    if guest.locked_memory:
        SubElement(SubElement(domain, "memoryBacking"), "locked")
    _add(domain, "vcpu", str(guest.vcpus))
    _tuning(domain, guest)
    _sysinfo(domain, guest)
    _os(domain, guest)
    _features(domain, guest)
    _cpu(domain, guest)
    _clock(domain, guest)
    for event, action in (("on_poweroff", "destroy"), ("on_reboot", "restart"), ("on_crash", "destroy")):
        _add(domain, event, action)
    domain.extend(ElementTree.fromstring(text) for text in guest.extra)
    _devices(SubElement(domain, "devices"), guest)
    topology_xml.put(domain, guest.topology)
    return ElementTree.tostring(domain, encoding="unicode")


def disk(device: DiskDevice) -> Element:
    made = Element("disk", {"type": "file", "device": device.role.value})
    driver = {"name": "qemu", "type": device.format, "cache": device.cache}
    if device.role is DiskRole.DISK:
        driver["discard"] = "unmap"
    SubElement(made, "driver", driver)
    SubElement(made, "source", {"file": str(device.source)})
    SubElement(made, "target", {"dev": device.target, "bus": device.bus})
    if device.limits:
        tune = SubElement(made, "iotune")
        for name, limit in sorted(device.limits.items()):
            _add(tune, name, str(limit))
    if device.role is DiskRole.CDROM:
        SubElement(made, "readonly")
    if device.serial:
        _add(made, "serial", device.serial)
    if device.boot_order:
        SubElement(made, "boot", {"order": str(device.boot_order)})
    return made


def interface(vif: Vif, model: str = "virtio", queues: int = 0) -> Element:
    made = Element("interface", {"type": "bridge" if vif.bridge else "ethernet"})
    SubElement(made, "mac", {"address": vif.mac})
    if vif.bridge:
        SubElement(made, "source", {"bridge": vif.bridge})
        if vif.interface_id:
            port = SubElement(made, "virtualport", {"type": "openvswitch"})
            SubElement(port, "parameters", {"interfaceid": vif.interface_id})
        SubElement(made, "target", {"dev": vif.tap})
    else:
        SubElement(made, "target", {"dev": vif.tap, "managed": "no"})
    SubElement(made, "model", {"type": model})
    if model == "virtio":
        made.extend(_virtio(vif, queues))
    if vif.mtu:
        SubElement(made, "mtu", {"size": str(vif.mtu)})
    SubElement(made, "rom", {"enabled": "no"})
    return made


def _virtio(vif: Vif, queues: int) -> Iterator[Element]:
    """Whether the kernel or QEMU moves packets is libvirt's choice. A device that somebody else has made has
    one queue."""
    driver = Element("driver")
    if queues > 1 and vif.bridge:
        driver.set("queues", str(queues))
    if vif.offloads_off:
        for side, names in _OFFLOADS.items():
            SubElement(driver, side, dict.fromkeys(names, "off"))
    if driver.attrib or len(driver):
        yield driver


def text(element: Element) -> str:
    return ElementTree.tostring(element, encoding="unicode")


def _tuning(domain: Element, guest: GuestDescription) -> None:
    tuning = guest.tuning
    amounts = {"shares": tuning.shares, "period": tuning.period, "quota": tuning.quota}
    if any(amounts.values()):
        made = SubElement(domain, "cputune")
        for name, amount in amounts.items():
            if amount:
                _add(made, name, str(amount))


def _sysinfo(domain: Element, guest: GuestDescription) -> None:
    """What a guest reads in its firmware: cloud-init knows by it which cloud it is in."""
    system = SubElement(SubElement(domain, "sysinfo", {"type": "smbios"}), "system")
    entries = {
        "manufacturer": "Moorage",
        "product": "OpenStack Compute",
        "serial": guest.uuid,
        "uuid": guest.uuid,
        "family": "Virtual Machine",
    }
    for name, value in entries.items():
        _add(system, "entry", value, name=name)


def _os(domain: Element, guest: GuestDescription) -> None:
    made = SubElement(domain, "os", {"firmware": "efi"} if guest.uefi else {})
    _add(made, "type", "hvm", arch=guest.architecture, machine=guest.machine)
    if guest.boot is not None:
        _add(made, "kernel", str(guest.boot.kernel))
        if guest.boot.ramdisk is not None:
            _add(made, "initrd", str(guest.boot.ramdisk))
        _add(made, "cmdline", guest.boot.command_line)
    if guest.boot_menu:
        SubElement(made, "bootmenu", {"enable": "yes"})
    SubElement(made, "smbios", {"mode": "sysinfo"})


def _features(domain: Element, guest: GuestDescription) -> None:
    made = SubElement(domain, "features")
    SubElement(made, "acpi")
    SubElement(made, "apic")
    if guest.hide_hypervisor:
        SubElement(SubElement(made, "kvm"), "hidden", {"state": "on"})
    if guest.pmu is not None:
        SubElement(made, "pmu", {"state": "on" if guest.pmu else "off"})
    SubElement(made, "vmcoreinfo", {"state": "on"})


def _cpu(domain: Element, guest: GuestDescription) -> None:
    cpu = guest.cpu
    made = Element("cpu")
    if cpu.mode == "custom":
        made.set("mode", "custom")
        made.set("match", "exact")
        _add(made, "model", cpu.model, fallback="forbid")
    elif cpu.mode != "none":
        made.set("mode", cpu.mode)
    for feature in cpu.features:
        policy = "disable" if feature.startswith("-") else "require"
        SubElement(made, "feature", {"policy": policy, "name": feature.lstrip("+-")})
    if cpu.sockets:
        topology = {"sockets": cpu.sockets, "cores": cpu.cores, "threads": cpu.threads}
        SubElement(made, "topology", {name: str(number) for name, number in topology.items()})
    if made.attrib or len(made):
        domain.append(made)


def _clock(domain: Element, guest: GuestDescription) -> None:
    made = SubElement(domain, "clock", {"offset": "localtime" if guest.localtime else "utc"})
    SubElement(made, "timer", {"name": "pit", "tickpolicy": "delay"})
    SubElement(made, "timer", {"name": "rtc", "tickpolicy": "catchup"})
    SubElement(made, "timer", {"name": "hpet", "present": "yes" if guest.hpet else "no"})


def _devices(devices: Element, guest: GuestDescription) -> None:
    if "q35" in guest.machine or guest.machine.startswith("virt"):
        # Else there is room for one device that comes later.
        _add(devices, "controller", type="pci", index="0", model="pcie-root")
        for _ in range(guest.pci_ports):
            _add(devices, "controller", type="pci", model="pcie-root-port")
    if guest.scsi_model:
        _add(devices, "controller", type="scsi", index="0", model=guest.scsi_model)
    devices.extend(disk(device) for device in guest.disks)
    devices.extend(interface(vif, guest.vif_model, guest.vif_queues) for vif in guest.vifs)
    _serial(devices, guest.console)
    if guest.guest_agent:
        channel = SubElement(devices, "channel", {"type": "unix"})
        SubElement(channel, "target", {"type": "virtio", "name": AGENT_CHANNEL})
    _screen(devices, guest)
    if guest.watchdog:
        _add(devices, "watchdog", model="i6300esb", action=guest.watchdog)
    balloon = SubElement(devices, "memballoon", {"model": "virtio"})
    if guest.memory_statistics_period:
        _add(balloon, "stats", period=str(guest.memory_statistics_period))
    if guest.random_device:
        _random(devices, guest)
    devices.extend(ElementTree.fromstring(text) for text in guest.extra_devices)


def _random(devices: Element, guest: GuestDescription) -> None:
    made = SubElement(devices, "rng", {"model": "virtio"})
    if guest.random_bytes:
        period = {"period": str(guest.random_period)} if guest.random_period else {}
        SubElement(made, "rate", {"bytes": str(guest.random_bytes), **period})
    _add(made, "backend", guest.random_device, model="random")


def _serial(devices: Element, console: SerialConsole) -> None:
    """What the first line says is written down, whether somebody listens or not."""
    for number in range(console.count):
        if number == 0 and console.address:
            made = SubElement(devices, "serial", {"type": "tcp"})
            listen = {"mode": "bind", "host": console.address, "service": str(console.port)}
            SubElement(made, "source", listen)
            SubElement(made, "protocol", {"type": "raw"})
        else:
            made = SubElement(devices, "serial", {"type": "pty"})
        if number == 0:
            SubElement(made, "log", {"file": str(console.log), "append": "on"})
        SubElement(made, "target", {"type": "isa-serial", "port": str(number)})


def _screen(devices: Element, guest: GuestDescription) -> None:
    graphics = guest.graphics
    if graphics is None:
        SubElement(SubElement(devices, "video"), "model", {"type": "none"})
        return
    if guest.tablet:
        _add(devices, "input", type="tablet", bus="usb")
    vnc = {"type": "vnc", "port": "-1", "autoport": "yes", "listen": graphics.listen}
    _add(devices, "graphics", **vnc, **({"keymap": graphics.keymap} if graphics.keymap else {}))
    memory = {"vram": str(graphics.video_memory_kib)} if graphics.video_memory_kib else {}
    SubElement(SubElement(devices, "video"), "model", {"type": graphics.video, **memory})


def _add(parent: Element, tag: str, content: str = "", /, **attributes: str) -> Element:
    made = SubElement(parent, tag, _plain(attributes))
    if content:
        made.text = content
    return made


def _plain(attributes: Mapping[str, str]) -> dict[str, str]:
    return dict(attributes)
