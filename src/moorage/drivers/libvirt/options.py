"""The `[libvirt]` options: which libvirt, what kind of guests, and where their disks are."""

from __future__ import annotations

from oslo_config import cfg

from moorage.core.config import Options
from moorage.drivers.libvirt.host import options as host_options
from moorage.drivers.libvirt.moves import options as move_options
from moorage.drivers.libvirt.vifs import options as vif_options

OPTIONS: Options = {
    "libvirt": [
        cfg.StrOpt(
            "connection_uri",
            default="qemu:///system",
            help="The libvirt whose guests this host keeps.",
        ),
        cfg.StrOpt(
            "virt_type",
            default="kvm",
            choices=[
                ("kvm", "With the processor's help."),
                ("qemu", "Emulated: slow, but it runs anywhere."),
            ],
            help="How guests are run. It is never guessed: there are machines with a /dev/kvm that can't run "
            "guests.",
        ),
        cfg.StrOpt(
            "cpu_mode",
            default="",
            choices=[
                ("", "host-model with kvm, none with qemu"),
                ("none", "The processor that QEMU emulates by default."),
                ("host-model", "A model of libvirt's that is as close to the host's as can be."),
                ("host-passthrough", "The host's own."),
                ("custom", "The first of `cpu_models`."),
            ],
            help="The processor that guests see.",
        ),
        cfg.ListOpt("cpu_models", default=[], help="Models of libvirt's, with `cpu_mode = custom`."),
        cfg.ListOpt(
            "cpu_model_extra_flags",
            default=[],
            help="Features that the processor of guests shall have, or, with a `-` before them, not have.",
        ),
        cfg.StrOpt(
            "machine_type",
            default="q35",
            help="Machine type of guests whose image asks for none. A server keeps the version that it gets.",
        ),
        cfg.StrOpt(
            "instances_path",
            default="/var/lib/moorage/instances",
            help="Directory of the servers' disks, with the images that they share in its `_base`.",
        ),
        cfg.StrOpt(
            "disk_cache",
            default="none",
            choices=["none", "writethrough", "writeback", "directsync", "unsafe"],
            help="How writes of guests to their disks are cached.",
        ),
        cfg.IntOpt(
            "unused_image_seconds",
            default=86_400,
            min=0,
            help="Seconds for which an image that no server uses is kept on this host.",
        ),
        cfg.StrOpt(
            "daemon_state_path",
            default="/run/libvirt/qemu",
            help="Where libvirtd keeps what it knows of running guests, as NAME.xml: looked into if a guest "
            "is shown as being started for ever, or as off while it runs.",
        ),
        cfg.FloatOpt(
            "client_timeout",
            default=30.0,
            min=0.1,
            help="Seconds after which libvirtd closes the connection of a client that does not answer: "
            "keepalive_interval * (keepalive_count + 1) of its libvirtd.conf. It has to be less than "
            "0.9 of [compute] service_down_time, or guests are not started.",
        ),
        cfg.FloatOpt(
            "shutdown_timeout",
            default=60.0,
            min=0.0,
            help="Seconds that a guest has to shut itself down before it is switched off; an image may say "
            "another time in os_shutdown_timeout.",
        ),
        cfg.FloatOpt(
            "shutdown_retry_interval",
            default=10.0,
            min=0.1,
            help="Seconds after which the power button of a guest that does not shut down is pressed again.",
        ),
        cfg.FloatOpt(
            "soft_reboot_timeout",
            default=120.0,
            min=0.0,
            help="Seconds that a guest has to shut itself down for a soft reboot, before it is a hard one.",
        ),
        cfg.FloatOpt(
            "device_detach_timeout",
            default=20.0,
            min=0.1,
            help="Seconds that a guest has to let go of a device, at each attempt.",
        ),
        cfg.IntOpt(
            "device_detach_attempts",
            default=8,
            min=1,
            help="How often a guest is asked to let go of a device.",
        ),
        cfg.StrOpt(
            "vnc_listen",
            default="127.0.0.1",
            help="Address at which guests show their screens; empty: they have none. Nothing but the console "
            "proxy should be able to reach it.",
        ),
        cfg.StrOpt(
            "serial_listen",
            default="",
            help="Address of the guests' serial consoles; empty: they have a log only. Nothing but the "
            "console proxy should be able to reach it.",
        ),
        cfg.StrOpt("serial_ports", default="10000:20000", help="Ports for serial consoles, first and last."),
        cfg.StrOpt(
            "console_address",
            default="",
            help="Address by which the console proxy reaches this host, where the listening address is not "
            "one that it can use, as 0.0.0.0.",
        ),
        cfg.IntOpt(
            "console_log_bytes",
            default=1 << 20,
            min=4096,
            help="Bytes of a guest's console log that are kept; twice as many are on the disk.",
        ),
        cfg.StrOpt("rng_device", default="/dev/urandom", help="Where guests get random numbers from."),
        cfg.IntOpt(
            "memory_statistics_period",
            default=10,
            min=0,
            help="Seconds between two looks at how guests use their memory; 0 for none.",
        ),
        cfg.IntOpt(
            "pcie_ports",
            default=16,
            min=4,
            max=28,
            help="PCI Express ports of a q35 guest: how many devices it can have, those that come later "
            "included.",
        ),
        cfg.StrOpt("video_model", default="virtio", help="Screen of guests whose image asks for none."),
        *move_options.OPTIONS,
        *vif_options.OPTIONS,
    ],
    **host_options.OPTIONS,
}
